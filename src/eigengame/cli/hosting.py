"""Commands that run as one of several processes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from eigengame.cli.running import FAILED, say


def joined(hosts: str, count: int | None, index: int | None, wait: float) -> bool:
    """Meet the other processes, and say whether this one is the first, which speaks and writes."""
    from eigengame.sharding.hosts import join, parse_hosts

    join(parse_hosts(hosts, count, index), wait)
    import jax

    return jax.process_index() == 0


@contextlib.contextmanager
def ending_together(hosts: str | None) -> Iterator[None]:
    """End with a clear message, and at once, where another process is gone."""
    if hosts is None:
        yield
        return
    from eigengame.sharding.hosts import HostLost, exit_immediately, lost_process_as_error

    try:
        with lost_process_as_error():
            yield
    except HostLost as error:
        say(str(error))
        exit_immediately(FAILED)

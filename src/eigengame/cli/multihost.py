"""Fits that run as several processes, possibly on several machines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from eigengame.cli.errors import FAILED, print_message


def join_hosts(hosts: str, count: int | None, index: int | None, wait: float) -> bool:
    """Connect to the other processes; return True in process 0, which prints and writes results."""
    from eigengame.sharding.hosts import join, parse_hosts

    join(parse_hosts(hosts, count, index), wait)
    import jax

    return jax.process_index() == 0


@contextlib.contextmanager
def exit_if_host_lost(hosts: str | None) -> Iterator[None]:
    """Print a message and exit immediately if another process has died."""
    if hosts is None:
        yield
        return
    from eigengame.sharding.hosts import HostLost, exit_immediately, lost_process_as_error

    try:
        with lost_process_as_error():
            yield
    except HostLost as error:
        print_message(str(error))
        exit_immediately(FAILED)

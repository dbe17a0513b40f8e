"""Several processes, on one machine or many, that fit one model together.

Every process runs the same program on the same data and reads its own rows and columns of each batch; process 0
writes. Who they are comes from the launcher (Slurm, Open MPI, Kubernetes) or is told: the address of process 0, how
many there are and which one this is. On CPUs they talk by gloo.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import numpy as np

WAIT = 120
"""Seconds that processes wait for each other to begin."""

LOST = 30
"""Seconds after which a process that says nothing is taken for lost, at the latest."""

BROKEN = re.compile(r"gloo|connection (closed|reset)|peer|heartbeat|coordination service", re.I)


class HostLost(RuntimeError):
    """Another process is gone: what was computed together cannot go on."""


@dataclass(frozen=True)
class Hosts:
    """Who fits together.

    Attributes
    ----------
    coordinator : str or None
        Address and port of process 0, the same for all; None to ask the launcher.
    count, index : int or None
        How many processes there are, and which one this is, from 0.
    """

    coordinator: str | None = None
    count: int | None = None
    index: int | None = None


def hosts_of(address: str, count: int | None = None, index: int | None = None) -> Hosts:
    """Return who is meant by "auto", or by an address with a port, a count and an index."""
    if address == "auto":
        if count is not None or index is not None:
            raise ValueError(
                "hosts='auto' asks the launcher for count and index: leave them out, or give the address "
                "of process 0, such as 10.0.0.1:9911."
            )
        return Hosts()
    if not re.fullmatch(r"\S+:\d+", address):
        raise ValueError(
            f"hosts={address!r}: give auto, or the address of process 0 with a port, such as 10.0.0.1:9911."
        )
    if count is None or index is None or not 0 <= index < count:
        raise ValueError(
            f"hosts={address!r} with count={count} and index={index}: give how many processes there are, "
            "and which one this is, from 0 to one less."
        )
    return Hosts(address, count, index)


def join(hosts: Hosts, wait: float = WAIT) -> None:
    """Meet the other processes, before anything else is done with JAX.

    Where one does not come within `wait` seconds, this process ends and says so: a library beneath would
    otherwise end it with a trace of its own.
    """
    giving_up = threading.Timer(wait, _missing, (hosts, wait))
    giving_up.daemon = True
    giving_up.start()
    try:
        jax.distributed.initialize(
            coordinator_address=hosts.coordinator,
            num_processes=hosts.count,
            process_id=hosts.index,
            initialization_timeout=int(wait) + 60,
            heartbeat_timeout_seconds=LOST,
        )
    except ValueError as error:
        raise ValueError(
            f"hosts: the launcher does not say who the processes are ({error}): give the address of "
            "process 0, the count and the index."
        ) from None
    finally:
        giving_up.cancel()


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Tell the loss of another process as what it is."""
    try:
        yield
    except Exception as error:
        if jax.process_count() == 1 or not BROKEN.search(str(error)):
            raise
        raise HostLost(
            f"process {jax.process_index()} of {jax.process_count()}: another process was lost "
            f"({_first_line(error)}). Start all of them again; with the same checkpoint they go on where the "
            "last one was written."
        ) from None


def agree(
    name: str,
    value: int,
    fix: str = "the same data, and a checkpoint in a folder that all can read",
) -> None:
    """Raise where processes do not have the same number, such as the row that they go on from."""
    if jax.process_count() == 1:
        return
    from jax.experimental import multihost_utils

    all_of_them = multihost_utils.process_allgather(np.asarray(value))
    if (all_of_them != value).any():
        raise ValueError(
            f"processes have different {name} ({', '.join(map(str, all_of_them))}): give all of them {fix}."
        )


def first_says(answer: bool) -> bool:
    """Return what process 0 answers, in every process."""
    from jax.experimental import multihost_utils

    return bool(multihost_utils.broadcast_one_to_all(np.asarray(answer)))


def leave(code: int) -> None:
    """End this process without waiting for those that are gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _missing(hosts: Hosts, wait: float) -> None:
    """Say that not all processes came, and end."""
    who = f"process {hosts.index} of {hosts.count}" if hosts.count else "this process"
    print(
        f"eigengame: {who} waited {wait:.0f} s, and not all processes came: start all of them, with the same "
        f"address ({hosts.coordinator or 'the launcher has it'}) and different indices, and see that no "
        "firewall is between them.",
        file=sys.stderr,
    )
    leave(1)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200]

"""Several processes, on one machine or many, that fit one model together.

Every process runs the same program on the same data and reads its own rows and columns of each batch. Process 0
writes the results. The launcher (Slurm, Open MPI, Kubernetes) provides the number of processes and the index of
each, or the user passes them with the address of process 0. On CPUs the processes communicate through gloo.
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

JOIN_TIMEOUT = 120
"""Seconds to wait for the other processes at the start."""

HEARTBEAT_TIMEOUT = 30
"""Seconds without a heartbeat after which a process counts as lost."""

CONNECTION_ERROR = re.compile(
    r"gloo|connection (closed|reset)|peer|heartbeat|coordination service", re.I
)


class HostLost(RuntimeError):
    """Another process has ended, so the joint computation cannot continue."""


@dataclass(frozen=True)
class Hosts:
    """The processes of a joint fit.

    Attributes
    ----------
    coordinator : str or None
        Address and port of process 0, the same for all processes; None to ask the launcher.
    count, index : int or None
        Number of processes, and the index of this one, from 0; None to ask the launcher.
    """

    coordinator: str | None = None
    count: int | None = None
    index: int | None = None


def parse_hosts(address: str, count: int | None = None, index: int | None = None) -> Hosts:
    """Return the processes for "auto" (ask the launcher), or for an address, a count and an index."""
    if address == "auto":
        if count is not None or index is not None:
            raise ValueError(
                "hosts='auto' takes count and index from the launcher: omit them, or use the address of "
                "process 0, such as 10.0.0.1:9911."
            )
        return Hosts()
    if not re.fullmatch(r"\S+:\d+", address):
        raise ValueError(
            f"hosts={address!r} is not an address: use auto, or the address of process 0 with a port, such as "
            "10.0.0.1:9911."
        )
    if count is None or index is None or not 0 <= index < count:
        raise ValueError(
            f"hosts={address!r} with count={count} and index={index}: use the number of processes as count, and "
            "an index from 0 to count - 1."
        )
    return Hosts(address, count, index)


def join(hosts: Hosts, wait: float = JOIN_TIMEOUT) -> None:
    """Connect to the other processes. Call this before any other use of JAX.

    If a process does not connect within `wait` seconds, this process prints a message and exits. Without that, the
    distributed runtime would abort it with a stack trace.
    """
    timer = threading.Timer(wait, _exit_after_timeout, (hosts, wait))
    timer.daemon = True
    timer.start()
    try:
        jax.distributed.initialize(
            coordinator_address=hosts.coordinator,
            num_processes=hosts.count,
            process_id=hosts.index,
            initialization_timeout=int(wait) + 60,
            heartbeat_timeout_seconds=HEARTBEAT_TIMEOUT,
        )
    except ValueError as error:
        raise ValueError(
            f"hosts='auto': found no launcher that lists the processes ({error}). Use the address of process 0, "
            "a count and an index."
        ) from None
    finally:
        timer.cancel()


@contextlib.contextmanager
def lost_process_as_error() -> Iterator[None]:
    """Raise `HostLost` for the errors that the loss of another process causes."""
    try:
        yield
    except Exception as error:
        if jax.process_count() == 1 or not CONNECTION_ERROR.search(str(error)):
            raise
        reason = str(error).strip().splitlines()[0][:200]
        raise HostLost(
            f"process {jax.process_index()} of {jax.process_count()}: another process was lost ({reason}). "
            "Start all processes again; with the same checkpoint they resume from the last one written."
        ) from None


def require_equal(
    name: str,
    value: int,
    fix: str = "the same data, and a checkpoint in a folder that all can read",
) -> None:
    """Raise if processes have different values of an integer, such as the row to resume from."""
    if jax.process_count() == 1:
        return
    from jax.experimental import multihost_utils

    values = multihost_utils.process_allgather(np.asarray(value))
    if (values != value).any():
        raise ValueError(
            f"processes have different {name} ({', '.join(map(str, values))}): give all of them {fix}."
        )


def broadcast_from_first(value: bool) -> bool:
    """Return the value of process 0, in every process."""
    from jax.experimental import multihost_utils

    return bool(multihost_utils.broadcast_one_to_all(np.asarray(value)))


def exit_immediately(code: int) -> None:
    """Exit without waiting for other processes, which may be lost."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _exit_after_timeout(hosts: Hosts, wait: float) -> None:
    """Print that not all processes have connected, and exit."""
    process = f"process {hosts.index} of {hosts.count}" if hosts.count else "this process"
    print(
        f"eigengame: {process} waited {wait:.0f} s, but not all processes connected: start all of them, with the "
        f"same address ({hosts.coordinator or 'from the launcher'}) and different indices, and check that no "
        "firewall is between them.",
        file=sys.stderr,
    )
    exit_immediately(1)

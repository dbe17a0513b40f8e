"""Several real processes on this machine fit one model: the same as one process does, or a clear end."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

from eigengame import EigenGamePCA, metrics
from eigengame.parallel.hosts import HostLost, Hosts, hosts_of, together

SOURCE = Path(__file__).parents[2] / "src"
ROWS, FEATURES, K = 1203, 12, 3
FIT = ("-k", K, "--batch-size", 100, "--dtype", "float64", "-q")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data of which no part divides, and what one process finds in it."""
    folder = tmp_path_factory.mktemp("hosts")
    scales = 2.0 ** -np.arange(FEATURES)
    x = np.random.default_rng(0).normal(size=(ROWS, FEATURES)) * scales + 1
    np.save(folder / "x.npy", x)
    EigenGamePCA(K, batch_size=100, dtype="float64", random_state=0).fit(x).save(
        folder / "one.safetensors"
    )
    return folder


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(folder, index, count, port, *more):
    """Start one of several processes."""
    arguments = ["fit", "x.npy", *FIT, "--hosts", f"127.0.0.1:{port}", "--host-count", count]
    return subprocess.Popen(
        [sys.executable, "-m", "eigengame", *map(str, [*arguments, "--host-index", index, *more])],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": str(SOURCE), "JAX_PLATFORMS": "cpu"}
        | {"EIGENGAME_CACHE": str(folder / "compiled")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(processes, seconds=120):
    """Return exit codes and what was said, once all have ended by themselves."""
    said = [one.communicate(timeout=seconds) for one in processes]
    return [one.returncode for one in processes], said


def apart(folder, name):
    one, other = (EigenGamePCA.load(folder / file) for file in ("one.safetensors", name))
    assert one.n_samples_seen_ == other.n_samples_seen_ == ROWS
    return metrics.angular_error(one.components_, other.components_).max()


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_processes_find_together_what_one_finds_and_the_first_writes(folder, count):
    port, name = free_port(), f"by{count}.safetensors"
    codes, said = ended([start(folder, i, count, port, "-o", name) for i in range(count)])
    assert codes == [0] * count, said
    assert f"Written: {name}" in said[0][0]
    assert not any("Written" in out or "component" in out for out, _ in said[1:])
    # Batches are the same, their sums are in another order: rounding, grown by an unfinished pass.
    assert apart(folder, name) < 1e-8


def test_a_killed_process_ends_the_others_with_a_message_and_a_rerun_goes_on(folder):
    port, more = (
        free_port(),
        ("-o", "again.safetensors", "--checkpoint", "run", "--checkpoint-every", 0),
    )
    slow = ("--batch-size", 2)  # so that there is a middle
    processes = [start(folder, i, 2, port, *more, *slow) for i in range(2)]
    kept = folder / "run" / "k3-0000.safetensors"
    waiting = time.monotonic() + 60
    while not kept.exists() and time.monotonic() < waiting:
        time.sleep(0.02)
    processes[1].send_signal(signal.SIGKILL)
    lost = time.monotonic()
    codes, said = ended(processes, seconds=60)
    assert codes == [1, -signal.SIGKILL], said
    assert time.monotonic() - lost < 45
    assert "another process was lost" in said[0][1]
    assert "with the same checkpoint they go on" in said[0][1]
    assert not (folder / "again.safetensors").exists()
    port = free_port()
    codes, said = ended([start(folder, i, 2, port, *more, *slow) for i in range(2)])
    assert codes == [0, 0], said
    one = EigenGamePCA(K, batch_size=2, dtype="float64", random_state=0).fit(
        np.load(folder / "x.npy")
    )
    other = EigenGamePCA.load(folder / "again.safetensors")
    # Six hundred updates of two rows each: rounding has had time to grow.
    assert metrics.angular_error(one.components_, other.components_).max() < 1e-6


def test_a_process_that_does_not_come_is_told_of(folder):
    codes, said = ended(
        [start(folder, 0, 2, free_port(), "-o", "never.safetensors", "--host-wait", 4)]
    )
    assert codes == [1]
    assert "waited 4 s, and not all processes came: start all of them" in said[0][1]


def test_hosts_are_understood_or_refused_with_the_fix():
    assert hosts_of("auto") == Hosts()
    assert hosts_of("node1:9911", 4, 0) == Hosts("node1:9911", 4, 0)
    for wrong in (("auto", 2, 0), ("node1",), ("node1:9911",), ("node1:9911", 2, 2)):
        with pytest.raises(ValueError, match=r"hosts='.*: (leave|give)|hosts=.*give"):
            hosts_of(*wrong)


def test_other_errors_pass_as_they_are():
    with pytest.raises(ValueError, match="of its own"), together():
        raise ValueError("an error of its own")
    assert issubclass(HostLost, RuntimeError)

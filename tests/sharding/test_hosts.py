"""Several real processes on this machine fit one model: the same as one process does, or a clear end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

pytest.importorskip("typer")

from eigengame import EigenGamePCA, make, metrics, play
from eigengame.sharding.hosts import HostLost, Hosts, hosts_of, together
from eigengame.sharding.own_part import in_pieces
from tests.sharding import one_of_several

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
    told = ("--hosts", f"127.0.0.1:{port}", "--host-count", count, "--host-index", index)
    return command(folder, [*told, *more], {})


def command(folder, more, variables):
    """Start the command with further arguments, and variables of the environment."""
    return subprocess.Popen(
        [sys.executable, "-m", "eigengame", *map(str, ["fit", "x.npy", *FIT, *more])],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": str(SOURCE), "JAX_PLATFORMS": "cpu"}
        | {"EIGENGAME_CACHE": str(folder / "compiled")}
        | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(processes, seconds=120):
    """Return exit codes and what was said, once all have ended by themselves."""
    said = [one.communicate(timeout=seconds) for one in processes]
    return [one.returncode for one in processes], said


def several(folder, count, mesh, *parts):
    """Return what each of several processes finds by the script beside this file."""
    port, name = free_port(), "tests.sharding.one_of_several"
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", name, *map(str, (index, count, port, mesh, folder)), *parts],
            cwd=SOURCE.parent,
            env=os.environ | {"PYTHONPATH": str(SOURCE), "JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(count)
    ]
    codes, said = ended(processes, seconds=240)
    assert codes == [0] * count, [error[-3000:] for _, error in said]
    return [json.loads(out.splitlines()[-1]) for out, _ in said]


def assert_found(told, fit):
    """Sums are in another order: rounding, and all else alike."""
    assert metrics.angular_error(np.array(told["components"]), fit.components_).max() < 1e-8
    np.testing.assert_allclose(told["mean"], fit.mean_, rtol=1e-12, atol=1e-12)
    assert told["kind"] == fit.certificate_.kind
    np.testing.assert_allclose(told["angle"], fit.certificate_.angle, rtol=1e-3, atol=1e-8)


def test_processes_that_share_features_read_their_own_columns_and_go_on_where_they_stopped(
    tmp_path,
):
    found = several(tmp_path, 2, "features=2", "resumed", "auto", "unlike")
    whole = one_of_several.estimator(center=False).fit(one_of_several.table())
    for columns, one in zip((range(7), range(7, 13)), found, strict=True):
        assert one["resumed"]["columns"] == list(columns)
        # Stopped in the third batch of 50: two had been written.
        assert one["resumed"]["rows"] == list(range(100, one_of_several.ROWS))
        assert_found(one["resumed"], whole)
        assert "different random_state (0, 1): give all of them the same number" in one["unlike"]
        # Wide batches share columns, tall ones rows.
        assert one["auto"] == ["features=2", "data=2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "mesh"), [(2, "features=2"), (2, "data=2"), (4, "data=2,features=2")]
)
def test_every_route_finds_the_same_between_processes(tmp_path, count, mesh):
    """Also sparse rows, data far from zero, and data that can only be read in order."""
    found = several(tmp_path, count, mesh, "fitted by every route", "sparse", "played")
    wholes = {kind: one_of_several.alone(kind) for kind in one_of_several.FITS}
    rows = scipy.sparse.csr_array(one_of_several.table())
    counted = one_of_several.estimator().fit(rows)
    # In float32, as JAX plays by itself in those processes.
    short = one_of_several.table()[:200].astype("float32")
    game = play(make("alpha"), short, k=K, rounds=3).components
    for one in found:
        for kind, whole in wholes.items():
            assert_found(one["fitted by every route"][kind], whole)
        columns = one["fitted by every route"]["refined"]["columns"]
        assert len(columns) in ((13,) if mesh == "data=2" else (6, 7))
        assert_found(one["sparse"], counted)
        assert metrics.angular_error(np.array(one["played"]), np.asarray(game)).max() < 1e-3


def test_processes_have_rows_and_columns_in_one_piece():
    four = np.arange(4)
    assert in_pieces(four.reshape(4, 1, 1))
    assert in_pieces(four.reshape(2, 1, 2))
    assert in_pieces(np.repeat(four, 2).reshape(2, 1, 4))
    assert in_pieces(np.repeat(four, 2).reshape(2, 2, 2))
    # Three columns of two devices each: the second process would have the ends of two rows.
    assert not in_pieces(np.repeat(np.arange(3), 2).reshape(2, 1, 3))


def apart(folder, name):
    one, other = (EigenGamePCA.load(folder / file) for file in ("one.safetensors", name))
    assert one.n_samples_seen_ == other.n_samples_seen_ == ROWS
    return metrics.angular_error(one.components_, other.components_).max()


@pytest.mark.parametrize(
    ("count", "mesh"),
    [
        (2, "data=2"),
        pytest.param(2, "features=2", marks=pytest.mark.slow),
        pytest.param(4, "data=4", marks=pytest.mark.slow),
        pytest.param(4, "data=2,features=2", marks=pytest.mark.slow),
    ],
)
def test_processes_find_together_what_one_finds_and_the_first_writes(folder, count, mesh):
    port, name = free_port(), f"by{mesh}.safetensors"
    more = ("-o", name, "--mesh", mesh)
    codes, said = ended([start(folder, i, count, port, *more) for i in range(count)])
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
    slow = ("--batch-size", 6)  # so that there is a middle
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
    one = EigenGamePCA(K, batch_size=6, dtype="float64", random_state=0).fit(
        np.load(folder / "x.npy")
    )
    other = EigenGamePCA.load(folder / "again.safetensors")
    # Two hundred updates of six rows each: rounding has had time to grow.
    assert metrics.angular_error(one.components_, other.components_).max() < 1e-6


def slurm(index, port):
    """What Slurm tells a task of a job of two on this machine; the port follows from the job's number."""
    return {
        "SLURM_JOB_ID": str(port % 2**12),
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_NTASKS": "2",
        "SLURM_PROCID": str(index),
        "SLURM_LOCALID": str(index),
    }


def open_mpi(index, port):
    """The same of Open MPI's launcher."""
    return {
        "OMPI_MCA_orte_hnp_uri": f"{port % 2**12 * 2**12}.0;tcp://127.0.0.1:{port}",
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_RANK": str(index),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(index),
    }


@pytest.mark.parametrize("launcher", [slurm, pytest.param(open_mpi, marks=pytest.mark.slow)])
def test_processes_that_a_launcher_started_find_each_other(folder, launcher):
    port, name = free_port(), f"{launcher.__name__}.safetensors"
    more = ("--hosts", "auto", "-o", name)
    codes, said = ended([command(folder, more, launcher(index, port)) for index in range(2)])
    assert codes == [0, 0], said
    assert apart(folder, name) < 1e-8


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

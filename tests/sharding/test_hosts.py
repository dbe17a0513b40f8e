"""Several processes on this machine fit the same model as one process, or exit with a clear message."""

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
from eigengame.sharding.hosts import HostLost, Hosts, lost_process_as_error, parse_hosts
from eigengame.sharding.process_local import is_contiguous
from tests.game_pca import game_pca
from tests.sharding import one_of_several

SOURCE = Path(__file__).parents[2] / "src"
ROWS, FEATURES, K = 1203, 12, 3
FIT = ("-k", K, "--batch-size", 100, "--dtype", "float64", "-q")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data whose size no number of processes divides, and the model that one process fits to it."""
    folder = tmp_path_factory.mktemp("hosts")
    scales = 2.0 ** -np.arange(FEATURES)
    x = np.random.default_rng(0).normal(size=(ROWS, FEATURES)) * scales + 1
    np.save(folder / "x.npy", x)
    game_pca(K, batch_size=100, dtype="float64", random_state=0).fit(x).save(
        folder / "one.safetensors"
    )
    return folder


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(folder, index, count, port, *more):
    """Start one of several processes."""
    options = ("--hosts", f"127.0.0.1:{port}", "--host-count", count, "--host-index", index)
    return command(folder, [*options, *more], {})


def command(folder, more, variables):
    """Start the command with further arguments and environment variables."""
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
    """Return the exit codes and the output of processes, once all have ended."""
    output = [one.communicate(timeout=seconds) for one in processes]
    return [one.returncode for one in processes], output


def several(folder, count, mesh, *parts):
    """Return the results of `one_of_several.py` in each of several processes."""
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
    codes, output = ended(processes, seconds=240)
    assert codes == [0] * count, [error[-3000:] for _, error in output]
    return [json.loads(out.splitlines()[-1]) for out, _ in output]


def assert_same_fit(results, fit):
    """Compare up to rounding: the order of sums differs."""
    assert metrics.angular_error(np.array(results["components"]), fit.components_).max() < 1e-8
    np.testing.assert_allclose(results["mean"], fit.mean_, rtol=1e-12, atol=1e-12)
    assert results["kind"] == fit.certificate_.kind
    np.testing.assert_allclose(results["angle"], fit.certificate_.angle, rtol=1e-3, atol=1e-8)


def test_processes_that_share_features_read_their_own_columns_and_resume(
    tmp_path,
):
    found = several(tmp_path, 2, "features=2", "resumed", "auto", "different seeds")
    whole = one_of_several.estimator(center=False).fit(one_of_several.table())
    for columns, one in zip((range(7), range(7, 13)), found, strict=True):
        assert one["resumed"]["columns"] == list(columns)
        # Interrupted in the third batch of 50 rows, after two had been written.
        assert one["resumed"]["rows"] == list(range(100, one_of_several.ROWS))
        assert_same_fit(one["resumed"], whole)
        assert (
            "different random_state (0, 1): give all of them the same number"
            in one["different seeds"]
        )
        # Processes share the columns of wide batches and the rows of tall ones.
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
    # In float32, the default of JAX in those processes.
    short = one_of_several.table()[:200].astype("float32")
    game = play(make("alpha"), short, k=K, rounds=3).components
    for one in found:
        for kind, whole in wholes.items():
            assert_same_fit(one["fitted by every route"][kind], whole)
        columns = one["fitted by every route"]["refined"]["columns"]
        assert len(columns) in ((13,) if mesh == "data=2" else (6, 7))
        assert_same_fit(one["sparse"], counted)
        assert metrics.angular_error(np.array(one["played"]), np.asarray(game)).max() < 1e-3


def test_contiguous_blocks_of_processes():
    four = np.arange(4)
    assert is_contiguous(four.reshape(4, 1, 1))
    assert is_contiguous(four.reshape(2, 1, 2))
    assert is_contiguous(np.repeat(four, 2).reshape(2, 1, 4))
    assert is_contiguous(np.repeat(four, 2).reshape(2, 2, 2))
    # Three processes with two devices each, in rows of three: the second one holds parts of two rows.
    assert not is_contiguous(np.repeat(np.arange(3), 2).reshape(2, 1, 3))


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
def test_several_processes_find_what_one_finds_and_the_first_writes(folder, count, mesh):
    port, name = free_port(), f"by{mesh}.safetensors"
    more = ("-o", name, "--mesh", mesh)
    codes, output = ended([start(folder, i, count, port, *more) for i in range(count)])
    assert codes == [0] * count, output
    assert f"Written: {name}" in output[0][0]
    assert not any("Written" in out or "component" in out for out, _ in output[1:])
    # The batches are equal but the order of sums differs. One pass has not converged, so rounding grows.
    assert apart(folder, name) < 1e-8


@pytest.mark.slow
def test_a_killed_process_ends_the_others_with_a_message_and_a_rerun_resumes(folder):
    port, more = (
        free_port(),
        ("-o", "again.safetensors", "--checkpoint", "run", "--checkpoint-every", 0),
    )
    slow = ("--batch-size", 6)  # many batches, so that the process is killed during the pass
    processes = [start(folder, i, 2, port, *more, *slow) for i in range(2)]
    kept = folder / "run" / "k3-0000.safetensors"
    waiting = time.monotonic() + 60
    while not kept.exists() and time.monotonic() < waiting:
        time.sleep(0.02)
    processes[1].send_signal(signal.SIGKILL)
    lost = time.monotonic()
    codes, output = ended(processes, seconds=60)
    assert codes == [1, -signal.SIGKILL], output
    assert time.monotonic() - lost < 45
    assert "another process was lost" in output[0][1]
    assert "with the same checkpoint they resume" in output[0][1]
    assert not (folder / "again.safetensors").exists()
    port = free_port()
    codes, output = ended([start(folder, i, 2, port, *more, *slow) for i in range(2)])
    assert codes == [0, 0], output
    one = game_pca(K, batch_size=6, dtype="float64", random_state=0).fit(np.load(folder / "x.npy"))
    other = EigenGamePCA.load(folder / "again.safetensors")
    # Rounding grows over two hundred updates of six rows each.
    assert metrics.angular_error(one.components_, other.components_).max() < 1e-6


def slurm(index, port):
    """Return the variables that Slurm sets for one of two tasks; JAX derives the port from the job id."""
    return {
        "SLURM_JOB_ID": str(port % 2**12),
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_NTASKS": "2",
        "SLURM_PROCID": str(index),
        "SLURM_LOCALID": str(index),
    }


def open_mpi(index, port):
    """Return the variables that the launcher of Open MPI sets."""
    return {
        "OMPI_MCA_orte_hnp_uri": f"{port % 2**12 * 2**12}.0;tcp://127.0.0.1:{port}",
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_RANK": str(index),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(index),
    }


@pytest.mark.slow
@pytest.mark.parametrize("launcher", [slurm, open_mpi])
def test_processes_that_a_launcher_started_find_each_other(folder, launcher):
    port, name = free_port(), f"{launcher.__name__}.safetensors"
    more = ("--hosts", "auto", "-o", name)
    codes, output = ended([command(folder, more, launcher(index, port)) for index in range(2)])
    assert codes == [0, 0], output
    assert apart(folder, name) < 1e-8


def test_a_missing_process_is_reported(folder):
    codes, output = ended(
        [start(folder, 0, 2, free_port(), "-o", "never.safetensors", "--host-wait", 4)]
    )
    assert codes == [1]
    assert "waited 4 s, but not all processes connected: start all of them" in output[0][1]


def test_hosts_are_parsed_or_refused_with_the_fix():
    assert parse_hosts("auto") == Hosts()
    assert parse_hosts("node1:9911", 4, 0) == Hosts("node1:9911", 4, 0)
    for wrong in (("auto", 2, 0), ("node1",), ("node1:9911",), ("node1:9911", 2, 2)):
        with pytest.raises(ValueError, match=r"hosts='.*(: omit|: use)"):
            parse_hosts(*wrong)


def test_unrelated_errors_are_not_changed():
    with pytest.raises(ValueError, match="unrelated"), lost_process_as_error():
        raise ValueError("an unrelated error")
    assert issubclass(HostLost, RuntimeError)

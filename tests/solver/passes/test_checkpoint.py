"""Runs that survive: interrupted anywhere, they go on to the same result, bit for bit."""

import errno
import json
import os
import subprocess
import sys
import threading

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_digits

from eigengame import Checkpoint, EigenGamePCA, Interrupted
from eigengame._system.atomic_write import atomic_write
from eigengame.solver.passes.checkpoint import CheckpointError, CheckpointStore
from eigengame.sources.device_array import DeviceArray
from tests.game_pca import game_pca
from tests.interrupting import Interrupting

X = load_digits().data.astype("float32").repeat(3, axis=0)
OPTIONS = {"n_components": 4, "batch_size": 512, "random_state": 3}


def ended_process():
    """Return the id of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def same(one, other):
    for name in (
        "components_",
        "explained_variance_",
        "mean_",
        "var_",
        "explained_variance_ratio_",
    ):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.certificate_.angle, other.certificate_.angle)
    assert one.outcome_ == other.outcome_
    assert one.n_samples_seen_ == other.n_samples_seen_


def test_a_game_with_overlaps_resumes_to_the_same_bits(monkeypatch, tmp_path):
    # As on a GPU, where kernels apply to very wide rows.
    monkeypatch.setattr("eigengame.solver.planning.make_plan._kernels_apply", lambda *_: True)
    rows = np.random.default_rng(0).standard_normal((128, 3000)).astype("float32")

    def fit(**options):
        wide = game_pca(4, random_state=0, batch_size=32, tol=None)
        return wide.fit(DeviceArray(jnp.asarray(rows)), **options)

    whole = fit()
    with pytest.raises(Interrupted):
        fit(checkpoint=tmp_path, progress=Interrupting(3))
    same(fit(checkpoint=tmp_path), whole)


@pytest.mark.parametrize(
    "options",
    [{}, {"tol": 0.05}, {"algorithm": "auto", "extra": 20}, {"algorithm": "mu", "passes": 2}],
    ids=["one pass", "refined", "covariance", "mu"],
)
def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path, options):
    whole = game_pca(**OPTIONS | options).fit(X)
    pca, messages = game_pca(**OPTIONS | options), []
    for after in (3, 9, *[14] * 9):
        try:
            pca.fit(X, checkpoint=tmp_path / "run", progress=Interrupting(after))
            break
        except Interrupted as stopped:
            messages.append(str(stopped))
    assert messages
    assert all("make the same call again" in message for message in messages)
    same(pca, whole)


def test_a_killed_run_resumes_from_its_last_checkpoint(tmp_path):
    class Dying:
        """Ends the run as a kill does: nobody is asked to save anything."""

        left = 14

        def batch(self, at):
            self.left -= 1
            if not self.left:
                raise RuntimeError("killed")

    options = OPTIONS | {"tol": 0.05}
    with pytest.raises(RuntimeError, match="killed"):
        game_pca(**options).fit(X, checkpoint=Checkpoint(tmp_path, every=0.0), progress=Dying())
    half = tmp_path / f".k4-0001.safetensors.{ended_process()}"
    half.write_bytes(b"half of a file")
    same(game_pca(**options).fit(X, checkpoint=tmp_path), game_pca(**options).fit(X))
    assert not half.exists()


def test_a_run_for_a_share_of_the_variance_resumes(tmp_path):
    options = OPTIONS | {"n_components": 0.9}
    whole = game_pca(**options).fit(X)
    with pytest.raises(Interrupted):
        game_pca(**options).fit(X, checkpoint=tmp_path, progress=Interrupting(4))
    same(game_pca(**options).fit(X, checkpoint=tmp_path), whole)


def test_a_finished_run_is_recalled_without_reading(tmp_path):
    whole = game_pca(**OPTIONS).fit(X, checkpoint=tmp_path)
    same(game_pca(**OPTIONS).fit(X, checkpoint=tmp_path, progress=Interrupting(1)), whole)


def test_a_run_without_a_random_state_keeps_the_seed_it_drew(tmp_path):
    options = OPTIONS | {"random_state": None}
    with pytest.raises(Interrupted):
        game_pca(**options).fit(X, checkpoint=tmp_path, progress=Interrupting(4))
    one = game_pca(**options).fit(X, checkpoint=tmp_path)
    same(game_pca(**options).fit(X, checkpoint=tmp_path), one)


def test_a_changed_source_or_configuration_is_refused_by_name(tmp_path):
    game_pca(**OPTIONS).fit(X, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match=r"configuration\.n_components was 4, is 5"):
        game_pca(**OPTIONS | {"n_components": 5}).fit(X, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match=r"source\.shape was"):
        game_pca(**OPTIONS).fit(X[:-7], checkpoint=tmp_path)
    other = X.copy()
    other[0, 0] += 1
    with pytest.raises(CheckpointError, match=r"source\.rows was"):
        game_pca(**OPTIONS).fit(other, checkpoint=tmp_path)


def test_checkpoints_are_written_as_time_passes(tmp_path):
    class Looking:
        seen = 0

        def batch(self, at):
            files = list(tmp_path.glob("k4-0000.safetensors"))
            self.seen += bool(files) and not at.ended

    watcher = Looking()
    game_pca(**OPTIONS).fit(X, checkpoint=Checkpoint(tmp_path, every=0.0), progress=watcher)
    assert watcher.seen >= 5


def test_a_corrupt_checkpoint_is_named_with_the_remedy(tmp_path):
    game_pca(**OPTIONS).fit(X, checkpoint=tmp_path)
    path = next(tmp_path.glob("*.safetensors"))
    whole = path.read_bytes()
    for damage in (whole[: len(whole) // 2], b"\0" * 64, b""):
        path.write_bytes(damage)
        with pytest.raises(CheckpointError, match="remove it"):
            game_pca(**OPTIONS).fit(X, checkpoint=tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(CheckpointError, match="remove the folder"):
        game_pca(**OPTIONS).fit(X, checkpoint=tmp_path)


def test_a_full_disk_leaves_the_last_good_checkpoint(tmp_path, monkeypatch):
    keeper = CheckpointStore(tmp_path, {}, {})
    carry = {"a": np.arange(4.0)}
    keeper.write(0, carry, 10)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        CheckpointError, match=r"No space left on device.*any earlier version is unchanged"
    ):
        keeper.write(0, {"a": np.zeros(4)}, 20)
    keeper.close()
    monkeypatch.undo()
    kept, row, ended = CheckpointStore(tmp_path, {}, {}).read(0, carry)
    np.testing.assert_array_equal(kept["a"], carry["a"])
    assert (row, ended) == (10, False)
    there = sorted(p.name for p in tmp_path.iterdir())
    assert there == ["pass-0000.safetensors", "run.json", "run.lock"]


def test_a_file_is_whole_or_absent(tmp_path):
    def half_written():
        with atomic_write(tmp_path / "model") as draft:
            draft.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half_written()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="give a folder"):
        game_pca(**OPTIONS).fit(X, checkpoint=tmp_path / "file" / "run")


def test_what_is_kept_is_plain(tmp_path):
    game_pca(**OPTIONS).fit(X, checkpoint=tmp_path)
    facts = json.loads((tmp_path / "run.json").read_text())
    assert facts["configuration"]["n_components"] == 4
    assert facts["source"]["shape"] == list(X.shape)
    assert not list(tmp_path.glob("*.pkl"))


def test_only_what_ended_runs_left_unfinished_is_removed(tmp_path):
    ended = ended_process()
    kept = [
        ".prod.safetensors.bak",
        f".prod.safetensors.{ended}",
        f".k4-0001.safetensors.{ended}.bak",
        f"k4-0001.safetensors.{ended}",
        f".k4-0001.safetensors.{os.getppid()}",
    ]
    removed = [
        f".k4-0001.safetensors.{ended}",
        f".pass-0000.safetensors.{ended}",
        f".run.json.{ended}",
        f".run.json.{ended}-0123abcd",
        f".k4-0001.safetensors.{os.getpid()}-0123abcd",
    ]
    for name in kept + removed:
        (tmp_path / name).write_text("something")
    game_pca(**OPTIONS).fit(X, checkpoint=tmp_path)
    there = {path.name for path in tmp_path.iterdir()}
    assert there >= set(kept)
    assert not there & set(removed)


def test_a_second_run_in_a_folder_is_refused_until_the_first_has_ended(tmp_path):
    messages = []

    class Second:
        def batch(self, at):
            if not messages:
                with pytest.raises(CheckpointError) as refused:
                    game_pca(**OPTIONS).fit(X, checkpoint=tmp_path)
                messages.append(str(refused.value))

    game_pca(**OPTIONS).fit(X, checkpoint=tmp_path, progress=Second())
    assert f"in use by another run (process {os.getpid()} on" in messages[0]
    game_pca(**OPTIONS).fit(X, checkpoint=tmp_path)


def test_a_run_of_another_process_is_noticed_and_its_end_too(tmp_path):
    program = "import sys; from pathlib import Path; from eigengame._system.folder_lock import FolderLock; "
    program += "lock = FolderLock(Path(sys.argv[1])); print(flush=True); input()"
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        other.stdout.readline()
        with pytest.raises(CheckpointError, match=f"in use by another run .process {other.pid} on"):
            CheckpointStore(tmp_path, {}, {})
    finally:
        other.kill()
        other.communicate()
    CheckpointStore(tmp_path, {}, {}).close()


def test_without_a_lock_no_draft_is_removed(tmp_path, monkeypatch):
    def no_locks(number, operation):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    draft = tmp_path / f".k4-0000.safetensors.{ended_process()}"
    draft.write_text("of another machine")
    game_pca(**OPTIONS).fit(X, checkpoint=tmp_path)
    assert draft.exists()


def test_threads_that_write_the_same_file_do_not_disturb_each_other(tmp_path):
    model = game_pca(**OPTIONS).fit(X)
    path, errors = tmp_path / "model.safetensors", []

    def write():
        try:
            for _ in range(20):
                model.save(path)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert errors == []
    assert [one.name for one in tmp_path.iterdir()] == ["model.safetensors"]
    same(EigenGamePCA.load(path), model)


def test_concurrent_runs_in_one_folder_end_as_one_run(tmp_path):
    """Processes that start together: one has the folder, the others are refused, and nothing is damaged."""
    program = (
        "import sys\n"
        "from sklearn.datasets import load_digits\n"
        "from eigengame import EigenGamePCA\n"
        "from eigengame.solver.passes.checkpoint import Checkpoint, CheckpointError\n"
        "X = load_digits().data.astype('float32').repeat(3, axis=0)\n"
        "input()\n"
        "try:\n"
        "    pca = EigenGamePCA(4, algorithm='remembered', tol=None, batch_size=512, random_state=3)\n"
        "    pca.fit(X, checkpoint=Checkpoint(sys.argv[1], every=0))\n"
        "    print('fitted')\n"
        "except CheckpointError as error:\n"
        "    print('in use' if 'in use by another run' in str(error) else error)\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "run")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for one in processes:
        one.stdin.write("\n")
        one.stdin.flush()
    said = [one.communicate()[0].strip() for one in processes]
    assert set(said) <= {"fitted", "in use"}
    assert "fitted" in said
    resumed = game_pca(**OPTIONS).fit(X, checkpoint=tmp_path / "run")
    same(resumed, game_pca(**OPTIONS).fit(X))
    assert not [one for one in (tmp_path / "run").iterdir() if one.name.startswith(".")]


def test_a_fit_that_fails_gives_the_folder_back(tmp_path):
    broken = X.copy()
    broken[-1, 0] = np.nan
    for _ in range(2):
        with pytest.raises(ValueError, match="NaN"):
            game_pca(**OPTIONS).fit(broken, checkpoint=tmp_path)

"""The program as a separate process: fast help, interruption and resumption."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import eigengame
from eigengame import EigenGamePCA

from .conftest import FEATURES, SOURCE, K


def test_help_and_version_do_not_import_jax():
    code = (
        "import sys\n"
        "from eigengame.cli import main\n"
        "for arguments in (['--help'], ['fit', '--help'], ['--version'], ['fit']):\n"
        "    try:\n"
        "        main(arguments)\n"
        "    except SystemExit:\n"
        "        pass\n"
        "heavy = {'jax', 'scipy', 'sklearn', 'numpy'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
    )
    assert done.stderr.splitlines()[-1] == "heavy: []"
    assert f"eigengame {eigengame.__version__}" in done.stdout


def test_without_typer_a_message_names_the_extra_to_install(tmp_path):
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('no', name='typer')\n")
    done = subprocess.run(
        [sys.executable, "-m", "eigengame"],
        env={"PYTHONPATH": f"{tmp_path}:{SOURCE}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        'eigengame: the command line needs typer: pip install "eigengame[cli]"'
    ]


def test_a_closed_pipe_gives_no_error_message(program, model):
    end, begin = os.pipe()
    os.close(end)
    running = program("inspect", model, "--json", stdout=begin)
    os.close(begin)
    assert running.communicate() == (None, "")
    assert running.returncode == 1


def test_shell_completion(program):
    typed = {"COMP_WORDS": "eigengame fit data.npy --algorithm rem", "COMP_CWORD": "4"}
    completion = program(_EIGENGAME_COMPLETE="complete_bash", **typed)
    assert completion.communicate() == ("remembered\n", "")


def test_a_fit_interrupted_twice_equals_an_uninterrupted_fit(program, tmp_path):
    rows, data = np.random.default_rng(1).normal(size=(4000, FEATURES)), tmp_path / "slow.npy"
    np.save(data, rows.astype(np.float32))
    options = {"batch_size": 8, "random_state": 0}
    whole = EigenGamePCA(K, **options).fit(data)
    command = ["fit", "slow.npy", "-k", K, "--batch-size", 8, "--checkpoint", "the run"]
    command += ["--checkpoint-every", 0, "--log", "run.jsonl", "-q", "--json"]
    reached = []
    for stop in (signal.SIGINT, signal.SIGTERM):
        running = program(*command)
        wait_for_another_line(tmp_path / "run.jsonl", running)
        running.send_signal(stop)
        out, err = running.communicate()
        assert (running.returncode, out) == (130, "")
        message, command_line = err.splitlines()
        assert "saved in the run: make the same call again" in message
        reached.append(int(message.split("after ")[1].split(" rows")[0]))
        assert shlex.split(command_line) == ["python", "-m", "eigengame", *map(str, command)]
        assert not (tmp_path / "slow.safetensors").exists()
    assert 0 < reached[0] <= reached[1] < 4000
    running = program(*shlex.split(command_line)[3:])
    assert json.loads(running.communicate()[0])["rows"] == 4000
    again = EigenGamePCA.load(tmp_path / "slow.safetensors")
    np.testing.assert_array_equal(again.components_, whole.components_)
    np.testing.assert_array_equal(again.explained_variance_, whole.explained_variance_)


# A signal that arrives within a callback of the garbage collector: its exception is printed and ignored.
LOST = """
import gc, signal, sys, threading
from eigengame.cli import main

def callback(phase, info):
    if sys.argv[2] in sys.modules and threading.current_thread() is threading.main_thread():
        gc.callbacks.remove(callback)
        signal.raise_signal(int(sys.argv[1]))

gc.callbacks.append(callback)
main(["fit", "slow.npy", "-k", "3", "-q"])
"""


@pytest.mark.parametrize(
    ("number", "imported"),
    [
        (signal.SIGTERM, "jax"),
        (signal.SIGINT, "eigengame.solver.passes.passes"),
        (signal.SIGTERM, "eigengame.solver.streams.one_pass"),
    ],
)
def test_a_signal_within_the_garbage_collector_is_not_lost(number, imported, tmp_path):
    np.save(tmp_path / "slow.npy", np.random.default_rng(1).normal(size=(400, FEATURES)))
    done = subprocess.run(
        [sys.executable, "-c", LOST, str(int(number)), imported],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 130, done.stderr
    assert "stopped" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "slow.safetensors").exists()


# A signal within the initialisation of a library of JAX, in which an exception ends the process.
IMPORTING = """
import signal, sys
from eigengame.cli import main

def profile(frame, event, _):
    if event == "call" and frame.f_code.co_filename.endswith("enum.py") and "jaxlib.mlir" in sys.modules:
        sys.setprofile(None)
        signal.raise_signal(signal.SIGTERM)

sys.setprofile(profile)
main(sys.argv[1:])
"""


@pytest.mark.parametrize("command", [["fit", "slow.npy", "-q"], ["inspect", "slow.safetensors"]])
def test_a_signal_while_jax_is_imported_ends_the_command(command, tmp_path):
    np.save(tmp_path / "slow.npy", np.random.default_rng(1).normal(size=(400, FEATURES)))
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING, *command],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 130, done.stderr
    assert "stopped" in done.stderr.splitlines()[-1]


def wait_for_another_line(path, running):
    """Wait until a run has written another line of its log."""
    before = path.read_text().count("\n") if path.exists() else 0
    while not path.exists() or path.read_text().count("\n") == before:
        assert running.poll() is None, running.communicate()
        time.sleep(0.01)


@pytest.mark.slow
def test_compiled_programs_are_cached_for_the_next_command(program, tmp_path, data):
    folder, blocked = tmp_path / "kept", tmp_path / "file"
    blocked.write_text("")
    # A cache folder that cannot be created is not an error.
    for place in (folder, blocked):
        arguments = ("fit", data, "-k", "2", "--quiet", "--force")
        with program(*arguments, EIGENGAME_CACHE=str(place)) as done:
            output = done.communicate(timeout=120)
        assert done.returncode == 0, output
    assert any(folder.iterdir())

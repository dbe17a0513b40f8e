"""Errors are one or two lines with the fix, without a traceback."""

from pathlib import Path

import numpy as np
import pytest

from eigengame.cli.app import COMMANDS
from eigengame.estimator.inputs import SMALL

from .conftest import FEATURES, ROWS, K


def assert_error(done, code, *texts):
    """Check the exit code of a command, and that its short message contains these texts."""
    assert done.code == code
    assert done.out == ""
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) <= 2
    assert done.err.startswith("eigengame: ")
    for text in texts:
        assert text in done.err
    assert not list(Path.cwd().glob("*.safetensors"))


def test_a_missing_file(run):
    assert_error(run("fit", "nowhere.npy"), 1, "nowhere.npy does not exist")


def test_an_empty_file(run):
    Path("empty.npy").touch()
    assert_error(run("fit", "empty.npy"), 1, "empty.npy is empty")


def test_an_unknown_ending(run):
    Path("data.docx").write_text("words")
    assert_error(run("fit", "data.docx"), 1, "data.docx does not end in one of .npy")


def test_a_wrong_key(run, x):
    np.savez("two.npz", a=x, b=x)
    assert_error(run("fit", "two.npz", "--key", "c"), 1, "'c'", "a")


def test_a_key_for_data_without_keys(run, data):
    assert_error(run("fit", data, "--key", "c"), 1, "does not belong to this kind of data")


def test_strings(run, files):
    assert_error(run("fit", files / "data.csv"), 1, "kind")


def test_strings_in_an_array(run):
    np.save("words.npy", np.array([["a", "b"], ["c", "d"]]))
    assert_error(run("fit", "words.npy"), 1, "<U1")


def test_a_truncated_file(run, data):
    Path("cut.npy").write_bytes(data.read_bytes()[:2000])
    assert_error(run("fit", "cut.npy"), 1, "cut.npy")


def test_more_components_than_features(run, data):
    assert_error(
        run("fit", data, "-k", 99, "-q"), 1, "-k 99 is more", f"give a number from 1 to {FEATURES}"
    )


def test_nan(run, x):
    gone = x.copy()
    gone[5, 2] = np.nan
    np.save("gone.npy", gone)
    assert_error(run("fit", "gone.npy", "-k", K, "-q"), 1)


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "many"])
def test_an_invalid_number_of_components(run, data, text):
    assert_error(run("fit", data, f"-k={text}"), 2, "-k", "See eigengame fit --help")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--passes", 0),
        ("--algorithm", "magic"),
        ("--batch-size", "some"),
        ("--missing", "guess"),
        ("--dtype", "int8"),
        ("--image-size", "wide"),
    ],
)
def test_an_invalid_option_value(run, data, option, value):
    assert_error(run("fit", data, option, value), 2, option, "See eigengame fit --help")


@pytest.mark.parametrize(("option", "value"), [("--tol", -1), ("--forget", 2)])
def test_a_value_out_of_range(run, data, option, value):
    assert_error(run("fit", data, option, value, "-q"), 2, option.strip("-"))


def test_an_unknown_option(run, data):
    assert_error(
        run("fit", data, "--pases", 2), 2, "--pases", "--passes", "See eigengame fit --help"
    )


def test_an_unknown_command(run):
    assert_error(run("fitt"), 2, "fitt", "See eigengame --help")


def test_a_missing_argument(run):
    assert_error(run("fit"), 2, "DATA")


def test_an_invalid_output_path(run, data):
    assert_error(
        run("fit", data, "-o", "model.pkl"), 1, "give a file name that ends in .safetensors"
    )
    assert_error(
        run("fit", data, "-o", "no/m.safetensors"), 1, "no is not a folder: create it first"
    )
    assert_error(
        run("transform", data, data, "-o", "s.txt"),
        1,
        ".npy or .csv or .tsv or .eigenvec or .parquet or .zarr",
    )


def test_a_log_in_a_missing_folder(run, data):
    assert_error(
        run("fit", data, "-k", K, "--log", "no/run.jsonl"), 1, "no/run.jsonl: No such file"
    )


def test_a_file_that_is_not_a_model(run, data):
    for command in (("inspect", data), ("transform", data, data), ("compare", data, data)):
        assert_error(run(*command), 1, "is damaged or not a safetensors file")
    assert_error(run("inspect", "nowhere.safetensors"), 1, "nowhere.safetensors does not exist")


def test_a_truncated_model_file(run, model):
    Path("cut.st").write_bytes(model.read_bytes()[:-100])
    assert_error(run("inspect", "cut.st"), 1, "cut.st is damaged", "copy or write it again")


def test_data_of_another_width(run, model):
    np.save("wide.npy", np.zeros((ROWS, FEATURES + 1)))
    assert_error(run("certify", model, "wide.npy"), 1, f"{FEATURES + 1} features", f"{FEATURES}")


def test_an_unexpected_error_is_two_lines_unless_debug_is_given(run, data, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("something deep")

    monkeypatch.setattr("eigengame.estimator.pca.EigenGamePCA.fit", broken)
    assert_error(run("fit", data, "-k", K), 1, "RuntimeError: something deep", "--debug")
    monkeypatch.chdir(data.parent)
    from eigengame.cli.app import run as plain_run

    with pytest.raises(RuntimeError, match="something deep"):
        plain_run(["fit", "data.npy", "-o", "other.safetensors", "--debug"])


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (MemoryError("the run would take 9 GiB: give a smaller batch_size."), "smaller batch_size"),
        (MemoryError(), "smaller --batch-size"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9"), "smaller --batch-size"),
        (ModuleNotFoundError("no", name="tensorboardX.writer"), "pip install tensorboardX"),
        (PermissionError(13, "Permission denied", "run.jsonl"), "run.jsonl: Permission denied"),
    ],
)
def test_errors_during_the_fit_have_a_fix(run, data, monkeypatch, error, text):
    def failing(*_, **__):
        raise error

    monkeypatch.setattr("eigengame.estimator.pca.EigenGamePCA.fit", failing)
    assert_error(run("fit", data, "-k", K), 1, text)


@pytest.mark.parametrize("command", [module.__name__.rsplit(".")[-1] for module in COMMANDS])
def test_every_command_has_help_with_examples(run, command):
    command = command.replace("_", "-")
    done = run(command, "--help")
    assert done.code == 0
    assert f"eigengame {command}" in done.out.split("Examples:")[1]
    assert "--json" in done.out
    assert "--debug" in done.out


def test_limits_on_memory_are_given_with_a_unit(run, x):
    np.savez_compressed("x.npz", x)
    assert_error(run("fit", "x.npz", "--max-bytes", "1K"), 1, "x.npz", "--max-bytes")
    for text in ("many", "8Q", "-1", "0"):
        assert_error(run("fit", "x.npz", f"--max-bytes={text}"), 2, "--max-bytes")
    assert run("fit", "x.npz", "--max-bytes", "1M", "-k", K, "-o", "m.safetensors").code == 0


def test_data_of_other_files_is_read_only_with_an_option(run, x):
    h5py = pytest.importorskip("h5py")
    with h5py.File("other.h5", "w") as file:
        file["x"] = x
    with h5py.File("x.h5", "w") as file:
        file["x"] = h5py.ExternalLink("other.h5", "/x")
    assert_error(run("fit", "x.h5", "--key", "x"), 1, "another file", "--external")
    done = run("fit", "x.h5", "--key", "x", "--external", "-k", K, "-o", "m.safetensors")
    assert done.code == 0


def test_the_path_of_the_data_is_written_on_request(run, data):
    folder = str(data.parent).encode()
    run("fit", data, "-k", K, "-q", "-o", "name.safetensors")
    assert folder not in Path("name.safetensors").read_bytes()
    run("fit", data, "-k", K, "-q", "-o", "path.safetensors", "--full-paths")
    assert folder in Path("path.safetensors").read_bytes()


def test_infinite_values_of_a_table_are_named_and_give_no_other_warning(run):
    Path("rows.csv").write_text("a,b,c\n" + "1,2,3.5\n4,inf,6\n7,8,1\n" * 20)
    done = run("fit", "rows.csv", "-k", 2, "-q")
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "rows.csv[1, 1] is inf" in done.err


def test_a_misspelt_command_ends_in_one_mark(run):
    done = run("fitt", "rows.csv")
    assert done.code == 2
    assert "Did you mean 'fit'? See eigengame --help." in done.err


def test_the_help_states_when_small_data_is_computed_in_float64(run):
    assert f"up to {SMALL:,} numbers" in " ".join(
        run("fit", "--help").out.replace("│", " ").split()
    )

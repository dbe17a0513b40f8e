"""`eigengame fit` gives the same result as the library, and writes it to the current folder."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from eigengame import EigenGamePCA

from .conftest import FEATURES, ROWS, K


def test_fit_writes_the_same_model_as_the_library_and_names_it_after_the_data(run, data, pca):
    done = run("fit", data, "-k", K)
    assert (done.code, Path("data.safetensors").is_file()) == (0, True)
    again = EigenGamePCA.load("data.safetensors")
    np.testing.assert_array_equal(again.components_, pca.components_)
    assert "Written: data.safetensors" in done.out
    assert pca.outcome_.advice in done.out
    assert f"{pca.explained_variance_ratio_[0]:.2%}" in done.out
    assert "pass 1, covariance: 400 rows (100%)" in done.err


def test_json_prints_one_object_on_stdout(run, data, pca):
    done = run("fit", data, "-k", K, "-o", "m.safetensors", "--json")
    facts = json.loads(done.out)
    assert (facts["output"], facts["components"], facts["rows"]) == ("m.safetensors", K, ROWS)
    assert facts["features"] == FEATURES
    np.testing.assert_allclose(facts["variance"], pca.explained_variance_)
    np.testing.assert_allclose(facts["certificate"]["angle"], pca.certificate_.angle)
    assert facts["outcome"]["passes"] == 1


def test_quiet_shows_no_progress(run, data):
    assert run("fit", data, "-k", K, "--quiet").err == ""


def test_options_reach_the_estimator(run, data):
    run(
        *("fit", data, "-k", K, "--tol", 0.01, "--no-center", "--whiten", "--seed", 7, "--quiet"),
        *("--dtype", "float64", "--batch-size", ROWS, "--algorithm", "auto"),
    )
    given = EigenGamePCA.load("data.safetensors").get_params()
    wanted = {"n_components": K, "tol": 0.01, "center": False, "whiten": True, "random_state": 7}
    wanted |= {"dtype": "float64", "batch_size": ROWS, "algorithm": "auto", "forget": 1.0}
    assert {name: given[name] for name in wanted} == wanted


def test_rows_can_be_shuffled(run, data, pca):
    run("fit", data, "-k", K, "--shuffle", 5, "--quiet")
    found = EigenGamePCA.load("data.safetensors")
    assert not np.array_equal(found.components_, pca.components_)
    np.testing.assert_allclose(found.mean_, pca.mean_, atol=1e-12)
    np.testing.assert_allclose(found.explained_variance_[0], pca.explained_variance_[0], rtol=1e-2)


def test_the_default_is_sixteen_components_or_the_number_of_features(run, data):
    done = run("fit", data, "--json", "-q")
    assert json.loads(done.out)["components"] == FEATURES


def test_k_can_be_a_share_of_the_variance(run, data):
    done = run("fit", data, "-k", "0.5", "--json", "-q")
    assert sum(json.loads(done.out)["share"]) >= 0.5


def test_existing_files_are_not_overwritten_without_force(run, data):
    Path("data.safetensors").write_text("precious")
    done = run("fit", data, "-k", K)
    assert done.code == 1
    assert "data.safetensors exists: give --force" in done.err
    assert Path("data.safetensors").read_text() == "precious"
    assert run("fit", data, "-k", K, "--force", "-q").code == 0
    assert EigenGamePCA.load("data.safetensors").n_components_ == K


def test_an_output_that_cannot_be_written_is_refused_before_the_fit(run, data, monkeypatch):
    def fit(*_, **__):
        raise AssertionError("the fit began")

    monkeypatch.setattr(EigenGamePCA, "fit", fit)
    Path("folder.safetensors").mkdir()
    Path("file").write_text("")
    cases = {
        "folder.safetensors": "folder.safetensors is a folder",
        "file/model.safetensors": "file is not a folder",
        f"{'long' * 62}.safetensors": "File name too long",
        f"{'l' * 240}.safetensors": "File name too long",  # with the suffix of its temporary file
    }
    if Path("/proc/self").exists():
        cases["/proc/model.safetensors"] = "cannot be written"
    for target, message in cases.items():
        done = run("fit", data, "-k", K, "-o", target, "--force", "-q")
        assert done.code == 1
        assert message in done.err
        assert len(done.err.splitlines()) == 1
    assert sorted(path.name for path in Path().iterdir()) == ["file", "folder.safetensors"]


def test_a_log_that_is_other_data_is_refused_before_the_fit(run, data):
    Path("other.json").write_text('{"a": 1}\n')
    done = run("fit", data, "-k", K, "--log", "other.json", "-q")
    assert done.code == 1
    assert "other.json exists and is not a log of a fit" in done.err
    assert Path("other.json").read_text() == '{"a": 1}\n'
    assert not Path("data.safetensors").exists()


def test_a_run_resumes_from_its_checkpoint(run, data, pca):
    command = ("fit", data, "-k", K, "--checkpoint", "run", "-o", "m.safetensors", "-q")
    assert run(*command).code == 0
    assert sorted(path.name for path in Path("run").iterdir())[-2:] == ["run.json", "run.lock"]
    assert run(*command, "--force").code == 0
    np.testing.assert_array_equal(EigenGamePCA.load("m.safetensors").components_, pca.components_)
    other = run(*command, "--force", "--seed", 5)
    assert other.code == 1
    assert "run belongs to another run: configuration.random_state was 0, is 5" in other.err


def test_changed_data_is_rejected_unless_it_is_trusted(run, data):
    shutil.copy(data, "own.npy")
    command = ("fit", "own.npy", "-k", K, "--checkpoint", "run", "-o", "m.safetensors", "-q")
    assert run(*command).code == 0
    before, rows = os.stat("own.npy"), np.load("own.npy")
    rows[1] += 1
    np.save("own.npy", rows)
    os.utime("own.npy", ns=(before.st_mtime_ns, before.st_mtime_ns))
    refused = run(*command, "--force")
    assert refused.code == 1
    assert "source.content was" in refused.err
    assert run(*command, "--force", "--trust-source").code == 0


def test_the_log_has_one_json_object_per_line(run, data):
    run("fit", data, "-k", K, "--log", "run.jsonl", "-q")
    lines = [json.loads(line) for line in Path("run.jsonl").read_text().splitlines()]
    assert lines[0]["rows"] == ROWS
    assert "every component is within tol" in lines[-1]["outcome"]


def test_columns_of_a_table_are_selected_by_name(run, files):
    done = run("fit", files / "data.csv", "-k", 2, "--columns", "f0, f3,f1", "-q", "--json")
    assert json.loads(done.out)["features"] == 3
    names = EigenGamePCA.load("data.safetensors").feature_names_in_
    assert names.tolist() == ["f0", "f3", "f1"]


def test_columns_of_an_array_are_selected_by_index(run, data, x):
    run("fit", data, "-k", 2, "--columns", "0,3,1", "-q")
    mean = EigenGamePCA.load("data.safetensors").mean_
    np.testing.assert_allclose(mean, x[:, [0, 3, 1]].mean(axis=0), rtol=1e-5)


def test_transform_repeats_the_preparation_of_the_fit(run, files, x):
    gone = np.where(np.arange(ROWS)[:, None] % 7 == 3, np.nan, x).astype(np.float32)
    np.save("gone.npy", gone)
    assert "nan" in run("fit", "gone.npy", "-k", K, "-q").err.lower()
    assert (
        run("fit", "gone.npy", "-k", K, "--missing", "mean", "--scale", "two-pass", "-q").code == 0
    )
    assert run("transform", "gone.safetensors", "gone.npy", "-q").code == 0
    scores = np.load("gone-scores.npy")
    # A row of missing values becomes the mean, here up to 2048, in float32.
    np.testing.assert_allclose(scores[3], 0, atol=1e-3)
    found = EigenGamePCA.load("gone.safetensors").explained_variance_
    np.testing.assert_allclose(scores.var(axis=0, ddof=1), found, rtol=1e-4)


def test_raw_files_need_columns_and_dtype(run, x):
    x.astype(np.float64).tofile("data.bin")
    done = run(
        "fit", "data.bin", "-k", K, "--raw-columns", FEATURES, "--raw-dtype", "float64", "-q"
    )
    assert done.code == 0
    assert EigenGamePCA.load("data.safetensors").n_samples_seen_ == ROWS


def test_a_column_can_weigh_the_rows(run, files):
    lines = (files / "data.csv").read_text().splitlines()
    weighted = [line.rsplit(",", 1)[0] + f",{2 * (i % 2)}" for i, line in enumerate(lines)]
    weighted[0] = lines[0].replace("kind", "times")
    Path("w.csv").write_text("\n".join(weighted) + "\n")
    assert run("fit", "w.csv", "-k", K, "--weights", "times", "-q").code == 0
    weighed = EigenGamePCA.load("w.safetensors")
    rows = np.array([line.split(",")[:FEATURES] for line in lines[1:]], float)[::2]
    assert weighed.n_features_in_ == FEATURES
    np.testing.assert_allclose(weighed.mean_, rows.mean(axis=0), rtol=1e-5)


@pytest.mark.parametrize("ending", [".npy", ".csv.gz", ".zarr/", "-ubyte.gz", ""])
def test_the_model_is_named_after_the_data_without_its_ending(ending):
    from eigengame.cli.output_paths import data_stem

    assert data_stem(f"some/where/name{ending}") == "name"
    assert data_stem(f"s3://bucket/name{ending}") == "name"


def test_grey_images_are_fitted_at_their_own_size_and_reported(run):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    Path("pictures").mkdir()
    for i in range(12):
        pixels = rng.integers(0, 256, (4, 3), dtype=np.uint8)
        image.fromarray(pixels).save(f"pictures/{i:02d}.png")
    assert run("fit", "pictures", "-k", 2, "-o", "grey.safetensors", "-q").code == 0
    assert EigenGamePCA.load("grey.safetensors").n_features_in_ == 12
    assert run("report", "grey.safetensors", "pictures", "-o", "grey.html").code == 0
    assert run("fit", "pictures", "-k", 2, "--colour", "-q").code == 0
    assert EigenGamePCA.load("pictures.safetensors").n_features_in_ == 36
    wrong = run("transform", "grey.safetensors", "pictures", "--colour", "-q")
    assert wrong.code != 0
    assert "36 features" in wrong.err

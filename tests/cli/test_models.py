"""Commands on models: inspect, certify, merge, compare, report, demo, algorithms."""

import json
from pathlib import Path

import numpy as np
import pytest

from eigengame import EigenGamePCA, metrics
from eigengame.algorithms import REGISTRY
from eigengame.cli.estimator_options import ALGORITHMS
from tests.report.models import read_page

from .conftest import ROWS, K


def test_inspect_shows_components_and_their_origin(run, model, pca, data):
    done = run("inspect", model)
    assert done.code == 0
    assert f"from 400 rows of {data.name}," in done.out
    assert f"{pca.explained_variance_[0]:.4g}" in done.out
    facts = json.loads(run("inspect", model, "--json").out)
    assert facts["parameters"]["n_components"] == K
    assert facts["provenance"]["source"]["shape"] == [400, 12]
    np.testing.assert_allclose(facts["share"], pca.explained_variance_ratio_)


def test_certify_measures_on_the_data_and_writes_the_output(run, model, data, x):
    done = run("certify", model, data, "-o", "certified.safetensors")
    assert done.code == 0
    assert "certified with probability" in done.out
    assert "≤" in done.out
    kept = EigenGamePCA.load("certified.safetensors")
    truth = metrics.true_components(x - x.mean(axis=0), K)[1]
    angles = metrics.angular_error(kept.components_.astype(float), truth)
    assert kept.certificate_.kind == "certified"
    assert (angles <= kept.certificate_.angle + 1e-6).all()
    facts = json.loads(run("certify", model, data, "--json").out)
    np.testing.assert_allclose(facts["certificate"]["angle"], kept.certificate_.angle)


def test_merge_combines_the_rows_of_all_models(run, x, pca):
    for part in range(4):
        np.save(f"part{part}.npy", np.roll(x, part, axis=0))
        run("fit", f"part{part}.npy", "-k", K, "-q")
    parts = [f"part{part}.safetensors" for part in range(4)]
    done = run("merge", *parts, "-o", "all.safetensors", "--json")
    assert json.loads(done.out)["rows"] == 4 * ROWS
    merged = EigenGamePCA.load("all.safetensors")
    angles = metrics.angular_error(merged.components_, pca.components_)
    assert angles.max() < 1e-3
    assert run("merge", *parts, "-o", "all.safetensors").code == 1
    assert "of part0.safetensors + part1" in run("inspect", "all.safetensors").out
    alone = run("merge", parts[0], "-o", "one.safetensors")
    assert (alone.code, "two or more models" in alone.err) == (2, True)


def test_merge_rejects_models_with_other_numbers_of_components(run, data, model):
    run("fit", data, "-k", 2, "-o", "two.safetensors", "-q")
    done = run("merge", model, "two.safetensors", "-o", "all.safetensors")
    assert (done.code, "two.safetensors cannot be merged with" in done.err) == (1, True)
    assert "same n_components" in done.err
    assert not Path("all.safetensors").exists()


def test_compare_matches_components_before_measuring(run, model, pca):
    facts = json.loads(run("compare", model, model, "--json").out)
    assert facts["matches"] == [1, 2, 3]
    assert max(facts["angle"]) < 1e-6
    permuted = EigenGamePCA.load(model)
    permuted.components_ = pca.components_[[1, 0, 2]]
    permuted.save("permuted.safetensors")
    facts = json.loads(run("compare", model, "permuted.safetensors", "--json").out)
    assert facts["matches"] == [2, 1, 3]
    assert max(facts["angle"]) < 1e-6
    assert facts["subspace_distance"] == pytest.approx(0, abs=1e-6)
    assert "Subspace distance" in run("compare", model, "permuted.safetensors").out


def test_compare_prints_principal_angles(run, model, pca):
    """The first two components are turned within their plane, the third by 0.3 rad out of the subspace."""
    turned = EigenGamePCA.load(model)
    first, second, third = pca.components_
    outside = np.linalg.svd(pca.components_)[2][-1]
    turned.components_ = np.stack(
        [
            (first + second) / np.sqrt(2),
            (first - second) / np.sqrt(2),
            np.cos(0.3) * third + np.sin(0.3) * outside,
        ]
    ).astype(pca.components_.dtype)
    turned.save("turned.safetensors")
    facts = json.loads(run("compare", model, "turned.safetensors", "--json").out)
    np.testing.assert_allclose(facts["principal_angles"], [0, 0, 0.3], atol=1e-6)
    assert max(facts["angle"]) == pytest.approx(np.pi / 4, abs=1e-6)
    assert "0.3 rad." in run("compare", model, "turned.safetensors").out


def test_compare_rejects_other_features(run, data, model):
    run("fit", data, "-k", 2, "--columns", "0,1,2", "-o", "three.safetensors", "-q")
    done = run("compare", model, "three.safetensors")
    assert (done.code, "12 features" in done.err, "3: give" in done.err) == (1, True, True)


def named(x, names, path):
    pandas = pytest.importorskip("pandas")
    pca = EigenGamePCA(K, random_state=0).fit(pandas.DataFrame(x, columns=names))
    pca.save(path)


def test_compare_aligns_features_by_name(run, x):
    """The order of the columns was ignored: the same data seemed to have other components."""
    names = [f"gene{i}" for i in range(x.shape[1])]
    named(x, names, "one.safetensors")
    named(x[:, ::-1], names[::-1], "turned.safetensors")
    facts = json.loads(run("compare", "one.safetensors", "turned.safetensors", "--json").out)
    assert max(facts["angle"]) < 1e-6
    named(x, ["other", *names[1:]], "other.safetensors")
    done = run("compare", "one.safetensors", "other.safetensors")
    assert (done.code, "different features" in done.err) == (1, True)


def test_compare_warns_if_the_order_of_features_cannot_be_checked(run, x, model):
    named(x, [f"gene{i}" for i in range(x.shape[1])], "named.safetensors")
    done = run("compare", model, "named.safetensors")
    assert done.code == 0
    assert "the order of features cannot be checked" in done.err


def test_algorithms_lists_the_registry_auto_and_exact(run):
    facts = json.loads(run("algorithms", "--json").out)["algorithms"]
    assert set(facts) == {"auto", "exact", *REGISTRY}
    assert all(line.endswith(".") for line in facts.values())
    done = run("algorithms")
    assert "covariance" in done.out
    assert all(name in done.out for name in facts)


def test_the_list_of_algorithms_matches_the_registry():
    assert list(ALGORITHMS) == ["auto", "exact", *REGISTRY]


def test_report_is_written_with_and_without_data(run, model, data):
    pytest.importorskip("eigengame.report")
    assert "Written: model.html" in run("report", model).out
    done = run(
        "report", model, data, "-o", "with.html", "--image-shape", "3x4", "--title", "T", "--json"
    )
    assert json.loads(done.out)["output"] == "with.html"
    assert Path("with.html").stat().st_size > Path("model.html").stat().st_size
    assert run("report", model).code == 1


def test_report_reads_labels_from_a_column_or_a_file(run, files):
    pytest.importorskip("eigengame.report")
    table, names = files / "data.csv", ",".join(f"f{i}" for i in range(12))
    run("fit", table, "-k", K, "--columns", names, "-o", "m.safetensors", "-q")
    assert run("report", "m.safetensors", table, "--labels", "kind").code == 0
    Path("labels.txt").write_text("\n".join("xyz"[i % 3] for i in range(ROWS)) + "\n")
    assert run("report", "m.safetensors", table, "--labels", "labels.txt", "--force").code == 0
    wrong = run("report", "m.safetensors", table, "--labels", "colour", "--force")
    assert (wrong.code, "f0, f1" in wrong.err) == (1, True)
    alone = run("report", "m.safetensors", "--labels", "kind", "--force")
    assert (alone.code, "give DATA too" in alone.err) == (2, True)


def test_report_reads_ids_times_and_an_overlay(run, files):
    lines = (files / "data.csv").read_text().splitlines()
    dated = [
        f"{lines[0]},name,day",
        *(f"{line},{i:03d},1998-03-{i % 28 + 1:02d}" for i, line in enumerate(lines[1:])),
    ]
    Path("t.csv").write_text("\n".join(dated) + "\n")
    Path("ids.txt").write_text("\n".join(f"new {i}" for i in range(400)))
    columns = ",".join(f"f{i}" for i in range(12))
    assert run("fit", "t.csv", "-k", 3, "--columns", columns, "-o", "m.safetensors", "-q").code == 0
    options = ("--overlay", files / "data.csv", "--overlay-ids", "ids.txt")
    done = run("report", "m.safetensors", "t.csv", "--ids", "name", "--time", "day", *options)
    assert done.code == 0, done.err
    found = read_page("m.html")["scores"]
    assert found["ids"][0] == f"{found['rows'][0]:03d}"  # as written, not as a number
    assert found["time"]["name"] == "day"
    assert found["time"]["dates"]
    assert (found["overlay"]["name"], found["overlay"]["of"]) == ("data.csv", 400)
    assert found["overlay"]["ids"][0] == f"new {found['overlay']['rows'][0]}"
    wrong = run("report", "m.safetensors", "t.csv", "--time", "colour", "--force")
    assert "--time colour: neither a file nor a column" in wrong.err
    for option in ("--ids", "--time", "--overlay"):
        assert "give DATA too" in run("report", "m.safetensors", option, "t.csv", "--force").err
    alone = run("report", "m.safetensors", "t.csv", "--overlay-ids", "name", "--force")
    assert "give --overlay too" in alone.err


def test_demo_prints_components_and_writes_a_report(run):
    pytest.importorskip("eigengame.report")
    done = run("demo")
    assert done.code == 0
    assert "1797 images" in done.out
    assert "every component is within tol" in done.out
    assert Path("eigengame-demo.html").is_file()


def test_merge_aligns_columns_by_name_and_rejects_other_options(run, x, pca):
    names = [f"f{i}" for i in range(x.shape[1])]
    for name, order in (("one", slice(None)), ("two", slice(None, None, -1))):
        lines = [",".join(names[order]), *(",".join(map(repr, map(float, r[order]))) for r in x)]
        Path(f"{name}.csv").write_text("\n".join(lines) + "\n")
        run("fit", f"{name}.csv", "-k", K, "-q")
    assert run("merge", "one.safetensors", "two.safetensors", "-o", "both.safetensors").code == 0
    merged = EigenGamePCA.load("both.safetensors")
    assert list(merged.feature_names_in_) == names
    assert metrics.angular_error(merged.components_, pca.components_).max() < 1e-3
    run("fit", "one.csv", "-k", K, "-q", "--no-center", "-o", "plain.safetensors")
    done = run("merge", "one.safetensors", "plain.safetensors", "-o", "all.safetensors")
    assert (done.code, "center=True and center=False" in done.err) == (1, True)


def test_merge_warns_if_only_one_model_has_names(run, x, data):
    names = [f"f{i}" for i in range(x.shape[1])]
    lines = [",".join(names), *(",".join(map(repr, map(float, row))) for row in x)]
    Path("named.csv").write_text("\n".join(lines) + "\n")
    run("fit", "named.csv", "-k", K, "-q")
    run("fit", data, "-k", K, "-q", "-o", "plain.safetensors")
    done = run("merge", "named.safetensors", "plain.safetensors", "-o", "all.safetensors")
    assert done.code == 0
    assert "Warning: plain.safetensors" in done.err
    assert "order of features cannot be checked" in done.err


def test_fit_with_forgetting_is_refined_on_weighted_rows(run, x, data):
    done = run("fit", data, "-k", K, "--forget", 0.99, "--tol", 0.01, "-q", "--json")
    assert sum(json.loads(done.out)["share"]) <= 1
    weights = 0.99 ** np.arange(ROWS)[::-1]
    about = x - weights @ x / weights.sum()
    truth = metrics.true_components(np.sqrt(weights)[:, None] * about, K)[1]
    found = EigenGamePCA.load("data.safetensors").components_.astype(float)
    assert metrics.angular_error(found, truth).max() < 0.01


def test_fit_rejects_options_that_its_algorithm_does_not_use(run, data):
    done = run("fit", data, "-k", K, "--algorithm", "oja", "--tol", 0.01, "-q")
    assert (done.code, "tol=0.01" in done.err) == (1, True)

import base64
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from eigengame import EigenGamePCA
from eigengame.report import ReportError, page, write_report
from eigengame.report.views import PARTIAL_SORT_ABOVE, largest_indices
from eigengame.sources import ArraySource, SourceError
from tests.report.models import HOSTILE, dequantize, make_layered_model, make_model, read_page


@pytest.fixture
def rows():
    return np.random.default_rng(1).normal(size=(60, 12))


@pytest.fixture
def target(tmp_path):
    return tmp_path / "report.html"


# ---------------------------------------------------------------------- content


def test_the_page_contains_the_main_facts(target):
    model = make_model(k=3, d=12)
    assert write_report(model, target) == target
    content = read_page(target)
    assert (content["rows"], content["features"], content["passes"]) == (1234, 12, 7)
    assert content["outcome"] == {
        "name": "converged",
        "happened": "Every component is within tol by its certificate",
        "advice": "Nothing to do.",
    }
    assert content["certificate"]["kind"] == "certified"
    assert content["certificate"]["words"] == (
        "Certified with probability 0.999. 2 of 3 components within 0.05 rad, 1 without a bound."
    )
    np.testing.assert_allclose(
        content["components"]["share"], model.explained_variance_ratio_, rtol=1e-4
    )
    *bounds, last = content["components"]["angle"]
    np.testing.assert_allclose(bounds, model.certificate_.angle[:-1], rtol=1e-4)
    assert last is None  # pi/2 is no bound
    run = dict(content["run"])
    assert run["Route"] == "remembered"
    assert run["Source"] == "not recorded"
    assert "eigengame" in run["Versions"]
    assert run["Parameters"] == "n_components=3, random_state=0"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", run["Report written"])


def test_numbers_of_components_have_more_digits_than_are_shown(target):
    # Rounded to five digits first, 16.67466 would be shown as 16.68.
    model = make_model(k=3, d=12)
    model.explained_variance_ = np.array([50.16514131, 16.67466125, 1.0])
    assert read_page(write_report(model, target))["components"]["variance"] == pytest.approx(
        model.explained_variance_, rel=1e-8
    )


def test_components_are_judged_by_the_requested_tolerance(tmp_path, target, fitted):
    fitted.save(tmp_path / "m.safetensors")
    for model, tol, words in (
        (EigenGamePCA.load(tmp_path / "m.safetensors"), 1e-3, "the tol of the fit, 0.001 rad"),
        (make_model(), 0.05, "No tol was requested: components are judged by 0.05 rad"),
    ):
        found = read_page(write_report(model, target))["certificate"]
        assert (found["tol"], found["requested"]) == (tol, tol == 1e-3)
        assert words in found["judged"]
        assert f"within {tol:g} rad" in found["words"]


@pytest.mark.parametrize(
    ("route", "shown"),
    [("alpha", True), ("sequential", True), ("mu", False), ("remembered, then refined", False)],
)
def test_only_the_algorithms_of_the_paper_have_penalties(target, route, shown):
    assert read_page(write_report(make_model(route=route), target))["penalties"] == shown


def test_a_loaded_model_names_its_source(tmp_path, target, fitted):
    digits = load_digits().data
    fitted.save(tmp_path / "m.safetensors")
    model = EigenGamePCA.load(tmp_path / "m.safetensors")
    write_report(model, target, data=digits, image_shape=(8, 8))
    content = read_page(target)
    run = dict(content["run"])
    assert run["Source"] == "X (1,797 x 64, float64)"
    assert run["Model written"].endswith("UTC")
    assert content["certificate"]["measured"]
    assert all(value is not None for value in content["components"]["penalty"])
    assert content["scores"]["of"] == len(digits)


def test_the_page_loads_nothing(target):
    write_report(make_model(), target)
    text = target.read_text()
    addresses = set(re.findall(r"https?://[^\"' ]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # an XML namespace, not a link
    assert set(re.findall(r"(?:src|href)=\"([^\"]*)\"", text)) <= {
        "data:,",
        *(
            f"#{part}"
            for part in ("variance", "scores", "components", "layers", "table", "run", "reading")
        ),
    }
    assert "default-src 'none'" in text


def test_every_script_is_in_the_page():
    folder = Path(page.__file__).parent / "assets"
    assert sorted(path.name for path in folder.glob("*.js")) == sorted(page.SCRIPTS)
    for name in page.SCRIPTS:
        assert "</script" not in (folder / name).read_text()


@pytest.mark.parametrize("kind", ["certified", "conditional", "estimate"])
def test_every_kind_of_certificate_is_explained(target, kind):
    write_report(make_model(kind=kind), target)
    content = read_page(target)["certificate"]
    assert content["kind"] == kind
    assert content["measured"] == (kind != "estimate")
    assert len(content["words"]) > 10
    assert len(content["explained"]) > 50


def test_missing_measurements_are_null_not_nan(target):
    model = make_model(kind="estimate")
    model.explained_variance_[1] = np.inf
    write_report(model, target)
    content = read_page(target)["components"]
    assert content["penalty"] == content["residual"] == content["paper"] == [None] * 3
    assert content["variance"][1] is None
    assert "NaN" not in json.dumps(content)


# ---------------------------------------------------------------------- text that looks like HTML


def test_html_in_names_and_labels_stays_text(target, rows):
    model = make_model()
    model._source = {"name": HOSTILE, "shape": [None, 12], "dtype": "float64"}
    write_report(
        model,
        target,
        data=rows,
        labels=[HOSTILE, "b"] * 30,
        feature_names=[f"{HOSTILE}{i}" for i in range(12)],
        title=HOSTILE,
    )
    text = target.read_text()
    assert HOSTILE not in text
    assert text.count("</script>") == 2
    content = read_page(target)
    assert content["source"] == HOSTILE
    assert HOSTILE in content["scores"]["labels"]["classes"]
    assert all(name.startswith(HOSTILE) for name in content["loadings"]["names"])
    assert "<title>&lt;/script&gt;" in text


def test_placeholders_in_a_title_are_not_expanded(target):
    write_report(make_model(), target, title="{{script}} {{nowhere}}")
    assert "<h1>{{script}} {{nowhere}}</h1>" in target.read_text()


# ---------------------------------------------------------------------- rows


def test_without_data_there_are_no_scores(target):
    write_report(make_model(), target)
    assert read_page(target)["scores"] is None


def test_scores_equal_those_of_transform(target, rows):
    model = make_model()
    write_report(model, target, data=rows)
    content = read_page(target)["scores"]
    assert sorted(content["rows"]) == list(range(60))
    scores = model.transform(rows)[content["rows"]]
    for i, column in enumerate(content["columns"]):
        span = np.ptp(scores[:, i])
        np.testing.assert_allclose(dequantize(column), scores[:, i], atol=span / 1e4)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, ArraySource, pd.DataFrame, list])
def test_data_can_be_any_input_of_transform(target, rows, kind):
    write_report(make_model(), target, data=kind(rows), labels=range(60))
    assert read_page(target)["scores"]["of"] == 60


def test_the_sample_of_rows_is_even_and_reproducible(tmp_path):
    rows = np.random.default_rng(0).normal(size=(1000, 12))
    for name in ("a", "b"):
        write_report(make_model(), tmp_path / f"{name}.html", data=rows, most=100)
    first, second = (read_page(tmp_path / f"{name}.html")["scores"] for name in ("a", "b"))
    assert first == second
    chosen = np.sort(first["rows"])
    assert (chosen // 10 == np.arange(100)).all()  # one of each ten
    assert len(set(chosen % 10)) == 10  # at varying positions


def test_a_stream_of_unknown_length_is_sampled_evenly(target):
    rows = np.random.default_rng(0).normal(size=(3000, 12))
    model = make_model()
    write_report(model, target, data=(piece for piece in np.split(rows, 10)), most=300)
    content = read_page(target)["scores"]
    assert content["of"] == 3000
    assert len(set(content["rows"])) == 300
    per_tenth = np.bincount(np.asarray(content["rows"]) // 300, minlength=10)
    assert per_tenth.min() > 10
    scores = model.transform(rows)[content["rows"], 0]
    np.testing.assert_allclose(dequantize(content["columns"][0]), scores, atol=1e-3)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["b", "a"] * 30, ["a", "b"]),
        ([True, False] * 30, ["False", "True"]),
        (np.tile([10, 9, 2], 20), ["2", "9", "10"]),
        (np.tile([1.0, np.nan], 30), ["1", "no label"]),
        (np.array(["x", None] * 30, dtype=object), ["x", "no label"]),
        (pd.Categorical(["u", "v"] * 30), ["u", "v"]),
    ],
)
def test_texts_and_few_whole_numbers_are_classes(target, rows, labels, classes):
    write_report(make_model(), target, data=rows, labels=labels)
    content = read_page(target)["scores"]
    assert content["labels"]["kind"] == "classes"
    assert content["labels"]["classes"] == classes
    expected = pd.Series(labels, dtype=object).iloc[content["rows"]]
    found = [classes[code] for code in content["labels"]["codes"]]
    same = [a == b or a == "no label" for a, b in zip(found, map(_whole, expected), strict=True)]
    assert all(same)


def _whole(label):
    return str(int(label)) if isinstance(label, float) and label == label else str(label)


@pytest.mark.parametrize("labels", [np.linspace(0, 1, 60), np.arange(60)])
def test_other_numbers_are_a_scale(target, rows, labels):
    write_report(make_model(), target, data=rows, labels=labels)
    content = read_page(target)["scores"]
    assert content["labels"]["kind"] == "numbers"
    np.testing.assert_allclose(content["labels"]["values"], labels[content["rows"]], rtol=1e-4)


def test_the_rarest_of_more_than_forty_classes_are_grouped(target, rows):
    labels = ["common"] * 12 + [f"rare {i:02d}" for i in range(48)]
    write_report(make_model(), target, data=rows, labels=labels)
    content = read_page(target)["scores"]["labels"]
    assert len(content["classes"]) == 40
    assert "common" in content["classes"]
    assert content["classes"][-1] == "other"
    assert content["grouped"] == 10
    assert content["codes"].count(39) == 10


def test_forty_classes_are_not_grouped(target, rows):
    write_report(make_model(), target, data=rows, labels=[f"class {i % 40}" for i in range(60)])
    content = read_page(target)["scores"]["labels"]
    assert (len(content["classes"]), content["grey"], content["grouped"]) == (40, 40, 0)


def test_labels_have_the_name_of_their_column(target, rows):
    write_report(
        make_model(), target, data=rows, labels=pd.Series(["a", "b"] * 30, name="population")
    )
    assert read_page(target)["scores"]["labels"]["name"] == "population"


# ---------------------------------------------------------------------- components


def test_components_of_images_are_images(target):
    model = make_model(k=2, d=48)
    write_report(model, target, image_shape=(4, 4, 3))
    content = read_page(target)
    assert content["loadings"] is None
    shown = content["pictures"]
    assert (shown["height"], shown["width"], shown["channels"]) == (4, 4, ["red", "green", "blue"])
    codes = np.frombuffer(base64.b64decode(shown["images"]["codes"]), np.int8).reshape(2, 48)
    values = codes / 127 * np.array(shown["images"]["sizes"])[:, None]
    np.testing.assert_allclose(values, model.components_, atol=0.005)
    np.testing.assert_allclose(dequantize(shown["mean"]), model.mean_, atol=1e-3)


def test_large_images_are_downsampled_by_means(target):
    model = make_model(k=2, d=300 * 10)
    write_report(model, target, image_shape=(10, 300))
    shown = read_page(target)["pictures"]
    assert (shown["factor"], shown["height"], shown["width"]) == (3, 4, 100)
    mean = model.mean_.reshape(10, 300)
    first = dequantize(shown["mean"]).reshape(4, 100)
    assert first[0, 0] == pytest.approx(mean[:3, :3].mean(), abs=1e-3)
    assert first[3, 99] == pytest.approx(mean[9:, 297:].mean(), abs=1e-3)


def test_the_image_shape_of_a_source_is_used(target, rows):
    source = ArraySource(rows)
    source.image_shape = (3, 4)
    write_report(make_model(), target, data=source)
    assert read_page(target)["pictures"]["width"] == 4
    source.image_shape = (5, 5)
    write_report(make_model(), target, data=source)
    assert read_page(target)["pictures"] is None


@pytest.mark.parametrize(("features", "shape"), [(64, [8, 8, 1]), (48, [4, 4, 3])])
def test_a_square_is_guessed_only_on_request(target, features, shape):
    write_report(make_model(d=features), target)
    assert read_page(target)["pictures"] is None
    write_report(make_model(d=features), target, image_shape="guess")
    shown = read_page(target)["pictures"]
    assert [shown["height"], shown["width"], len(shown["channels"])] == shape


def test_a_fit_without_centring_has_no_mean_image(target):
    model = make_model(d=16)
    model.center = False
    write_report(model, target, image_shape=(4, 4))
    assert read_page(target)["pictures"]["mean"] is None


def test_loadings_are_named_in_descending_order(target):
    model = make_model(k=2, d=30)
    names = [f"gene {i}" for i in range(30)]
    model.feature_names_in_ = np.array(names, dtype=object)
    write_report(model, target)
    content = read_page(target)["loadings"]
    for i in range(2):
        order = np.argsort(-np.abs(model.components_[i]))[:20]
        assert [content["names"][f] for f in content["features"][i]] == [names[f] for f in order]
        np.testing.assert_allclose(content["values"][i], model.components_[i][order], rtol=1e-3)
    write_report(model, target, feature_names=[f"snp {i}" for i in range(30)])
    assert all(name.startswith("snp") for name in read_page(target)["loadings"]["names"])


# ---------------------------------------------------------------------- sizes


def test_components_of_activations_have_shares_by_layer(target):
    model = make_layered_model()
    held = read_page(write_report(model, target))
    shares = np.square(model.components_).reshape(3, 3, 4).sum(axis=2)
    content = np.array(held["layers"]["shares"])
    np.testing.assert_allclose(
        content, np.stack([shares[:, :2].sum(axis=1), shares[:, 2]], 1), atol=1e-3
    )
    assert held["layers"]["features"] == [8, 4]
    largest = int(np.abs(model.components_[0]).argmax())
    layer, place = model.layers_.at(largest)
    first = held["loadings"]["names"][held["loadings"]["features"][0][0]]
    assert first == f"{layer.name}{list(place)}"
    assert read_page(write_report(make_model(), target))["layers"] is None


def test_the_largest_of_very_many_loadings_are_found_by_a_partial_sort():
    sizes = np.abs(np.random.default_rng(0).normal(size=(2, PARTIAL_SORT_ABOVE + 1)))
    expected = np.argsort(-sizes, axis=1, kind="stable")[:, :20]
    np.testing.assert_array_equal(largest_indices(sizes, 20), expected)


def test_one_component(target, rows):
    write_report(make_model(k=1), target, data=rows)
    content = read_page(target)
    assert len(content["scores"]["columns"]) == 1
    assert len(content["components"]["variance"]) == 1


def test_two_hundred_components_of_large_images_stay_small(target):
    write_report(make_model(k=200, d=96 * 96 * 3), target, image_shape=(96, 96, 3))
    shown = read_page(target)["pictures"]
    assert (shown["shown"], shown["factor"], shown["height"]) == (200, 2, 48)
    assert target.stat().st_size < 2_500_000


def test_many_rows_and_components_stay_small(target):
    rows = np.random.default_rng(0).normal(size=(6000, 250))
    write_report(make_model(k=200, d=250), target, data=rows, labels=range(6000))
    content = read_page(target)["scores"]
    assert len(content["rows"]) == 5000
    assert len(content["columns"]) == 40
    assert target.stat().st_size < 1_200_000


def test_a_page_without_data_is_small(target):
    write_report(make_model(k=10, d=1000), target)
    assert target.stat().st_size < 165_000  # with all 10,000 loadings for the download


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"labels": ["a"]}, "labels were given without data"),
        ({"feature_names": ["a", "b"]}, "2 names, but the model has 12 features"),
        ({"feature_names": "abc"}, "is a single string"),
        ({"image_shape": (5, 5)}, "holds 25 numbers, but the model has 12"),
        ({"image_shape": (12,)}, r"give \(height, width\)"),
        ({"image_shape": ("a", 12)}, r"give \(height, width\)"),
        ({"image_shape": 12}, r"give \(height, width\)"),
        ({"image_shape": (0, 12)}, r"give \(height, width\)"),
        ({"image_shape": (3, 2, 2)}, "has 2 channels"),
        ({"image_shape": "square"}, '"guess"'),
        ({"most": 0}, "most=0"),
        ({"most": 2.5}, "most=2.5"),
    ],
)
def test_invalid_arguments_are_named(target, options, words):
    with pytest.raises(ReportError, match=words):
        write_report(make_model(), target, **options)
    assert not target.exists()


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["a"] * 59, "59 entries, but data has 60 rows"),
        (np.zeros((60, 2)), r"labels has shape \(60, 2\)"),
        ("abc", "is a single string"),
    ],
)
def test_invalid_labels_are_named(target, rows, labels, words):
    with pytest.raises(ReportError, match=words):
        write_report(make_model(), target, data=rows, labels=labels)


@pytest.mark.parametrize("count", [59, 61])
def test_labels_of_the_wrong_length_for_a_stream_are_named(target, rows, count):
    with pytest.raises(ReportError, match=f"{count} entries, but data has 60 rows"):
        write_report(make_model(), target, data=iter(np.split(rows, 4)), labels=range(count))


def test_data_of_another_width_is_rejected(target):
    with pytest.raises(ValueError, match="features"):
        write_report(make_model(), target, data=np.zeros((5, 7)))
    with pytest.raises(SourceError, match="7 features, but the fit had 12"):
        write_report(make_model(), target, data=ArraySource(np.zeros((5, 7))))


def test_other_models_and_unfitted_models_are_rejected(target):
    with pytest.raises(ReportError, match="model is a PCA"):
        write_report(PCA(), target)
    with pytest.raises(NotFittedError):
        write_report(EigenGamePCA(), target)


def test_invalid_paths_are_rejected(tmp_path):
    with pytest.raises(ReportError, match=r"ends in \.html"):
        write_report(make_model(), tmp_path / "report.pdf")
    with pytest.raises(ReportError, match="is not a folder"):
        write_report(make_model(), tmp_path / "nowhere" / "report.html")


def test_a_guess_without_a_square_is_rejected(target):
    with pytest.raises(ReportError, match="13 features do not form a square image"):
        write_report(make_model(d=13), target, image_shape="guess")


# ---------------------------------------------------------------------- colours


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_and_marks_have_enough_contrast(scheme):
    style = (Path(page.__file__).parent / "assets" / "page.css").read_text()
    block = re.findall(r":root \{(.*?)\}", style, re.S)[scheme]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
    for ground in ("page", "card"):
        for text in ("ink", "soft", "accent"):
            assert contrast(colours[text], colours[ground]) >= 4.5
        for mark in ("near", "rough", "unsure", "unmeasured"):
            assert contrast(colours[mark], colours[ground]) >= 3


def contrast(one, other):
    """Return the WCAG 2 contrast ratio of two colours."""
    lights = []
    for colour in (one, other):
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        lights.append(float(linear @ [0.2126, 0.7152, 0.0722]))
    return (max(lights) + 0.05) / (min(lights) + 0.05)

"""Columns dropped by name or number, for every kind of table."""

import numpy as np
import pytest

from eigengame import EigenGamePCA, prepare
from eigengame.report import write_report
from eigengame.sources import ArraySource, SourceError, as_source
from tests.preparation.reading import rows_of
from tests.sources.tables import assert_same_blocks, error_of, same_fingerprint

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

X = np.random.default_rng(0).normal(size=(37, 3))
WEIGHTS = np.arange(37.0) % 4
FRAME = pd.DataFrame(X, columns=["height", "weight", "age"]).assign(
    id=[f"x{i}" for i in range(37)], w=WEIGHTS
)


def as_csv(folder):
    FRAME.to_csv(folder / "x.csv", index=False)
    return folder / "x.csv"


def as_parquet(folder):
    FRAME.to_parquet(folder / "x.parquet")
    return folder / "x.parquet"


def as_arrow(folder):
    table = pa.Table.from_pandas(FRAME)
    with pa.ipc.new_file(str(folder / "x.arrow"), table.schema) as writer:
        writer.write_table(table)
    return folder / "x.arrow"


TABLES = {
    "csv": as_csv,
    "parquet": as_parquet,
    "arrow": as_arrow,
    "pandas": lambda _: FRAME,
    "polars": lambda _: pl.from_pandas(FRAME),
    "lazy": lambda _: pl.from_pandas(FRAME).lazy(),
    "table": lambda _: pa.Table.from_pandas(FRAME),
}


@pytest.fixture(params=TABLES)
def data(request, tmp_path):
    return TABLES[request.param](tmp_path)


def test_the_columns_named_are_left_out(data):
    source = as_source(data, drop=["id", "w"])
    assert source.feature_names == ["height", "weight", "age"]
    assert_same_blocks(source, X, sizes=(16,))


def test_one_column_can_be_given_without_a_list_and_weights_are_not_a_feature(data):
    assert_same_blocks(as_source(data, drop="id", weights="w"), X, WEIGHTS, sizes=(16,))
    assert_same_blocks(as_source(data, drop=["w", "id"], weights="w"), X, WEIGHTS, sizes=(16,))


def test_columns_may_be_left_out_by_number(data):
    assert as_source(data, drop=[3, 4, 0]).feature_names == ["weight", "age"]
    assert as_source(data, drop=["3", "4"]).feature_names == ["height", "weight", "age"]


def test_an_unknown_column_is_refused_with_the_nearest_name(data):
    message = error_of(as_source, data, drop=["hieght"])
    assert "no column 'hieght'" in message
    assert "did you mean 'height'?" in message
    assert "did you mean 'weight'" in error_of(as_source, data, columns=["wieght"])
    assert "no column 99" in error_of(as_source, data, drop=[99])


def test_columns_and_drop_together_are_refused(data):
    message = error_of(as_source, data, columns=["height"], drop=["id"])
    assert "columns=" in message
    assert "drop=" in message


def test_dropping_all_columns_is_refused(data):
    message = error_of(as_source, data, drop=list(FRAME.columns))
    assert "no column is left" in message


def test_an_empty_drop_keeps_the_whole_table(data):
    assert "'id'" in error_of(as_source, data, drop=[])


def test_a_column_of_text_is_refused_with_drop_as_the_fix(data):
    assert "drop=['id']" in error_of(as_source, data)


def test_the_fingerprint_depends_on_drop(data):
    one = as_source(data, drop=["id"])
    assert same_fingerprint(one, as_source(data, drop=["id"]))
    assert not same_fingerprint(one, as_source(data, drop=["id", "w"]))


def test_numbers_of_a_text_table_without_names(tmp_path):
    np.savetxt(tmp_path / "x.csv", X, delimiter=",")
    assert_same_blocks(as_source(tmp_path / "x.csv", drop=[1]), X[:, [0, 2]], sizes=(16,))
    assert_same_blocks(as_source(tmp_path / "x.csv", drop="1"), X[:, [0, 2]], sizes=(16,))
    assert "no column 3" in error_of(as_source, tmp_path / "x.csv", drop=[3])


def test_pandas_labels_that_are_numbers_are_labels():
    frame = pd.DataFrame(X, columns=[2, 0, 7])
    assert_same_blocks(as_source(frame, drop=[0]), X[:, [0, 2]], sizes=(16,))
    assert "no column 1" in error_of(as_source, frame, drop=[1])


def test_a_folder_and_a_list_of_files_leave_the_same_columns_out(tmp_path):
    for i in range(2):
        FRAME.to_parquet(tmp_path / f"{i}.parquet")
    for data in (tmp_path, [tmp_path / "0.parquet", tmp_path / "1.parquet"]):
        assert_same_blocks(as_source(data, drop=["id", "w"]), np.vstack([X, X]), sizes=(16,))


def test_chunks_of_pandas_have_no_columns_to_leave_out(tmp_path):
    with pd.read_csv(as_csv(tmp_path), chunksize=10) as chunks:
        assert "yields chunks" in error_of(as_source, chunks, drop=["id"])


# ---------------------------------------------------------------- preparation and models


def test_prepare_leaves_columns_out_of_a_table(data):
    prepared = prepare(data, drop=["id", "w"])
    assert prepared.feature_names == ["height", "weight", "age"]
    np.testing.assert_array_equal(rows_of(prepared), X)


@pytest.mark.parametrize("drop", [["b"], [1], [-2], "b", np.array([1])], ids=str)
def test_prepare_leaves_features_out_of_an_array(drop):
    source = ArraySource(X, "table")
    source.feature_names = ["a", "b", "c"]
    prepared = prepare(source, drop=drop)
    np.testing.assert_array_equal(rows_of(prepared), X[:, [0, 2]])
    assert prepared.feature_names == ["a", "c"]


def test_prepare_refuses_unknown_columns_and_both_options():
    source = ArraySource(X, "table")
    source.feature_names = ["alpha", "beta", "gamma"]
    with pytest.raises(SourceError, match=r"no 'bata'.*did you mean 'beta'\?"):
        prepare(source, drop=["bata"])
    with pytest.raises(SourceError, match="no 3 among its 3 features"):
        prepare(X, drop=[3])
    with pytest.raises(SourceError, match="no feature is left"):
        prepare(X, drop=[0, 1, 2])
    with pytest.raises(ValueError, match=r"columns=.*drop="):
        prepare(X, columns=[0], drop=[1])
    marks = [True, False, False]
    with pytest.raises(SourceError, match="give names or integers"):
        prepare(X, drop=marks)


ROWS = np.random.default_rng(2).normal(size=(120, 4)) * [4, 3, 2, 1]
NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def path(tmp_path):
    frame = pd.DataFrame(ROWS, columns=NAMES)
    frame.insert(1, "id", [f"x{i}" for i in range(120)])
    frame.to_csv(tmp_path / "x.csv", index=False)
    return tmp_path / "x.csv"


@pytest.mark.parametrize("how", ["source", "prepare", "scaled"])
def test_a_model_fitted_without_a_column_takes_the_same_file(path, tmp_path, how):
    made = {
        "source": lambda: as_source(path, drop=["id"]),
        "prepare": lambda: prepare(path, drop=["id"]),
        "scaled": lambda: prepare(as_source(path, drop=["id"]), scale="two-pass"),
    }
    pca = EigenGamePCA(2, random_state=0).fit(made[how]())
    scores = pca.transform(made[how]())
    assert list(pca.feature_names_in_) == NAMES
    again = EigenGamePCA.load(pca.save(tmp_path / "m.safetensors"))
    for model in (pca, again):
        np.testing.assert_array_equal(model.transform(path), scores)
    assert pca.certify(path).rayleigh.shape == (2,)
    assert write_report(pca, tmp_path / "report.html", data=path).is_file()


def test_a_model_finds_its_columns_in_another_order(path, tmp_path):
    pca = EigenGamePCA(2, random_state=0).fit(as_source(path, drop=["id"]))
    frame = pd.read_csv(path)
    frame[["d", "b", "id", "a", "c"]].to_parquet(tmp_path / "other.parquet")
    np.testing.assert_allclose(
        pca.transform(tmp_path / "other.parquet"), pca.transform(path), rtol=1e-12
    )
    frame[["d", "b", "id", "a"]].to_parquet(tmp_path / "less.parquet")
    with pytest.raises(SourceError, match="no column 'c'"):
        pca.transform(tmp_path / "less.parquet")


def test_a_model_of_an_array_leaves_the_same_features_out():
    pca = EigenGamePCA(2, random_state=0).fit(prepare(np.insert(ROWS, 1, 1e6, axis=1), drop=[1]))
    plain = EigenGamePCA(2, random_state=0).fit(ROWS)
    wide = np.insert(ROWS, 1, -1e6, axis=1)
    np.testing.assert_allclose(
        np.abs(pca.transform(wide)), np.abs(plain.transform(ROWS)), rtol=1e-6
    )


def test_a_table_without_names_is_never_opened_by_names_that_are_numbers(tmp_path):
    years = pd.DataFrame(ROWS, columns=["0", "1", "2", "3"])
    years.to_csv(tmp_path / "named.csv", index=False)
    np.savetxt(tmp_path / "same.csv", ROWS, delimiter=",")
    np.savetxt(tmp_path / "more.csv", np.column_stack([ROWS, ROWS]), delimiter=",")
    for made in (as_source, lambda path: prepare(path, columns=["0", "1", "2", "3"])):
        pca = EigenGamePCA(2, random_state=0).fit(made(tmp_path / "named.csv"))
        np.testing.assert_allclose(
            pca.transform(tmp_path / "same.csv"), pca.transform(tmp_path / "named.csv"), rtol=1e-12
        )
        with pytest.raises(SourceError, match="8 features"):
            pca.transform(tmp_path / "more.csv")


def test_a_table_without_names_of_the_same_width_is_taken_in_its_order(path, tmp_path):
    pca = EigenGamePCA(2, random_state=0).fit(as_source(path, drop=["id"]))
    np.savetxt(tmp_path / "same.csv", ROWS, delimiter=",")
    np.testing.assert_allclose(
        pca.transform(tmp_path / "same.csv"), pca.transform(path), rtol=1e-12
    )

"""Merging estimators: features by name, options that must agree, and what a merged one keeps."""

from types import SimpleNamespace

import numpy as np
import pytest

from eigengame import EigenGamePCA, metrics
from eigengame.estimator.merging import common_features, feature_order
from tests.game_pca import game_pca

pandas = pytest.importorskip("pandas")

N, D, K = 300, 12, 3
NAMES = [f"f{i:02d}" for i in range(D)]
REVERSED = NAMES[::-1]


def rows(seed=0, n=N):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)) * 0.6 ** np.arange(D) + np.arange(D)


def frame(x, names=NAMES):
    return pandas.DataFrame(x, columns=NAMES)[names]


def stream(x, **options):
    return game_pca(K, random_state=0, **options).partial_fit(x)


def largest_angle(pca, x):
    truth = metrics.true_components(x - x.mean(axis=0), K)[1]
    return metrics.angular_error(pca.components_[:K].astype("float64"), truth).max()


# A mean far away makes each part subtract an origin of its own, which has to be reordered too.
@pytest.mark.parametrize("far", [0, 1e3])
def test_features_in_another_order_are_aligned_by_name(far):
    x, y = rows() + far, rows(1) + far
    merged = stream(frame(x)).merge(stream(frame(y, REVERSED)))
    plain = stream(frame(x)).merge(stream(frame(y)))
    both = np.concatenate([x, y])
    assert list(merged.feature_names_in_) == NAMES
    np.testing.assert_allclose(merged.mean_, both.mean(axis=0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(merged.var_, both.var(axis=0), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(merged.explained_variance_, plain.explained_variance_, rtol=1e-3)
    assert largest_angle(merged, both) < 0.05
    on = merged.partial_fit(frame(x))
    assert largest_angle(on, np.concatenate([x, y, x])) < 0.05


def test_other_features_are_refused_and_named():
    one = stream(frame(rows()))
    other = stream(frame(rows(1)).rename(columns={"f03": "weight", "f04": "height"}))
    with pytest.raises(ValueError, match=r"'f03', 'f04'.*'weight', 'height'"):
        one.merge(other)
    with pytest.raises(ValueError, match="12 and 11 features"):
        one.merge(stream(frame(rows(1)).drop(columns="f03")))


def test_names_that_occur_twice_cannot_be_aligned():
    assert feature_order(["a", "a", "b"], ["a", "a", "b"]) is None
    np.testing.assert_array_equal(feature_order(["a", "b", "c"], ["c", "a", "b"]), [1, 2, 0])
    with pytest.raises(ValueError, match="'a' occurs more than once"):
        feature_order(["a", "a", "b"], ["b", "a", "a"])


def test_a_model_without_names_is_merged_in_its_order_with_a_warning():
    x, y = rows(), rows(1)
    for one, other in ((frame(x), y), (x, frame(y))):
        with pytest.warns(UserWarning, match="order of features cannot be checked"):
            merged = stream(one).merge(stream(other))
        assert list(merged.feature_names_in_) == NAMES
        assert largest_angle(merged, np.concatenate([x, y])) < 0.05


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"center": False}, "center=True and center=False"),
        ({"forget": 0.9}, r"forget=1\.0 and forget=0\.9"),
    ],
)
def test_models_that_accumulate_different_things_are_not_merged(options, words):
    with pytest.raises(ValueError, match=words):
        stream(rows()).merge(stream(rows(1), **options))


@pytest.mark.parametrize(("first", "second"), [(2, 7), (7, 2), ("auto", 2)])
def test_parts_with_different_numbers_of_players_merge_into_the_larger_one(first, second):
    x, y, z = rows(), rows(1, 40), rows(2)
    merged = stream(x, extra=first).merge(stream(y, extra=second))
    counts = [stream(rows(), extra=extra).n_players_ for extra in (first, second)]
    assert merged.n_players_ == max(counts)
    both = np.concatenate([x, y])
    np.testing.assert_allclose(merged.var_, both.var(axis=0), rtol=1e-3, atol=1e-4)
    angles = metrics.angular_error(
        merged.components_.astype("float64"),
        metrics.true_components(both - both.mean(axis=0), K)[1],
    )
    assert angles.max() < 0.05
    assert (angles <= merged.certificate_.angle).all()
    assert largest_angle(merged.partial_fit(z), np.concatenate([both, z])) < 0.05


def test_sparse_parts_of_one_batch_and_of_several_are_merged():
    sparse = pytest.importorskip("scipy.sparse")
    x = sparse.random_array((5000, 40), density=0.2, rng=np.random.default_rng(0), format="csr")
    x = x.multiply(0.8 ** np.arange(40)).tocsr().astype("float32")
    one, other = (
        EigenGamePCA(12, random_state=0, algorithm="remembered", batch_size=1024, passes=1).fit(
            part
        )
        for part in (x[:700], x[700:])
    )
    assert one.n_players_ != other.n_players_
    assert one.merge(other).n_players_ == other.n_players_
    assert largest_angle(one.merge(other), x.toarray().astype("float64")) < 0.1


def test_a_parameter_changed_after_the_fit_is_refused_by_merge():
    one, other = stream(rows()), stream(rows(1))
    other.set_params(center=False)
    with pytest.raises(ValueError, match=r"center=False, but .* began with center=True"):
        one.merge(other)


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_parts_in_float32_and_float64_merge_in_the_finer(first):
    x, y = rows(), rows(1)
    # A small fit is played in float64, a stream in float32.
    parts = game_pca(K, random_state=0).fit(x), stream(y)
    one, other = parts if first == "fit" else parts[::-1]
    merged = one.merge(other)
    assert merged._result.stream.state.memory.players.dtype == np.float64
    assert merged._result.options.dtype == np.float64
    both = np.concatenate([x, y])
    assert largest_angle(merged, both) < 0.05
    assert largest_angle(merged.partial_fit(x), np.concatenate([both, x])) < 0.05


def test_streams_that_forget_merge_as_two_that_end_together():
    x, y, forget = rows(), rows(1), 0.99
    merged = stream(x, forget=forget).merge(stream(y, forget=forget))
    both, weights = np.concatenate([x, y]), np.tile(forget ** np.arange(N)[::-1], 2)
    mean = weights @ both / weights.sum()
    truth = metrics.true_components(np.sqrt(weights)[:, None] * (both - mean), K)
    np.testing.assert_allclose(merged.mean_, mean, rtol=1e-4, atol=1e-4)
    assert metrics.angular_error(merged.components_.astype("float64"), truth[1]).max() < 0.05
    assert merged.explained_variance_ratio_.sum() <= 1


def test_a_merged_estimator_counts_rows_and_passes_saves_and_certifies(tmp_path):
    class Mine(EigenGamePCA):
        pass

    x, y = rows(), rows(1)
    refined = Mine(K, tol=1e-6, extra=1, algorithm="remembered", batch_size=32, random_state=0).fit(
        frame(x)
    )
    assert refined.n_passes_ > 1
    merged = refined.merge(game_pca(K, random_state=1).fit(frame(y, REVERSED)))
    assert type(merged) is Mine
    assert merged.n_samples_seen_ == 2 * N
    # The memories are those of one pass.
    assert merged.n_passes_ == 1
    both = pandas.concat([frame(x), frame(y)])
    assert merged.certify(both).angle.max() < 0.1
    again = Mine.load(merged.save(tmp_path / "merged.safetensors"))
    assert type(again) is Mine
    np.testing.assert_array_equal(again.components_, merged.components_)
    assert again.partial_fit(frame(x)).n_samples_seen_ == 3 * N
    assert list(again.feature_names_in_) == NAMES


def test_merging_leaves_both_as_they_are():
    one, other = stream(frame(rows())), stream(frame(rows(1), REVERSED))
    before = [pca.components_.copy() for pca in (one, other)]
    one.merge(other)
    for pca, components in zip((one, other), before, strict=True):
        np.testing.assert_array_equal(pca.components_, components)
    assert list(other.feature_names_in_) == REVERSED


def test_output_as_a_data_frame_is_kept():
    one = stream(frame(rows())).set_output(transform="pandas")
    merged = one.merge(stream(frame(rows(1))))
    assert isinstance(merged.transform(frame(rows())), pandas.DataFrame)


def test_features_of_other_layers_are_not_common():
    """`eigengame compare` uses the same check as `merge`."""
    one, other = (
        SimpleNamespace(layers_=SimpleNamespace(side="outputs", name=name), _alleles=None)
        for name in ("conv1", "conv2")
    )
    assert common_features(one, one) == (None, None)
    with pytest.raises(ValueError, match="different layers"):
        common_features(one, other)


def test_a_share_of_the_variance_is_no_common_number_of_components():
    x = rows()
    one, other = (
        EigenGamePCA(0.9, random_state=0).fit(part) for part in (x, x * np.geomspace(9, 1, D))
    )
    assert one.n_components_ != other.n_components_
    with pytest.raises(ValueError, match="as a whole number"):
        one.merge(other)

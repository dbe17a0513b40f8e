"""Models of prepared data prepare later data."""

import numpy as np
import pytest
from scipy import sparse

from eigengame import EigenGamePCA, Interrupted, SourceError, prepare
from eigengame.model_file import ModelFileError
from eigengame.preparation import Preparation
from eigengame.preparation.prepared_source import KINDS
from eigengame.sources import ArraySource
from tests.preparation.reading import rows_of
from tests.tolerance import assert_close

N, D, K = 300, 8, 3


def table(seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.uniform(0.2, 6, D) * rng.gamma(2, 1, (N, 1)), (N, D)).astype(float)


def by_hand(x, learnt_on):
    logs, known = np.log1p(x), np.log1p(learnt_on)
    return logs / known.std(axis=0)


@pytest.fixture(scope="module")
def fitted():
    x = table()
    pca = EigenGamePCA(K, passes=12, random_state=0)
    return x, pca.fit(prepare(x, counts="log1p", scale="two-pass"))


def test_a_fit_of_prepared_data_equals_that_of_data_prepared_by_hand(fitted):
    x, pca = fitted
    plain = EigenGamePCA(K, passes=12, random_state=0).fit(by_hand(x, x))
    assert_close(pca.components_, plain.components_, factor=1e3)
    assert_close(pca.explained_variance_, plain.explained_variance_, factor=1e3)
    assert pca.n_samples_seen_ == N


def test_raw_rows_are_prepared_before_they_are_projected(fitted):
    x, pca = fitted
    new = table(1)
    expected = (by_hand(new, x) - pca.mean_) @ pca.components_.T
    for given in (new, ArraySource(new), sparse.csr_array(new), new.tolist()):
        assert_close(pca.transform(given), expected, factor=10)
    blocks = list(pca.transform_blocks(new, size=70))
    assert [len(block) for block in blocks] == [70, 70, 70, 70, 20]
    assert_close(np.concatenate(blocks), expected, factor=10)
    assert_close(pca.score_samples(new), pca._model().log_likelihood(by_hand(new, x)), factor=10)


def test_data_prepared_by_the_same_steps_is_not_prepared_twice(fitted):
    x, pca = fitted
    alike = prepare(x, counts="log1p", scale="two-pass")
    assert_close(pca.transform(alike), pca.transform(x))
    with pytest.raises(SourceError, match="other preparation steps than the model"):
        pca.transform(prepare(x, counts="log1p"))


def test_certify_prepares_raw_rows(fitted):
    x, pca = fitted
    variance = pca.certify(x).rayleigh
    assert_close(variance, pca.explained_variance_, factor=1e3)


def test_a_saved_model_keeps_its_preparation(fitted, tmp_path):
    x, pca = fitted
    again = EigenGamePCA.load(pca.save(tmp_path / "model.safetensors"))
    new = table(2)
    np.testing.assert_array_equal(again.transform(new), pca.transform(new))
    assert_close(again.transform(prepare(x, counts="log1p", scale="two-pass")), pca.transform(x))


def test_a_model_file_with_an_unknown_step_is_refused(fitted, tmp_path, monkeypatch):
    path = fitted[1].save(tmp_path / "model.safetensors")
    monkeypatch.delitem(KINDS, "scale")
    with pytest.raises(ModelFileError, match=r"lacks part of a model.*'scale'"):
        EigenGamePCA.load(path)


def test_fitting_plain_data_removes_the_preparation(fitted):
    x = fitted[0]
    pca = EigenGamePCA(K, random_state=0).fit(prepare(x, counts="log1p"))
    pca.fit(x)
    assert_close(pca.transform(x), (x - pca.mean_) @ pca.components_.T, factor=10)


def test_columns_are_those_of_the_raw_data(fitted):
    x = fitted[0]
    wide = np.hstack([x, np.full((N, 2), np.nan)])
    pca = EigenGamePCA(K, random_state=0).fit(prepare(wide, columns=range(D), counts="log1p"))
    assert pca.n_features_in_ == D
    assert_close(pca.transform(wide), (np.log1p(x) - pca.mean_) @ pca.components_.T, factor=10)
    with pytest.raises(SourceError, match=r"has 8 features, but the model was fitted on 10"):
        pca.transform(x)


def test_a_saved_model_normalises_by_the_totals_of_all_columns(fitted, tmp_path):
    x = fitted[0]
    pca = EigenGamePCA(K, random_state=0)
    pca.fit(prepare(x, columns=range(D - 3), counts="log-normalise"))
    again = EigenGamePCA.load(pca.save(tmp_path / "model.safetensors"))
    new = table(2) + 1
    logs = np.log1p(new / new.sum(axis=1, keepdims=True) * 1e4)[:, : D - 3]
    assert_close(again.transform(new), (logs - pca.mean_) @ pca.components_.T, factor=100)


def test_skipped_rows_have_no_weight_and_no_scores(fitted):
    x = fitted[0]
    holed = np.insert(x, [0, 100], np.nan, axis=0)
    pca = EigenGamePCA(K, passes=12, random_state=0).fit(prepare(holed, missing="skip"))
    plain = EigenGamePCA(K, passes=12, random_state=0).fit(x)
    assert pca.n_samples_seen_ == N
    assert_close(pca.explained_variance_, plain.explained_variance_, factor=1e3)
    scores = pca.transform(holed)
    np.testing.assert_array_equal(np.isnan(scores).any(axis=1), np.isnan(holed).any(axis=1))
    assert_close(scores[1:101], plain.transform(x[:100]), factor=1e4)


def test_partial_fit_prepares_raw_batches(fitted):
    x = fitted[0]
    pca = EigenGamePCA(K, dtype="float64", random_state=0)
    pca.partial_fit(prepare(x[:150], counts="log1p"))
    pca.partial_fit(x[150:])
    assert pca.n_samples_seen_ == N
    assert_close(pca.mean_, np.log1p(x).mean(axis=0), factor=10)


def test_models_with_the_same_preparation_can_be_merged(fitted):
    x = fitted[0]
    first = prepare(x[:150], scale="two-pass")
    halves = [first, first.preparation.over(x[150:]), prepare(x[150:], scale="two-pass"), x[150:]]
    one, two, other, plain = (EigenGamePCA(K, random_state=0).fit(half) for half in halves)
    merged = one.merge(two)
    assert_close(merged.mean_, (x / x[:150].std(axis=0)).mean(axis=0), factor=10)
    expected = (x / x[:150].std(axis=0) - merged.mean_) @ merged.components_.T
    assert_close(merged.transform(x), expected, factor=10)
    for stranger in (other, plain):
        with pytest.raises(ValueError, match="prepared in different ways"):
            one.merge(stranger)


class Interrupting:
    """Watcher that stops a run after a number of batches."""

    def __init__(self, batches):
        self.left = batches

    def batch(self, at):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_a_run_resumes_only_with_the_same_preparation(tmp_path):
    x, pca = table(4), EigenGamePCA(K, batch_size=40, random_state=0)
    with pytest.raises(Interrupted):
        pca.fit(prepare(x, scale="two-pass"), checkpoint=tmp_path, progress=Interrupting(7))
    pca.fit(prepare(x, scale="two-pass"), checkpoint=tmp_path)
    whole = EigenGamePCA(K, batch_size=40, random_state=0).fit(prepare(x, scale="two-pass"))
    np.testing.assert_array_equal(pca.components_, whole.components_)
    with pytest.raises(ValueError, match=r"belongs to another run: source\.preparation was"):
        pca.fit(prepare(x, counts="log1p"), checkpoint=tmp_path)


def test_a_model_file_with_a_scale_learnt_by_an_earlier_version_still_loads():
    kept = Preparation.from_facts([{"kind": "scale"}], {"0.deviations": np.full(D, 2.0)}, D)
    x = table(5)
    np.testing.assert_array_equal(rows_of(kept.over(x)), x / 2)


def test_a_stream_of_unprepared_rows_refuses_prepared_ones():
    # They were mixed without a message.
    rows = np.random.default_rng(0).standard_normal((200, 5)) * [1, 10, 100, 5, 2]
    pca = EigenGamePCA(2, random_state=0).partial_fit(rows)
    with pytest.raises(SourceError, match="begin with prepared ones, partial_fit"):
        pca.partial_fit(prepare(rows, scale="two-pass"))
    assert pca.n_samples_seen_ == 200


@pytest.mark.parametrize("way", ["partial_fit", "fit", "loaded"])
def test_a_stream_keeps_the_standardisation_of_its_first_rows(tmp_path, way):
    draws = np.random.default_rng(0).standard_normal((400, 5)) * [1, 10, 100, 5, 2] + 7
    first, later = draws[:200], 3 * draws[200:]
    pca = EigenGamePCA(2, random_state=0, extra=3, dtype="float64")
    begun = getattr(pca, "fit" if way == "fit" else "partial_fit")(prepare(first, scale="two-pass"))
    if way == "loaded":
        begun = EigenGamePCA.load(begun.save(tmp_path / "model.safetensors"))
    with pytest.raises(SourceError, match="give the unprepared data"):
        begun.partial_fit(prepare(later, scale="two-pass"))
    begun.partial_fit(later)
    scaled = draws.copy()
    scaled[200:] *= 3
    scaled /= first.std(axis=0)
    np.testing.assert_allclose(begun.mean_, scaled.mean(axis=0), rtol=1e-9)
    values = np.linalg.eigvalsh(np.cov(scaled.T))[::-1][:2]
    np.testing.assert_allclose(begun.explained_variance_, values, rtol=1e-9)

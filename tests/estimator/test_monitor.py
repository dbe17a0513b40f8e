"""`monitor` of a fitted estimator: any kind of fit and input, and nothing else changes."""

import copy

import numpy as np
import pytest
from scipy import sparse

from eigengame import EigenGamePCA, prepare
from eigengame.monitoring import ControlLimits

RNG = np.random.default_rng(0)
N, D, K = 600, 12, 3
SPREAD = np.r_[9.0, 5, 3, np.linspace(1, 0.2, D - 3)]
AXES = np.linalg.qr(RNG.standard_normal((D, D)))[0]
X = 50 + RNG.standard_normal((N, D)) * SPREAD @ AXES.T
NEW = 50 + RNG.standard_normal((80, D)) * SPREAD @ AXES.T


def expected(rows, k=K, new=NEW):
    """Return T2 and SPE by an eigendecomposition in float64."""
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    away = new - rows.mean(axis=0)
    scores = away @ vectors
    return np.sum(scores**2 / values, axis=1), np.sum((away - scores @ vectors.T) ** 2, axis=1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("way", ["fit", "stream", "loaded"])
def test_statistics_are_those_of_an_eigendecomposition(tmp_path, dtype, way):
    pca = EigenGamePCA(K, dtype=dtype, random_state=0, extra=D - K)
    if way == "stream":
        for start in range(0, N, 100):
            pca.partial_fit(X[start : start + 100])
    else:
        pca.fit(X)
    if way == "loaded":
        pca = EigenGamePCA.load(pca.save(tmp_path / "model.safetensors"))
    found = pca.monitor(NEW)
    t2, spe = expected(X)
    # With all players nothing is lost but the precision of a stream.
    tolerance = 1e-4 if way == "stream" and dtype == "float32" else 1e-8
    np.testing.assert_allclose(found.t2, t2, rtol=tolerance)
    np.testing.assert_allclose(found.spe, spe, rtol=tolerance)
    np.testing.assert_allclose(found.t2_contributions.sum(axis=1), found.t2, rtol=1e-10)
    np.testing.assert_allclose(found.spe_contributions.sum(axis=1), found.spe, rtol=1e-10)
    assert len(found) == 80
    assert found.alarms.mean() < 0.2


def test_a_shifted_feature_is_found_by_its_name():
    pandas = pytest.importorskip("pandas")
    names = [f"sensor {i}" for i in range(D)]
    pca = EigenGamePCA(K, random_state=0).fit(pandas.DataFrame(X, columns=names))
    broken = NEW.copy()
    broken[7, 4] += 40
    found = pca.monitor(pandas.DataFrame(broken, columns=names))
    assert found.spe_alarms[7]
    assert found.top_features(7, "spe", 1)[0][0] == "sensor 4"
    assert found.top_features(7)[0][1] > 0.3
    assert len(found.top_features(7, "t2", 5)) == 5
    assert "limits: T2" in str(found)


def test_nothing_of_the_estimator_changes_and_the_result_is_read_only():
    pca = EigenGamePCA(K, random_state=0).fit(X)
    before = copy.deepcopy(vars(pca))
    found = pca.monitor(NEW, reference=pca)
    assert vars(pca).keys() == before.keys()
    for name, value in before.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(pca, name), value)
    assert pca.partial_fit(X).n_samples_seen_ == 2 * N
    for name in ("t2", "spe", "t2_contributions", "spe_contributions", "angles"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(found, name)[0] = 0
    with pytest.raises(AttributeError):
        found.t2 = None


def test_prepared_data_is_monitored_as_it_was_fitted():
    wide = X * np.arange(1, D + 1)
    pca = EigenGamePCA(K, random_state=0).fit(prepare(wide, scale="two-pass"))
    found = pca.monitor(NEW * np.arange(1, D + 1))
    deviations = wide.std(axis=0)
    t2, spe = expected(wide / deviations, new=NEW * np.arange(1, D + 1) / deviations)
    np.testing.assert_allclose(found.t2, t2, rtol=1e-8)
    np.testing.assert_allclose(found.spe, spe, rtol=1e-8)


def test_prepared_rows_are_refused_by_a_model_of_unprepared_ones():
    pca = EigenGamePCA(K, random_state=0).fit(X)
    with pytest.raises(
        ValueError, match=r"is prepared \(scale\), but the rows of the fit were not"
    ):
        pca.monitor(prepare(NEW, scale="two-pass"))


def test_rows_that_the_preparation_skips_have_no_statistics():
    pca = EigenGamePCA(K, random_state=0).fit(prepare(X, missing="skip"))
    gaps = NEW.copy()
    gaps[3, 2] = np.nan
    found = pca.monitor(gaps)
    assert np.flatnonzero(np.isnan(found.t2)).tolist() == [3]
    assert not found.alarms[3]
    assert found.top_features(3) == []
    assert "1 rows were skipped" in str(found)
    assert pca.control_limits(np.concatenate([gaps, X])).rows == N + 79


def test_blocks_sparse_rows_and_files_give_the_same(tmp_path):
    pca = EigenGamePCA(K, random_state=0).fit(X)
    whole = pca.monitor(NEW)
    np.save(tmp_path / "new.npy", NEW)
    blocks = list(pca.monitor_blocks(tmp_path / "new.npy", size=33))
    assert [len(block) for block in blocks] == [33, 33, 14]
    for name in ("t2", "spe", "t2_contributions", "alarms"):
        joined = np.concatenate([getattr(block, name) for block in blocks])
        np.testing.assert_allclose(joined, getattr(whole, name), rtol=1e-12)
    np.testing.assert_allclose(pca.monitor(sparse.csr_array(NEW)).spe, whole.spe, rtol=1e-12)


def test_angles_to_a_reference():
    pca = EigenGamePCA(K, random_state=0, forget=0.99).partial_fit(X)
    before = copy.deepcopy(pca)
    same = pca.monitor(NEW, reference=before)
    assert same.angles.max() < 1e-6
    assert same.subspace_angle < 1e-6
    # The first two axes change places: both components turn by a right angle, their span does not.
    swapped = 50 + RNG.standard_normal((2000, D)) * SPREAD[[1, 0, *range(2, D)]] @ AXES.T
    pca.partial_fit(swapped)
    found = pca.monitor(NEW, reference=before)
    assert found.angles[:2].min() > 1.2
    assert found.subspace_angle < 0.3
    assert "angles since the reference" in str(found)


def test_a_component_that_is_not_certified_is_named():
    equal = RNG.standard_normal((2000, D))
    pca = EigenGamePCA(K, random_state=0, algorithm="remembered", passes=1, tol=None).fit(equal)
    found = pca.monitor(equal[:5])
    opened = np.flatnonzero(pca.certificate_.open_components(0.05)).tolist()
    assert list(found.uncertified) == opened != []
    assert "not certified within 0.05 rad" in str(found)
    certain = EigenGamePCA(K, random_state=0).fit(X).monitor(NEW)
    assert certain.uncertified == ()
    assert "certified" not in str(certain)


@pytest.mark.parametrize("way", ["fit", "stream"])
def test_components_without_variance_belong_to_the_prediction_error(way):
    flat = X.copy()
    flat[:, 6:] = X[:, :6]  # rank 6
    pca = EigenGamePCA(8, random_state=0)
    pca = pca.fit(flat) if way == "fit" else pca.partial_fit(flat)
    new = NEW.copy()
    new[:, 6:] = new[:, :6]
    found = pca.monitor(new)
    assert found.unused == (6, 7)
    assert found.t2.max() < 60
    assert not found.spe_alarms.any()
    new[0, 0] += 1  # breaks the relation between columns 0 and 6
    broken = pca.monitor(new)
    assert np.flatnonzero(broken.spe_alarms).tolist() == [0]
    assert broken.spe[0] == pytest.approx(0.5, rel=1e-3)
    assert "no variance" in str(broken)


def test_weights_count_as_rows_in_the_limits():
    double = EigenGamePCA(K, random_state=0).fit(X, sample_weight=np.full(N, 2.0))
    assert double.control_limits().rows == pytest.approx(2 * N)
    relative = EigenGamePCA(K, random_state=0).fit(X, sample_weight=np.full(N, 1e-3))
    assert relative.control_limits().rows == pytest.approx(N)
    faded = EigenGamePCA(K, random_state=0, forget=0.98).partial_fit(X)
    assert faded.control_limits().rows == pytest.approx(99, rel=0.01)


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({}, {"limits": 1.5}, r"limits=1.5: give a confidence between 0 and 1"),
        ({}, {"limits": "theory"}, r"limits='theory'.*control_limits, or None"),
        ({}, {"reference": X}, r"give a fitted model"),
        ({"center": False}, {}, r"center=False.*limits=pca.control_limits\(rows\)"),
        ({"forget": 0.5, "tol": None}, {}, r"more rows than components"),
    ],
)
def test_what_is_not_supported_is_refused_with_the_remedy(options, arguments, message):
    pca = EigenGamePCA(K, random_state=0, **options).fit(X)
    with pytest.raises(ValueError, match=message):
        pca.monitor(NEW, **arguments)
    found = pca.monitor(NEW, limits=None)
    with pytest.raises(ValueError, match="no alarms without limits"):
        _ = found.alarms
    assert found.top_features(0)


def test_a_reference_with_other_features_is_refused():
    pca = EigenGamePCA(K, random_state=0).fit(X)
    fewer = EigenGamePCA(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="reference has 2 components of 12 features"):
        pca.monitor(NEW, reference=fewer)
    scaled = EigenGamePCA(K, random_state=0).fit(prepare(X, scale="two-pass"))
    with pytest.raises(ValueError, match="prepared in different ways"):
        pca.monitor(NEW, reference=scaled)


def test_components_that_are_not_orthonormal_are_refused():
    pca = EigenGamePCA(K, random_state=0, algorithm="mu", step_size=0.1, passes=1, tol=None).fit(X)
    pca.components_ = pca.components_ + 0.01
    with pytest.raises(ValueError, match="not orthonormal"):
        pca.monitor(NEW, limits=None)


def test_limits_of_another_state_are_used_as_they_are():
    pca = EigenGamePCA(K, random_state=0).fit(X)
    limits = ControlLimits(1.0, 2.0, 0.9, "reference", 10, "given")
    found = pca.monitor(NEW, limits=limits)
    np.testing.assert_array_equal(found.alarms, (found.t2 > 1) | (found.spe > 2))
    assert found.limits is limits

"""`partial_fit`: what must stay the same between calls, and what it counts."""

import gc

import jax
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from eigengame import EigenGamePCA, metrics
from eigengame.solver.planning import make_plan
from eigengame.solver.rows import ragged
from eigengame.solver.rows.row_counts import PrecisionWarning
from eigengame.solver.streams import streaming
from tests.game_pca import game_pca
from tests.tolerance import assert_close

N, D, K = 300, 12, 3


def rows(seed=0, n=N):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)) * 0.6 ** np.arange(D) + 1


def largest_angle(pca, x):
    truth = metrics.true_components(x - x.mean(axis=0), K)[1]
    return metrics.angular_error(pca.components_.astype("float64"), truth).max()


CHANGES = [
    ("center", False, "center=False, but this stream began with center=True"),
    ("forget", 0.9, r"forget=0\.9, but .* forget=1\.0"),
    ("n_components", 4, "n_components=4, but .* n_components=3"),
    ("extra", 2, "extra=2, but .* extra='auto'"),
    ("rounds", 3, "rounds=3, but .* rounds='auto'"),
    ("dtype", "float64", "dtype='float64', but .* dtype='float32'"),
    ("algorithm", "oja", "algorithm='oja', but .* algorithm='remembered'"),
]


@pytest.mark.parametrize(("name", "value", "words"), CHANGES)
def test_a_parameter_that_changes_what_is_accumulated_cannot_change_within_a_stream(
    name, value, words, tmp_path
):
    pca = game_pca(K, random_state=0).partial_fit(rows())
    before = pca.mean_.copy()
    pca.save(tmp_path / "model.safetensors")
    for one in (pca, EigenGamePCA.load(tmp_path / "model.safetensors")):
        one.set_params(**{name: value})
        with pytest.raises(ValueError, match=f"{words}.*clone"):
            one.partial_fit(rows(1))
        np.testing.assert_array_equal(one.mean_, before)
        assert one.n_samples_seen_ == N
        # Set back, it goes on.
        old = game_pca(K).get_params()[name]
        assert one.set_params(**{name: old}).partial_fit(rows(1)).n_samples_seen_ == 2 * N


def test_the_same_holds_after_fit_and_for_a_change_before_saving(tmp_path):
    pca = game_pca(K, random_state=0).fit(rows()).set_params(center=False)
    with pytest.raises(ValueError, match="center=False"):
        pca.partial_fit(rows(1))
    again = EigenGamePCA.load(pca.save(tmp_path / "model.safetensors"))
    with pytest.raises(ValueError, match="center=False"):
        again.partial_fit(rows(1))
    # `fit` begins anew, with what is set now.
    assert not pca.fit(rows()).mean_.any()
    assert not pca.partial_fit(rows(1)).mean_.any()
    assert clone(pca).set_params(center=True).partial_fit(rows()).mean_.any()


def test_parameters_that_are_about_reading_and_reporting_may_change():
    pca = game_pca(K, random_state=0).partial_fit(rows())
    pca.set_params(whiten=True, tol=0.1, passes=3, batch_size=100, random_state=5)
    assert pca.partial_fit(rows(1)).n_samples_seen_ == 2 * N
    assert (
        game_pca(algorithm="auto")
        .partial_fit(rows())
        .set_params(algorithm="remembered", n_components=D)
        .partial_fit(rows(1))
        .n_samples_seen_
        == 2 * N
    )


def test_a_fit_that_fails_leaves_no_stream_of_other_options():
    pca = game_pca(K, random_state=0).fit(rows())
    with pytest.raises(ValueError, match="n_components=40"):
        pca.set_params(center=False, n_components=40).fit(rows())
    with pytest.raises(ValueError, match="no memory"):
        pca.set_params(center=True, n_components=K).partial_fit(rows(1))


def test_a_small_fit_in_float64_continues_in_float64(tmp_path):
    x, y = rows(), rows(1)
    pca = game_pca(K, random_state=0).fit(x)
    again = EigenGamePCA.load(pca.save(tmp_path / "model.safetensors"))
    both = np.concatenate([x, y])
    for one in (pca, again):
        assert one._result.options.dtype == np.float64
        one.partial_fit(y.astype("float32"))
        memory, moments = one._result.stream.state.memory, one._result.stream.moments
        held = [*memory, *moments, *(found for _, found in one._result.stream.snapshots)]
        assert {str(array.dtype) for array in held} == {"float64"}
        assert one.components_.dtype == np.float64
        np.testing.assert_allclose(one.mean_, both.mean(axis=0), rtol=1e-7)
        np.testing.assert_allclose(one.var_, both.var(axis=0), rtol=1e-6)
        assert largest_angle(one, both) < 0.05
    np.testing.assert_array_equal(pca.components_, again.components_)


def test_rows_are_counted_and_a_stream_is_one_pass():
    pca = game_pca(K, tol=1e-6, extra=1, batch_size=32, random_state=0).fit(rows())
    assert pca.n_passes_ > 1
    pca.partial_fit(rows(1)).partial_fit(rows(2, n=7))
    assert pca.n_samples_seen_ == 2 * N + 7
    # The stream goes on from the memory of the first pass: no row has been read twice for it.
    assert pca.n_passes_ == 1
    assert pca.certificate_.kind == "certified"
    assert pca.certificate_.powers == 1


def test_a_mesh_of_one_device_changes_nothing():
    plain, meshed = (game_pca(K, random_state=0, mesh=mesh) for mesh in (None, {"data": 1}))
    for seed in (0, 1):
        plain.partial_fit(rows(seed))
        meshed.partial_fit(rows(seed))
    np.testing.assert_allclose(meshed.components_, plain.components_, atol=1e-4)
    assert meshed.n_samples_seen_ == plain.n_samples_seen_


def test_ragged_batches_share_their_compilations(monkeypatch):
    seen, take = set(), streaming.take

    def noted(algorithm, memory, rows, count, **options):
        seen.add(rows.values.shape)
        return take(algorithm, memory, rows, count, **options)

    monkeypatch.setattr(streaming, "take", noted)
    monkeypatch.setattr(make_plan, "LITTLE_WORK", 0)
    pca = game_pca(K, random_state=0)
    for n in (33, 40, 47, 50, 64):
        pca.partial_fit(rows(n=n))
    assert pca.n_samples_seen_ == 234
    assert seen == {(64, D)}


@pytest.fixture(scope="module")
def compilations():
    """The names of programs as they are compiled, or loaded from the cache on disk."""
    names = []

    def note(name, seconds, **_):
        if "backend_compile" in name:
            names.append(name)

    jax.monitoring.register_event_duration_secs_listener(note)
    return names


# Another shape than in other tests, whose programs would not be compiled again.
@pytest.mark.parametrize("kind", ["dense", "dense on the host", "sparse"])
def test_any_sequence_of_sizes_takes_few_compilations(kind, compilations, monkeypatch):
    if kind == "dense":
        monkeypatch.setattr(make_plan, "LITTLE_WORK", 0)
    as_given = scipy.sparse.csr_array if kind == "sparse" else np.asarray
    rng, pca = np.random.default_rng(0), game_pca(K, random_state=0)
    compilations.clear()
    sizes = [*rng.permutation(50) + 1, *rng.integers(51, 3000, 10)]
    for n in sizes:
        x = rng.normal(size=(n, 11)) * (rng.uniform(size=(n, 11)) < rng.uniform(0.05, 1))
        x[0, 0] = 1
        pca.partial_fit(as_given(x.astype("float32")))
    assert pca.n_samples_seen_ == sum(sizes)
    # Rows on the host are multiplied by SciPy or NumPy: nothing is compiled.
    least = 1 if kind == "dense" else 0
    assert least <= len(compilations) <= (ragged.SHAPES if least else 0)
    assert ragged.SHAPES == 12


def test_any_sequence_of_sizes_takes_constant_memory(monkeypatch):
    monkeypatch.setattr(make_plan, "LITTLE_WORK", 0)
    rng, pca = np.random.default_rng(0), EigenGamePCA(K, random_state=0)

    def fit_all(sizes):
        for n in sizes:
            pca.partial_fit(rng.normal(size=(n, 11)).astype("float32"))
        gc.collect()
        return sum(array.nbytes for array in jax.live_arrays())

    sizes = [*rng.permutation(50) + 1, *rng.integers(51, 3000, 10)]
    before = fit_all(sizes)
    assert fit_all(rng.permutation(sizes)) == before


@settings(max_examples=200, deadline=None)
@given(most=st.integers(1, 2**40), least=st.integers(1, 64), seed=st.integers(0, 2**32 - 1))
def test_there_are_few_sizes_and_each_holds_its_count(most, least, seed):
    exponents = np.random.default_rng(seed).uniform(0, np.log2(most), 500)
    counts = np.minimum(np.floor(2**exponents).astype(int), most)
    sizes = [ragged.shared_size(int(count), least, most) for count in counts]
    assert len(set(sizes)) <= ragged.SHAPES
    assert all(count <= size <= most for count, size in zip(counts, sizes, strict=True))
    if most <= least * 2 ** (ragged.SHAPES - 1):
        assert all(size <= max(2 * count, least) for count, size in zip(counts, sizes, strict=True))


@pytest.mark.parametrize(
    ("options", "weighted"), [({}, True), ({"forget": 0.99}, False), ({"center": False}, False)]
)
def test_padding_does_not_change_results(options, weighted, monkeypatch):
    def stream():
        pca = game_pca(K, random_state=0, dtype="float64", **options)
        for i, n in enumerate((5, 20, 5, 9, 20)):
            weights = np.random.default_rng(i).uniform(0.5, 2, n) if weighted else None
            pca.partial_fit(rows(i, n), sample_weight=weights)
        return pca

    padded = stream()
    monkeypatch.setattr(make_plan, "shared_size", lambda count, least, most: count)
    plain = stream()
    assert padded._result.stream.rows == plain._result.stream.rows
    # The signs of the players are arbitrary; those of the components are not.
    for name in ("components_", "explained_variance_", "mean_", "var_"):
        assert_close(getattr(padded, name), getattr(plain, name), factor=10)
    one, other = (pca._result.stream for pca in (padded, plain))
    assert_close(one.state.memory.strengths, other.state.memory.strengths, factor=10)
    assert_close(one.probes.images, other.probes.images, factor=10)
    assert_close(one.probes.largest, other.probes.largest)


def test_a_batch_that_is_rounded_away_gives_a_warning():
    heavy = np.full(N, 1e6)
    pca = EigenGamePCA(K, random_state=0).partial_fit(rows(), sample_weight=heavy)
    before = pca.mean_.copy()
    with pytest.warns(
        PrecisionWarning, match=r"3\.3e-09 of the weight .* float32 rounds away.*forget"
    ):
        pca.partial_fit(rows(1, n=1))
    assert pca._result.stream.moments.weight == np.float32(heavy.sum())  # the row is not in it
    pca.partial_fit(rows(1, n=1), sample_weight=[100.0])
    np.testing.assert_allclose(pca.mean_, before, rtol=1e-6)
    wide = EigenGamePCA(K, dtype="float64").partial_fit(rows(), sample_weight=heavy)
    assert wide.partial_fit(rows(1, n=1))._result.stream.moments.weight == heavy.sum() + 1


def test_certify_measures_what_was_fitted_whatever_is_set_since():
    pca = game_pca(K, random_state=0).fit(rows())
    before = pca.certify(rows())
    after = pca.set_params(center=False).certify(rows())
    np.testing.assert_array_equal(after.rayleigh, before.rayleigh)

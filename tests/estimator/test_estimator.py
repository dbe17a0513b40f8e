import math
import pickle

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from eigengame import EigenGamePCA, Status, UncertifiedWarning, as_source, metrics, prepare, testing
from eigengame.algorithms import REGISTRY
from eigengame.solver.planning.make_plan import make_plan
from eigengame.solver.planning.options import Options
from eigengame.solver.planning.problem import Problem
from tests.game_pca import game_pca

DIGITS = load_digits().data
K = 6
# Of the shapes that these tests have in common: each shape of a batch is a compilation of seconds.
LONG, SHORT = DIGITS[:1000], DIGITS[1000:]


def exact(x, k=K):
    return PCA(k, svd_solver="full").fit(x)


def largest_angle(pca, x, k=None):
    k = k or len(pca.components_)
    return metrics.angular_error(
        pca.components_[:k].astype("float64"), exact(x, k).components_
    ).max()


@pytest.fixture(scope="module")
def digits():
    """One pass over the digits, in float32 as for large data."""
    return game_pca(K, batch_size=256, random_state=0).fit(
        DIGITS.astype("float32").repeat(3, axis=0)
    )


def test_attributes_are_those_of_scikit_learns_pca():
    ours = game_pca(K, tol=1e-6, random_state=0).fit(DIGITS)
    theirs = exact(DIGITS)
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_"):
        np.testing.assert_allclose(
            getattr(ours, name), getattr(theirs, name), rtol=1e-6, err_msg=name
        )
    np.testing.assert_allclose(np.abs(ours.components_), np.abs(theirs.components_), atol=1e-5)
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=1e-3)
    np.testing.assert_allclose(ours.var_, DIGITS.var(axis=0), rtol=1e-6, atol=1e-12)
    assert ours.n_samples_seen_ == len(DIGITS)
    assert ours.n_components_ == K
    assert ours.n_features_in_ == 64
    assert ours.get_feature_names_out()[0] == "eigengamepca0"
    largest = ours.components_[np.arange(K), np.abs(ours.components_).argmax(axis=1)]
    assert (largest > 0).all()


def test_covariance_precision_and_scores_are_those_of_scikit_learns_pca():
    ours = game_pca(K, tol=1e-7, random_state=0).fit(DIGITS)
    theirs = exact(DIGITS)
    # Noise variance is shared over min(n, d) - k here as there.
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), atol=1e-4)
    np.testing.assert_allclose(ours.get_precision(), theirs.get_precision(), atol=1e-4)
    np.testing.assert_allclose(ours.score_samples(DIGITS), theirs.score_samples(DIGITS), rtol=1e-3)
    assert ours.score(DIGITS) == pytest.approx(theirs.score(DIGITS), rel=1e-4)


@pytest.mark.parametrize("whiten", [False, True])
def test_transform_and_back(whiten):
    ours = game_pca(K, whiten=whiten, tol=1e-6, random_state=0).fit(DIGITS)
    theirs = PCA(K, whiten=whiten, svd_solver="full").fit(DIGITS)
    np.testing.assert_allclose(
        np.abs(ours.transform(DIGITS)), np.abs(theirs.transform(DIGITS)), atol=1e-3
    )
    back = theirs.inverse_transform(theirs.transform(DIGITS))
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(DIGITS)), back, atol=1e-3)
    assert ours.transform(DIGITS.astype("float32")).dtype == np.float32


def test_without_probes_one_batch_has_nothing_to_compare_with_and_claims_nothing():
    pca = game_pca(K, probes=0, random_state=0).fit(SHORT)
    assert pca.certificate_.kind == "estimate"
    assert (pca.certificate_.angle == math.pi / 2).all()


def test_one_pass_is_certified_by_probes_and_certify_measures_it(digits):
    assert digits.certificate_.kind == "certified"
    assert digits.outcome_.status is Status.STREAM_ENDED
    assert digits.n_passes_ == 1
    assert clone(digits).set_params(probes=0).fit(DIGITS).certificate_.kind == "estimate"
    x = DIGITS.repeat(3, axis=0)
    true = metrics.angular_error(digits.components_.astype("float64"), exact(x).components_)
    assert (true <= digits.certificate_.angle).all()
    measured = clone(digits).fit(x.astype("float32")).certify(x)
    assert measured.kind == "certified"
    assert measured.confidence == pytest.approx(0.999)
    assert (true <= measured.angle + 1e-5).all()
    assert measured.streak(math.pi / 32) == K


def test_the_tolerance_is_met_and_the_outcome_states_it(digits):
    pca = game_pca(K, tol=1e-3, random_state=0, batch_size=256).fit(
        DIGITS.repeat(3, axis=0).astype("float32")
    )
    assert pca.outcome_.status is Status.CONVERGED
    assert "refined" in str(pca.outcome_)
    assert pca.certificate_.kind == "certified"
    assert pca.certificate_.angle.max() <= 1e-3
    assert largest_angle(pca, DIGITS) <= 1e-3
    with pytest.warns(UncertifiedWarning, match="not certified within 1e-09 rad"):
        spent = game_pca(K, tol=1e-9, passes=2, random_state=0).fit(DIGITS)
    assert spent.outcome_.status is Status.PASSES_SPENT
    assert spent.n_passes_ == 2
    assert "passes" in spent.outcome_.advice


@pytest.mark.parametrize("sizes", [[1797], [100] * 17 + [97], [3, 1, 97, 1, 695, 1000]])
def test_partial_fit_takes_batches_of_any_size_and_their_cut_hardly_matters(sizes):
    pca, begin = game_pca(K, random_state=0), 0
    for size in sizes:
        pca.partial_fit(DIGITS[begin : begin + size])
        begin += size
    assert pca.n_samples_seen_ == 1797
    np.testing.assert_allclose(pca.mean_, DIGITS.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(pca.var_, DIGITS.var(axis=0), rtol=1e-3, atol=1e-4)
    # The stated tolerance for how a stream is cut: 0.05 rad here, with 8 extra players.
    assert largest_angle(pca, DIGITS) < 0.05


def test_partial_fit_one_row_at_a_time_from_the_very_first():
    pca = game_pca(3, extra=5, random_state=0)
    for row in DIGITS[:40]:
        pca.partial_fit(row[None, :])
    assert np.isfinite(pca.components_).all()
    assert pca.n_samples_seen_ == 40
    assert largest_angle(pca, DIGITS[:40]) < 0.3


def test_fit_starts_again_and_partial_fit_continues():
    pca = game_pca(K, random_state=0).fit(LONG)
    pca.partial_fit(SHORT)
    assert pca.n_samples_seen_ == 1797
    assert largest_angle(pca, DIGITS) < 0.02
    pca.fit(SHORT)
    assert pca.n_samples_seen_ == 797
    refined = game_pca(K, tol=0.01, random_state=0).fit(LONG).partial_fit(SHORT)
    assert refined.n_samples_seen_ == 1797
    with pytest.raises(ValueError, match="left no memory to continue from"):
        game_pca(2, algorithm="oja").fit(DIGITS[:, 20:30]).partial_fit(DIGITS[:, 20:30])


def test_merge_is_as_good_as_having_seen_it_all():
    thirds = np.array_split(DIGITS, 3)
    a, b, c = (game_pca(K, random_state=i).partial_fit(part) for i, part in enumerate(thirds))
    merged = a.merge(b).merge(c)
    assert merged.n_samples_seen_ == 1797
    np.testing.assert_allclose(merged.mean_, DIGITS.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(merged.var_, DIGITS.var(axis=0), rtol=1e-3, atol=1e-4)
    assert largest_angle(merged, DIGITS) < 0.03
    np.testing.assert_allclose(
        merged.explained_variance_ratio_, exact(DIGITS).explained_variance_ratio_, rtol=0.01
    )
    with pytest.raises(ValueError, match="same n_components"):
        a.merge(game_pca(3).partial_fit(DIGITS[:50]))
    with pytest.raises(ValueError, match="other has no memory"):
        a.merge(game_pca(K, algorithm="oja").fit(DIGITS))


def test_a_mean_a_million_times_the_spread_costs_no_accuracy():
    x = np.random.default_rng(0).normal(size=(9000, 40)) * np.geomspace(1, 0.1, 40) + 1e6
    x = x.astype("float64")
    pca = game_pca(4, random_state=0, batch_size=500).fit(x)
    assert largest_angle(pca, x) < 0.02
    np.testing.assert_allclose(pca.mean_, x.mean(axis=0), rtol=1e-6)
    one, other = game_pca(4).partial_fit(x[:4000]), game_pca(4).partial_fit(x[4000:])
    assert largest_angle(one.merge(other), x) < 0.05


@pytest.mark.parametrize("center", [True, False])
def test_sparse_rows_give_what_dense_ones_give_and_are_never_made_dense(center, monkeypatch):
    rng = np.random.default_rng(1)
    dense = rng.poisson(0.05, size=(600, 300)) * rng.gamma(2, size=300)
    x = sparse.csr_matrix(dense)
    monkeypatch.setattr(type(x), "toarray", lambda *_: pytest.fail("made dense"))
    monkeypatch.setattr(sparse.csr_array, "toarray", lambda *_: pytest.fail("made dense"))
    ours = game_pca(4, center=center, tol=1e-4, random_state=0).fit(x)
    about = dense - dense.mean(axis=0) if center else dense
    truth = metrics.true_components(about, 4)
    assert metrics.angular_error(ours.components_, truth[1]).max() < 1e-4
    np.testing.assert_allclose(ours.singular_values_**2, truth[0], rtol=1e-6)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, truth[0] / np.sum(about**2), rtol=1e-6
    )
    np.testing.assert_allclose(ours.transform(x), EigenGamePCA.transform(ours, dense), atol=1e-8)
    stream = game_pca(4, center=center, random_state=0)
    for part in (x[:300], x[300:].tocsc()):
        stream.partial_fit(part)
    assert stream.n_samples_seen_ == 600


def test_frames_arrays_and_tensors_all_come_in():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    names = [f"pixel{i}" for i in range(64)]
    reference = game_pca(3, random_state=0).fit(DIGITS)
    frame = pandas.DataFrame(DIGITS, columns=names)
    for x in (frame, polars.DataFrame(DIGITS, schema=names), jnp.asarray(DIGITS), DIGITS.tolist()):
        np.testing.assert_allclose(
            game_pca(3, random_state=0).fit(x).components_, reference.components_, atol=1e-5
        )
    named = game_pca(3, random_state=0).fit(frame)
    assert list(named.feature_names_in_) == names
    assert list(named.set_output(transform="pandas").transform(frame).columns) == [
        f"eigengamepca{i}" for i in range(3)
    ]
    assert isinstance(
        game_pca(3).set_output(transform="polars").fit_transform(frame), polars.DataFrame
    )


def test_torch_tensors_come_in():
    torch = pytest.importorskip("torch")
    reference = game_pca(3, random_state=0).fit(DIGITS)
    ours = game_pca(3, random_state=0).fit(torch.from_numpy(DIGITS))
    np.testing.assert_allclose(ours.components_, reference.components_)


def test_a_read_only_memory_map_is_read_and_not_copied(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.tile(DIGITS, (20, 1)).astype("float32"))
    mapped = np.load(path, mmap_mode="r")
    pca = game_pca(K, random_state=0).fit(mapped)
    assert largest_angle(pca, DIGITS) < 0.01


def test_bytes_come_in_as_they_are():
    pca = game_pca(K, random_state=0, batch_size=256).fit(np.tile(DIGITS, (3, 1)).astype("uint8"))
    assert largest_angle(pca, DIGITS) < 0.01


def test_a_share_of_the_variance_is_reached_by_as_few_components_as_it_takes():
    for share in (0.3, 0.9, 0.9999):
        ours, theirs = game_pca(share, random_state=0).fit(DIGITS), PCA(share).fit(DIGITS)
        assert ours.n_components_ == theirs.n_components_
        assert ours.explained_variance_ratio_.sum() >= share


def test_passes_of_all_fits_for_a_share_are_counted(monkeypatch):
    passes = []

    class Noting:
        def batch(self, at):
            passes.extend([at.task] * at.ended)

    pca = game_pca(0.3, random_state=0).fit(DIGITS, progress=Noting())
    assert pca.n_components_ < 16
    assert passes == [
        "remembered"
    ]  # sixteen components, of which those beyond the share are left out
    assert pca.n_passes_ == pca.outcome_.passes == 1
    few = game_pca(0.3, random_state=0)
    with monkeypatch.context() as patch:
        patch.setattr("eigengame.solver.fit.estimated_count", lambda *_, **__: 2)
        few.fit(DIGITS, progress=Noting())
    assert few.n_passes_ == few.outcome_.passes == len(passes) - 1 > 1
    assert few.n_components_ == pca.n_components_


def test_all_components_by_default():
    x = np.random.default_rng(0).normal(size=(50, 12)) * np.geomspace(1, 0.1, 12)
    pca = game_pca(random_state=0).fit(x)
    assert pca.n_components_ == 12
    np.testing.assert_allclose(pca.explained_variance_, exact(x, 12).explained_variance_, rtol=1e-6)
    flat = np.concatenate([x, np.ones((50, 3))], axis=1)
    assert game_pca(random_state=0).fit(flat).n_components_ == 15


def test_auto_takes_the_covariance_where_features_are_few_and_says_so():
    tall = game_pca(K, algorithm="auto", random_state=0).fit(DIGITS[:, 20:45])
    assert "covariance" in str(tall.outcome_)
    assert tall.n_passes_ == 1
    assert largest_angle(tall, DIGITS[:, 20:45]) < 1e-3
    assert tall.certificate_.kind == "certified"
    wide = Problem(as_source(np.zeros((9000, 4000), np.int8)), Options(), algorithm="auto")
    assert make_plan(wide, K, rows=9000).route == "remembered"


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_algorithm_can_be_chosen_by_name(name):
    problem = testing.rows_with([1.0, 0.5, 0.25, 0.1, 0.05, 0.02], 200, seed=0)
    x = problem.data + 1
    # One player after the other, by small steps: these two need more updates.
    passes = 1500 if name in ("hebb_deflation", "sequential") else 60
    pca = game_pca(2, algorithm=name, passes=passes, batch_size=200, random_state=0).fit(x)
    if name == "krasulina":  # finds the subspace, not the components
        assert metrics.subspace_distance(pca.components_, exact(x, 2).components_) < 0.01
    else:
        assert largest_angle(pca, x) < 0.1
    assert name in str(pca.outcome_)
    assert pca.explained_variance_.shape == (2,)


def test_weights_count_like_repetitions():
    counts = np.random.default_rng(0).integers(0, 4, len(DIGITS))
    weighted = game_pca(K, tol=1e-6, random_state=0).fit(DIGITS, sample_weight=counts)
    repeated = game_pca(K, tol=1e-6, random_state=0).fit(np.repeat(DIGITS, counts, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-5)
    np.testing.assert_allclose(
        weighted.explained_variance_, repeated.explained_variance_, rtol=1e-6
    )
    np.testing.assert_allclose(weighted.mean_, repeated.mean_, rtol=1e-9)


def test_pipelines_grid_search_clone_and_pickle():
    labels = load_digits().target
    # Batches of one size, so that all parts of the data and the whole are compiled as one.
    pca = game_pca(8, batch_size=100, random_state=0)
    pipeline = make_pipeline(pca, LogisticRegression(max_iter=2000))
    search = GridSearchCV(pipeline, {"eigengamepca__n_components": [2, 12]}, cv=2).fit(
        DIGITS[:600], labels[:600]
    )
    assert search.best_params_ == {"eigengamepca__n_components": 12}
    fitted = game_pca(3, random_state=0).partial_fit(DIGITS[:500])
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.components_, fitted.components_)
    again.partial_fit(DIGITS[500:1000])
    fitted.partial_fit(DIGITS[500:1000])
    np.testing.assert_array_equal(again.components_, fitted.components_)
    assert not hasattr(clone(fitted), "components_")


def test_a_seed_repeats_a_fit_bit_for_bit():
    one, same, other = (
        game_pca(K, random_state=s, batch_size=256).fit(np.tile(DIGITS, (3, 1))) for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.components_, same.components_)
    assert not np.array_equal(one.components_, other.components_)


def test_forgetting_follows_a_drift():
    before, after = DIGITS[:800], DIGITS[800:, ::-1]
    pca = game_pca(2, forget=0.99, random_state=0).fit(np.concatenate([before, after]))
    still = game_pca(2, random_state=0).fit(np.concatenate([before, after]))
    assert largest_angle(pca, after[-300:]) < largest_angle(still, after[-300:])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: game_pca(65).fit(DIGITS), "n_components=65 is more than 64"),
        (lambda: game_pca(0).fit(DIGITS), "n_components"),
        (lambda: game_pca(2, tol=np.inf).fit(DIGITS), "tol=inf"),
        (lambda: game_pca(2, random_state=2**40).fit(DIGITS), "random_state=.*from 0 to"),
        (lambda: game_pca(2, algorithm="omega").fit(DIGITS), "algorithm"),
        (lambda: game_pca(2, tol=-1).fit(DIGITS), "tol"),
        (lambda: game_pca(2).fit([[1.0, np.nan], [2.0, 3.0]]), "NaN"),
        (lambda: game_pca(2, algorithm="oja").fit(sparse.csr_matrix(DIGITS)), "dense rows"),
        (lambda: game_pca(2, algorithm="oja").partial_fit(DIGITS), "batch by batch"),
        (lambda: game_pca(0.5).partial_fit(DIGITS), "needs an integer"),
        (lambda: game_pca(2).partial_fit(DIGITS).partial_fit(DIGITS[:, :9]), "9 features"),
        (lambda: game_pca(2).fit(DIGITS, sample_weight=-np.ones(1797)), "[Nn]egative"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("use", ["transform", "certify", "score"])
def test_prepared_rows_are_refused_by_a_model_of_unprepared_rows(use):
    rows = np.random.default_rng(0).normal(size=(60, 5)) * np.arange(1, 6)
    pca = EigenGamePCA(2, random_state=0).fit(rows)
    with pytest.raises(
        ValueError, match=r"is prepared \(scale\), but the rows of the fit were not"
    ):
        getattr(pca, use)(prepare(rows, scale="two-pass"))
    holes = rows.copy()
    holes[3, 2] = np.nan
    filled = prepare(holes, missing="mean")  # the remedy for NaN: no other numbers
    assert np.isfinite(pca.transform(filled)).all()

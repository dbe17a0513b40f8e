"""Probes of merged models: kept across precisions, with bounds on their errors that hold."""

import numpy as np
import pytest

from eigengame import EigenGamePCA, metrics
from eigengame.solver.streams.one_pass import probe_images
from tests.game_pca import game_pca

N, D, K = 800, 24, 4
RNG = np.random.default_rng(0)
ROWS = (RNG.normal(size=(N, D)) * 0.7 ** np.arange(D) + RNG.normal(size=D)).astype("float32")


def part(begin, end, dtype="float32", rows=ROWS, **options):
    settings = {"random_state": 0, "batch_size": 100, "dtype": dtype} | options
    return game_pca(K, **settings).partial_fit(rows[begin:end])


def scatter(rows):
    about = rows - rows.mean(axis=0, dtype=np.float64)
    return about.T @ about


def error_and_bound(pca, rows=ROWS):
    """The Frobenius norm of the errors of the products of the probes, and its bound."""
    found = probe_images(pca._result.stream)
    return np.linalg.norm(found.images - found.draws @ scatter(rows)), found.error


@pytest.mark.parametrize("types", [("float32", "float64"), ("float64", "float32")])
def test_models_in_two_precisions_keep_their_probes(types, tmp_path):
    merged = part(0, 400, types[0]).merge(part(400, N, types[1]))
    assert merged.certificate_.kind == "certified"
    assert merged._result.stream.probes.images.dtype == np.float64
    truth = np.linalg.eigh(scatter(ROWS))[1].T[::-1][:K]
    assert (metrics.angular_error(merged.components_, truth) <= merged.certificate_.angle).all()
    # The products of one part were computed in float32, and the bound on their error says so.
    error, bound = error_and_bound(merged)
    fine = error_and_bound(part(0, 400, "float64").merge(part(400, N, "float64")))
    assert fine[0] <= fine[1] < error <= bound
    # Also after a file, and after further rows in float64.
    again = EigenGamePCA.load(merged.save(tmp_path / "merged.safetensors"))
    assert error_and_bound(again) == (error, bound)
    again.partial_fit(ROWS[:100].astype("float64"))
    more, bound = error_and_bound(again, np.concatenate([ROWS, ROWS[:100]]))
    assert fine[1] < more <= bound


def test_models_with_different_numbers_of_probes_keep_those_in_common():
    # A fit with several passes has fewer probes than a stream.
    merged = part(0, 400, probes=48).merge(part(400, N, probes=32))
    assert merged._result.stream.probes.draws.shape == (32, D)
    assert merged.certificate_.kind == "certified"
    error, bound = error_and_bound(merged)
    assert 0 < error <= bound
    # Other seeds have other probes.
    apart = part(0, 400, random_state=1).merge(part(400, N))
    assert apart._result.stream.probes is None


def test_probes_do_not_depend_on_the_precision():
    one, other = (
        np.asarray(part(0, 100, dtype)._result.stream.probes.draws, np.float64)
        for dtype in ("float32", "float64")
    )
    np.testing.assert_array_equal(one, other)


def tree(models):
    while len(models) > 1:
        pairs = [models[i : i + 2] for i in range(0, len(models), 2)]
        models = [pair[0].merge(pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    return models[0]


def test_a_tree_of_merges_adds_in_short_chains():
    # About zero, so that all parts have the same frame.
    rows = ROWS - ROWS.mean(axis=0)
    parts = [part(begin, begin + 50, rows=rows) for begin in range(0, N, 50)]
    merged = tree(parts)
    probes = merged._result.stream.probes
    assert (int(probes.chain), int(probes.longest)) == (5, 50)
    assert int(merged._result.stream.state.step) == 16
    error, bound = error_and_bound(merged, rows)
    alone = part(0, N, rows=rows, batch_size=50)
    assert int(alone._result.stream.probes.chain) == 16
    assert error <= bound < error_and_bound(alone, rows)[1]


def test_the_longest_batch_counts_not_the_mean_length():
    """Of 41 batches one has 760 rows. In a tree the number of additions does not cover its rounding."""
    parts = [part(0, 760, batch_size=760), *(part(i, i + 1) for i in range(760, N))]
    merged = tree(parts)
    probes = merged._result.stream.probes
    assert int(probes.longest) == 760
    assert int(probes.chain) == 7
    whole = part(0, N, batch_size=N)
    # The same long sum, and at least as many further ones.
    assert error_and_bound(merged)[1] >= 0.9 * error_and_bound(whole)[1]


def test_rows_of_weight_0_do_not_make_a_batch_longer():
    weights = np.zeros(100)
    weights[:30] = 1
    pca = game_pca(K, random_state=0).partial_fit(ROWS[:100], sample_weight=weights)
    assert int(pca._result.stream.probes.longest) == 30


@pytest.mark.parametrize("how", ["merge", "partial_fit"])
def test_the_difference_of_two_means_counts_as_a_row(how):
    """It has one score for each probe, which is rounded like that of a row: here the largest of all."""
    near, far = ROWS[:400], ROWS[400:] + np.float32(5)
    one, other = (game_pca(K, random_state=0).partial_fit(rows) for rows in (near, far))
    both = one.merge(other) if how == "merge" else one.partial_fit(far)
    step = far.mean(axis=0, dtype=np.float64) - near.mean(axis=0, dtype=np.float64)
    unit = both._result.frame.unit
    assert float(both._result.stream.probes.largest) * unit**2 >= 0.999 * 200 * step @ step


@pytest.mark.parametrize("probes", [48, 0])
@pytest.mark.parametrize("types", [("float32", "float64"), ("float64", "float32")])
def test_data_of_low_rank_in_two_precisions_is_merged(types, probes):
    """The components explain everything, and the total of the model in float32 is rounded to float32."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(400, 3)) @ rng.normal(size=(3, D)) + rng.normal(size=D)
        one, other = (
            game_pca(K, random_state=0, dtype=dtype, probes=probes).partial_fit(part.astype(dtype))
            for dtype, part in zip(types, np.split(rows, [300]), strict=True)
        )
        merged = one.merge(other)
        assert merged.explained_variance_ratio_.sum() == pytest.approx(1, abs=1e-5)
        # Also afterwards, when all arrays are in float64.
        merged = merged.merge(other).partial_fit(rows[:10])
        assert merged.explained_variance_ratio_.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_errors_of_sums_about_another_origin_stay_bounded(dtype):
    """The first rows of one model show nothing of its mean, so its sums are about zero. The other has an origin."""
    ratios = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(200, 6)) @ rng.normal(size=(6, D)) / 2
        rows[50:] += 1e3 * np.sign(rng.normal(size=D))
        rows, weights = rows.astype(dtype), np.ones(200)
        weights[:50] = 1e-20
        one = part_of(rows[:100], weights[:100], dtype).partial_fit(rows[100:150])
        other = part_of(rows[150:], weights[150:], dtype)
        assert one._result.frame.origin is None
        assert other._result.frame.origin is not None
        found = probe_images(other.merge(one)._result.stream)
        wide, unit = rows.astype(np.longdouble) - rows[-1], other._result.frame.unit
        wide -= weights @ wide / weights.sum()
        exact = found.draws @ ((wide * weights[:, None]).T @ wide) / unit**2
        ratios.append(float(np.linalg.norm((found.images - exact).astype(float))) / found.error)
    assert 0 < max(ratios) <= 1


def part_of(rows, weights, dtype):
    return game_pca(K, random_state=0, dtype=dtype).partial_fit(rows, sample_weight=weights)

"""Certificates: bounds that hold for the data as given, ties that become clusters, figures that are the paper's."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eigengame import metrics, testing
from eigengame.solver.certificates.certificate import Certificate, certificate, stored
from eigengame.solver.certificates.clusters import Cluster
from eigengame.solver.certificates.small_products import _on_device, _on_host, small_products

D, K = 40, 4
SPECTRA = {
    "harmonic": testing.harmonic(D),
    "exponential": testing.exponential(D, 1, 1e-3),
    "near repeat": np.sort(
        np.concatenate([[1, 0.999, 0.5, 0.499, 0.498, 0.3], 0.2 * testing.harmonic(D - 6)])
    )[::-1],
    "flat tail": np.concatenate([[1, 0.8, 0.6, 0.5], np.full(D - 4, 0.1)]),
}


def settled_players(matrix, players):
    """Orthonormal players settled on the matrix in float64, and their images."""
    q = np.linalg.qr(players.T)[0].T
    _, turn = np.linalg.eigh(q @ matrix @ q.T)
    players = turn[:, ::-1].T @ q
    return players, players @ matrix


def draw(seed, name, noise, extra):
    """Under-converged players: the true ones with noise of any size, settled."""
    rng = np.random.default_rng(seed)
    problem = testing.matrix_with(SPECTRA[name], seed=seed % 7)
    players = problem.components[: K + extra] + noise * rng.normal(size=(K + extra, D)) / math.sqrt(
        D
    )
    return problem, *settled_players(problem.data, players)


NO_FLOOR = np.zeros(K + 8)
"""Images in these tests are computed in float64 from the matrix itself: what rounding they have is not given."""


def certified(players, images, k=K, **options):
    options = {"floor": NO_FLOOR[: len(players)]} | options
    return certificate(players, images, k, **options)


def outside_level(matrix, players):
    """The largest eigenvalue outside the players' span, exactly."""
    p = np.eye(D) - players.T @ players
    return np.linalg.eigvalsh(p @ matrix @ p)[-1]


@given(
    st.integers(0, 2**31 - 1),
    st.sampled_from(sorted(SPECTRA)),
    st.sampled_from([1e-6, 1e-3, 0.03, 0.1, 0.3, 1.0, 3.0]),
    st.integers(0, 6),
)
@settings(max_examples=400, deadline=None)
def test_the_bound_is_never_below_the_true_angle_if_nothing_is_missed(seed, name, noise, extra):
    problem, players, images = draw(seed, name, noise, extra)
    level = outside_level(problem.data, players)
    found = certified(players, images, level=level, confidence=1.0)
    true = metrics.angular_error(players[:K], problem.components)
    # The truth itself is known to about 1e-12 where neighbours are a thousandth apart.
    assert (true <= found.angle + 1e-12).all()
    assert found.streak(0.1) <= metrics.streak_of(true, 0.1)


@given(st.integers(0, 2**31 - 1), st.sampled_from([1e-7, 1e-4, 1e-2]))
@settings(max_examples=200, deadline=None)
def test_players_that_are_neither_settled_nor_orthonormal_are_bounded_too(seed, size):
    rng = np.random.default_rng(seed)
    problem, players, _ = draw(seed, "harmonic", 0.01, 3)
    players = players + size * rng.normal(size=players.shape) @ (players.T @ players)
    level = outside_level(problem.data, np.linalg.qr(players.T)[0].T)
    found = certified(players, players @ problem.data, level=level, confidence=1.0)
    true = metrics.angular_error(players[:K], problem.components)
    assert (true <= found.angle + 1e-12).all()


def test_players_that_lean_towards_each_other_are_tilted_by_as_much():
    # Exact eigenvectors, but the first leans towards the second by 0.01: nothing else is wrong.
    problem = testing.matrix_with(testing.harmonic(D), seed=1)
    players = problem.components[: K + 2].copy()
    players[0] = players[0] + 0.01 * players[1]
    players[0] /= np.linalg.norm(players[0])
    found = certified(players, players @ problem.data)
    assert 0.01 <= found.angle[0] < 0.02


@pytest.mark.parametrize("name", ["harmonic", "exponential", "flat tail"])
@pytest.mark.parametrize("noise", [1e-4, 1e-2, 0.1])
def test_the_bound_is_within_ten_times_the_true_angle_on_separated_spectra(name, noise):
    ratios = []
    for seed in range(20):
        problem, players, images = draw(seed, name, noise, 4)
        found = certified(players, images)
        true = metrics.angular_error(players[:K], problem.components)
        ratios.extend(found.angle / true)
    assert np.median(ratios) < 3
    assert np.quantile(ratios, 0.95) < 10


# Rounding


def rounded(gap, floor, seed=0):
    """Two close values whose images are off by `floor` in the worst direction: towards each other."""
    spectrum = np.concatenate([[1.0, 1 - gap], 0.3 * testing.harmonic(D - 2)])
    problem = testing.matrix_with(spectrum, seed=seed)
    # What is measured is settled and without residuals; the truth is mixed by the rounding of the products.
    seen = problem.components[: K + 2]
    error = floor * (np.outer(seen[0], seen[1]) + np.outer(seen[1], seen[0]))
    truth = np.linalg.eigh(problem.data + error)[1].T[::-1]
    return seen, seen @ problem.data, truth


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_rounding_of_images_enters_at_first_order_over_the_gap(gap):
    floor = gap / 100
    seen, images, truth = rounded(gap, floor)
    true = metrics.angular_error(seen[:K], truth)
    assert true[0] > 0.009
    found = certificate(seen, images, K, floor=np.full(len(seen), floor), level=0.2, confidence=1.0)
    assert (true[:2] <= found.angle[:2]).all()
    assert found.angle[0] < 3 * true[0]
    # Leaving it out would be wrong by orders of magnitude.
    blind = certified(seen, images, level=0.2, confidence=1.0)
    assert blind.angle[0] < true[0] / 10


def test_rounding_of_images_also_counts_as_residual():
    problem = testing.matrix_with(testing.harmonic(D), seed=4)
    (seen, outside), floor = problem.components[:2], 1e-6
    error = floor * (np.outer(seen, outside) + np.outer(outside, seen))
    truth = np.linalg.eigh(problem.data + error)[1].T[::-1]
    level, image = problem.eigenvalues[1], seen @ problem.data
    found = certificate(
        seen[None], image[None], 1, floor=np.full(1, floor), level=level, confidence=1.0
    )
    true = metrics.angular_error(seen[None], truth)
    assert true[0] <= found.angle[0] < 1.1 * true[0]
    assert found.residual[0] < floor  # as computed


def test_a_value_that_rounding_may_put_below_the_level_is_not_certified():
    spectrum = np.concatenate([[1.0, 0.999], 0.3 * testing.harmonic(D - 2)])
    problem = testing.matrix_with(spectrum, seed=4)
    seen, floor = problem.components[0], 2e-3
    # An image that is off by the floor along the player: the second component is the first in truth.
    truth = np.linalg.eigh(problem.data - floor * np.outer(seen, seen))[1].T[::-1]
    assert metrics.angular_error(seen[None], truth)[0] == pytest.approx(math.pi / 2)
    image = seen @ problem.data
    found = certificate(
        seen[None], image[None], 1, floor=np.full(1, floor), level=0.999, confidence=1.0
    )
    assert found.angle[0] == math.pi / 2


def test_inner_products_of_the_certificate_itself_are_rounded_too():
    # Players that are eigenvectors exactly, images that are exact, and no error given: not zero all the same.
    players = np.eye(D)[: K + 2]
    values = np.arange(K + 2, 0, -1.0)
    found = certified(players, values[:, None] * players, level=0.5, confidence=1.0)
    assert (found.angle > 1e-15).all()
    assert (found.angle < 1e-12).all()


# Clusters


def clustered(values, k, floor=1e-12, tol=None, level=0.05):
    """The certificate of exact eigenvectors with these values."""
    players = np.eye(D)[: len(values)]
    images = np.asarray(values)[:, None] * players
    return certificate(
        players, images, k, floor=np.full(len(values), floor), level=level, confidence=1.0, tol=tol
    )


def test_a_tie_is_reported_as_a_cluster_with_a_bound_on_its_span():
    found = clustered([3.0, 2.0, 2.0, 2.0, 1.0, 0.5], k=5)
    assert [one.members for one in found.clusters] == [(1, 2, 3)]
    assert (found.angle[1:4] == math.pi / 2).all()
    assert found.angle[0] < 1e-10
    assert found.angle[4] < 1e-10
    (cluster,) = found.clusters
    assert cluster.angle < 1e-10
    assert cluster.gap == pytest.approx(1, rel=1e-6)
    assert (found.group_angle < 1e-10).all()
    assert found.within(1e-3)
    assert found.streak(1e-3) == 1


def test_a_cluster_may_extend_beyond_the_components():
    found = clustered([3.0, 3.0, 3.0, 2.0, 1.0, 1.0], k=2)
    (cluster,) = found.clusters
    assert cluster.members == (0, 1, 2)
    assert "components 1 and 2 cannot be separated from 1 further direction" in found.notes()[0]
    assert found.notes()[0].endswith(": 3 components would contain it")
    assert found.within(1e-3)


def test_a_tie_with_a_direction_outside_has_no_bound():
    found = clustered([3.0, 2.0, 1.0, 1.0], k=3, level=1.0)
    assert found.clusters == ()
    assert found.angle[2] == math.pi / 2
    assert not found.within(1e-3)


def test_two_ties_are_two_clusters_and_all_of_them_one():
    two = clustered([3.0, 3.0, 2.0, 2.0, 1.0], k=4)
    assert [one.members for one in two.clusters] == [(0, 1), (2, 3)]
    one = clustered([2.0, 2.0 - 1e-12, 2.0 - 2e-12, 2.0 - 3e-12, 1.0], k=4)
    assert [cluster.members for cluster in one.clusters] == [(0, 1, 2, 3)]


def test_neighbours_are_a_cluster_only_where_rounding_keeps_them_from_the_tolerance():
    values, floor = [3.0, 2.0, 2.0 - 1e-6, 1.0], 1e-10
    assert clustered(values, 3, floor, tol=1e-2).clusters == ()
    tight = clustered(values, 3, floor, tol=1e-5)
    assert [one.members for one in tight.clusters] == [(1, 2)]
    assert tight.within(1e-5)
    # A tolerance that nothing can reach makes no cluster of everything.
    assert clustered(values, 3, floor, tol=1e-14).clusters == ()


def test_residuals_of_players_that_are_not_settled_yet_make_no_cluster():
    _, players, images = draw(3, "near repeat", 0.1, 4)
    assert certified(players, images, tol=1e-3).clusters == ()


def test_a_cluster_reads_well():
    text = Cluster((2, 3, 4), 1e-4, 0.5, 1e-7).describe(8)
    assert text == (
        "components 3 to 5 cannot be separated (variances agree to 1e-07); their span is within 0.0001 rad"
    )


# Players as they are kept


def test_storing_players_in_less_precision_is_added_to_their_bound():
    problem, players, images = draw(6, "harmonic", 1e-9, 4)
    found = certified(players, images)
    kept = players.astype(np.float16)
    rounded = stored(found, players, kept)
    true = metrics.angular_error(kept[:K].astype(np.float64), problem.components)
    assert (true > 10 * found.angle).all()
    assert (true <= rounded.angle).all()
    np.testing.assert_allclose(rounded.angle, true, rtol=0.01)


def test_the_span_of_a_cluster_is_kept_by_rotations_within_it():
    found = clustered([3.0, 2.0, 2.0, 1.0], k=3)
    players = np.eye(D)[:4]
    turn, lean = players.copy(), players.copy()
    turn[1:3] = np.array([[0.6, 0.8], [-0.8, 0.6]]) @ players[1:3]
    lean[1] = players[1] + 0.01 * np.eye(D)[7]
    assert stored(found, players, turn).clusters[0].angle < 1e-10
    assert stored(found, players, turn).angle[1] == math.pi / 2
    assert stored(found, players, lean).clusters[0].angle == pytest.approx(0.01, rel=1e-3)


# Figures


def test_figures_beside_the_bound_are_the_papers():
    problem, players, images = draw(3, "harmonic", 0.1, 3)
    # Unsettled on purpose, so that penalties are not zero.
    mixed = testing.orthogonal(7, 1) @ players
    images = mixed @ problem.data
    found = certified(mixed, images)
    gram = mixed @ problem.data @ mixed.T
    for i in range(K):
        a = problem.data.copy()
        for v in mixed[:i]:
            a -= np.outer(problem.data @ v, problem.data @ v) / (v @ problem.data @ v)
        gradient = 2 * a @ mixed[i]
        gradient -= (gradient @ mixed[i]) * mixed[i]
        gap = gram[i, i] - gram[i + 1, i + 1]
        if gap > 0:
            expected = min(math.pi / gap * np.linalg.norm(gradient), math.pi / 2)
            assert found.gradient_angle[i] == pytest.approx(expected)
        penalty = sum(gram[i, j] ** 2 / gram[j, j] for j in range(i))
        assert found.penalty_ratio[i] == pytest.approx(penalty / gram[i, i])


def test_variances_have_the_scale_that_is_given_and_angles_are_not_changed_by_it():
    _, players, images = draw(4, "harmonic", 0.05, 3)
    plain, scaled = certified(players, images), certified(players, images, scale=10.0)
    np.testing.assert_allclose(scaled.rayleigh, plain.rayleigh / 10)
    np.testing.assert_allclose(scaled.residual, plain.residual / 10)
    np.testing.assert_allclose(scaled.angle, plain.angle)
    again = scaled.scaled(10.0)
    np.testing.assert_allclose(again.gap, plain.gap)
    assert again.level == pytest.approx(plain.level)


def test_the_table_reads_well():
    _, players, images = draw(5, "harmonic", 0.05, 3)
    text = str(certified(players, images))
    assert "holds if no larger direction was missed" in text
    assert len(text.splitlines()) == 2 + K
    assert str(clustered([3.0, 3.0, 1.0], 2)).splitlines()[-1].startswith("components 1 and 2")


def test_players_far_from_orthonormal_get_no_bound():
    problem = testing.matrix_with(testing.harmonic(D), seed=1)
    players = problem.components[:K].copy()
    players[1] = players[0]
    found = certified(players, players @ problem.data)
    assert isinstance(found, Certificate)
    assert (found.angle == math.pi / 2).all()


def test_players_too_large_to_be_copied_are_measured_alike_on_the_device():
    _, players, images = draw(4, "exponential", 0.1, 2)
    given = jnp.asarray(players), jnp.asarray(images)
    one, other = _on_host(*given), _on_device(*given)
    for name in ("gram", "turn", "couplings", "tilt", "gradient"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-12)


def test_players_in_float64_on_the_host_are_measured_in_float64_however_large(monkeypatch):
    """The device has float32 in a fit by default, with errors that no bound includes."""
    monkeypatch.setattr("eigengame.solver.certificates.small_products.LARGE", 0)
    players = np.eye(2, D)
    images = players * [[1 + 1e-12], [1]]
    with jax.enable_x64(False):
        found = small_products(players, images)
    assert found.gram[0, 0] - found.gram[1, 1] == images[0, 0] - images[1, 1]

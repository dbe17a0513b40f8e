import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eigengame import testing
from eigengame.game import Rules, as_rows, as_symmetric_rows, random_players, utilities
from eigengame.game.rows import AffineRows
from tests import oracle
from tests.tolerance import assert_close

M, D, K = 40, 7, 4
seeds = st.integers(0, 2**31 - 1)
GAMES = [Rules(h, n) for h in (True, False) for n in (True, False)]
# Compiled as a whole: called eagerly, it would be a dozen compilations for each shape.
gradients = jax.jit(utilities.gradients, static_argnums=2)


def draw(seed, dtype="float64"):
    x = np.random.default_rng(seed).normal(size=(M, D)).astype(dtype)
    return as_rows(x), random_players(seed, K, D, dtype)


def gram_of(rows, players):
    scores = rows.scores(players)
    return rows.gram(scores, scores)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_utilities_equal_the_paper_in_loops(seed):
    rows, players = draw(seed)
    x, v = np.asarray(rows.values), np.asarray(players)
    expected = [oracle.utility(v[i], v[:i], x.T @ x) for i in range(K)]
    assert_close(utilities.utilities(gram_of(rows, players)), np.array(expected))


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_alpha_direction_is_algorithm_2_in_loops_with_its_factor_2(seed):
    rows, players = draw(seed)
    expected = [
        oracle.algorithm_2_gradient(np.asarray(rows.values), np.asarray(players), i)
        for i in range(K)
    ]
    assert_close(gradients(rows, players), np.array(expected))


@pytest.mark.parametrize("rules", GAMES)
def test_alpha_direction_is_the_autodiff_gradient_of_the_utility(rules, dtype):
    rows, players = draw(3, dtype)

    def own_utility(v, i):
        return utilities.utilities(gram_of(rows, players.at[i].set(v)), rules)[i]

    expected = jax.jit(jax.vmap(jax.grad(own_utility)))(players, jnp.arange(K))
    found = gradients(rows, players, rules)
    assert found.dtype == dtype
    assert_close(found, expected)


@pytest.mark.parametrize("rules", GAMES)
def test_vectorised_equals_player_by_player(rules):
    rows, players = draw(4)
    together = gradients(rows, players, rules)
    for i in range(K):
        # A player's gradient only depends on its opponents: alone with them it is the same.
        opponents = list(range(i)) if rules.hierarchy else [j for j in range(K) if j != i]
        if rules.hierarchy:
            alone = gradients(rows, players[jnp.array([*opponents, i])], rules)[-1]
        else:
            alone = gradients(rows, players[jnp.array([i, *opponents])], rules)[0]
        assert_close(alone, together[i])


def test_rows_and_matrix_of_the_same_m_give_the_same_game():
    rows, players = draw(5)
    given_m = as_symmetric_rows(rows.values.T @ rows.values)
    halved = AffineRows(as_rows(rows.values), jnp.zeros(()), jnp.asarray(0.5))
    assert_close(gram_of(given_m, players), gram_of(rows, players))
    assert_close(gradients(given_m, players), gradients(rows, players))
    assert_close(2 * gradients(halved, players), gradients(rows, players))


def test_a_player_without_reward_imposes_no_penalty_and_nothing_is_nan():
    x = jnp.zeros((3, D))
    found = gradients(as_rows(x), random_players(0, K, D, "float64"))
    np.testing.assert_array_equal(found, 0)


# The Nash equilibrium (Theorem eigvec_opt and appendix Without the Hierarchy)

SPECTRUM = np.array([5.0, 3.0, 2.0, 1.0, 0.5, 0.2, 0.1])


def test_at_the_eigenvectors_utilities_equal_eigenvalues():
    problem = testing.matrix_with(SPECTRUM, seed=1)
    rows = as_symmetric_rows(problem.data)
    for rules in (Rules(), Rules(hierarchy=False)):
        gram = gram_of(rows, jnp.asarray(problem.components[:K]))
        assert_close(utilities.utilities(gram, rules), SPECTRUM[:K])


@given(seeds, st.sampled_from([True, False]))
@settings(max_examples=50, deadline=None)
def test_at_the_eigenvectors_no_player_gains_by_deviating(seed, hierarchy):
    problem = testing.matrix_with(SPECTRUM, seed=1)
    rows, truth = as_symmetric_rows(problem.data), jnp.asarray(problem.components[:K])
    rules = Rules(hierarchy=hierarchy)
    deviations = random_players(seed, K, D, "float64")
    for i in range(K):
        deviated = utilities.utilities(gram_of(rows, truth.at[i].set(deviations[i])), rules)[i]
        along = float(deviations[i] @ truth[i]) ** 2
        # Strict: the loss is a gap times sin^2 of the deviation. Without the hierarchy
        # a player may only gain outside the span of all, where the next eigenvalue is that of K.
        next_best = SPECTRUM[i + 1] if hierarchy else SPECTRUM[K]
        gap = SPECTRUM[i] - next_best
        assert deviated <= SPECTRUM[i] - gap * (1 - along) + 1e-12


def test_other_vectors_than_the_eigenvectors_are_not_a_nash_equilibrium():
    problem = testing.matrix_with(SPECTRUM, seed=1)
    rows, truth = as_symmetric_rows(problem.data), jnp.asarray(problem.components[:K])
    swapped = truth[jnp.array([1, 0, 2, 3])]
    before = utilities.utilities(gram_of(rows, swapped))[0]
    after = utilities.utilities(gram_of(rows, swapped.at[0].set(truth[0])))[0]
    assert after > before


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_the_symmetric_profile_is_not_a_nash_equilibrium_of_the_symmetric_game(seed):
    problem = testing.matrix_with(SPECTRUM, seed=2)
    rows, rules = as_symmetric_rows(problem.data), Rules(hierarchy=False)
    v, w = random_players(seed, 2, D, "float64")
    same = jnp.stack([v] * K)
    before = utilities.utilities(gram_of(rows, same), rules)[0]
    # The proof's value of the profile. The proof deviates to any w orthogonal to v, which need not
    # gain; w orthogonal to v in M always does.
    assert_close(before, (2 - K) * (v @ rows.matrix @ v))
    away = w - (w @ rows.matrix @ v) / (v @ rows.matrix @ v) * v
    deviated = same.at[0].set(away / jnp.linalg.norm(away))
    assert utilities.utilities(gram_of(rows, deviated), rules)[0] > 0 >= before

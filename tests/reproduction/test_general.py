import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import general as game
from reproduction.experiments import general, general_ring
from reproduction.experiments.general import EXACT, KINDS, K


@pytest.fixture(scope="module")
def seen(results):
    return results("general")


def test_the_blob_is_inside_the_ring_and_no_feature_separates_them():
    data, ring = general_ring.blob_and_ring(0, 2000)
    far = np.linalg.norm(data[:, :2], axis=1)
    assert far[ring].min() > far[~ring].max()
    assert np.abs(data.mean(axis=0)).max() < 1e-12
    assert general_ring.classified(data, ring) < 0.6
    assert general_ring.classified(far[:, None], ring) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_no_player_increases_lengths(kind):
    widths = (3, 1) if kind == "linear" else (3, 8, 1)
    parameters = game.mlp_players(0, K, widths)
    x, y = np.random.default_rng(0).normal(size=(2, 50, 3))
    # Both at once: outputs are less the mean of all, which is the same for either.
    out = np.asarray(game.outputs(KINDS[kind], parameters, jnp.asarray(np.concatenate([x, y]))))
    apart = np.linalg.norm(x - y, axis=1)
    assert (np.abs(out[:50] - out[50:]) <= (1 + 1e-6) * apart[:, None]).all()
    assert np.abs(out.mean(axis=0)).max() < 1e-6


def test_sorted_pairs_hold_the_linear_score_and_the_distance_from_a_line():
    x = np.random.default_rng(0).normal(size=(20, 3))
    along = x @ np.array([0.6, 0.8, 0])
    # Two hidden values: half the score and minus it, or twice the same.
    for first, last, expected in (
        ([1, -1], [1, -1], np.sqrt(2) * np.abs(along)),
        ([1, 1], [1, 1], np.sqrt(2) * along),
    ):
        layer = np.outer([0.6, 0.8, 0], first)
        top = np.array(last)[:, None] / np.sqrt(2)
        out = general_ring.sorted_pairs([jnp.asarray(layer), jnp.asarray(top)], jnp.asarray(x))
        np.testing.assert_allclose(out, expected - expected.mean(), atol=1e-6)


def test_isometric_pairs_preserve_all_directions():
    flat = [jnp.asarray(np.random.default_rng(0).normal(size=(3, 8)) * [[1.0], [1e-3], [1e-3]])]
    turned = np.asarray(jnp.linalg.qr(flat[0].T)[0].T)
    np.testing.assert_allclose(turned @ turned.T, np.eye(3), atol=1e-6)
    top = jnp.ones((8, 1)) / np.sqrt(8)
    x = jnp.asarray(np.random.default_rng(1).normal(size=(5, 3)))
    expected = general_ring.sorted_pairs([jnp.asarray(turned), top], x)
    np.testing.assert_allclose(general_ring.isometric_pairs([flat[0], top], x), expected)


def test_overlaps_are_cosines_and_zero_for_a_zero_output():
    outputs = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    assert general_ring.largest_overlap(outputs) == pytest.approx(np.sqrt(0.5))
    assert general_ring.largest_overlap(outputs[:, [0, 2]]) == 0


@pytest.mark.slow
def test_linear_players_are_the_components_in_the_ball_and_on_the_sphere(seen):
    for place in ("linear", "sphere"):
        assert seen["kinds"][place]["angle"]["most"] < EXACT
    assert seen["kinds"]["linear"]["length"]["least"] == pytest.approx(1, abs=1e-4)


@pytest.mark.slow
def test_networks_separate_what_linear_players_do_not(seen):
    told = {kind: seen["kinds"][kind]["told apart"]["mean"] for kind in KINDS}
    assert told["isometric pairs"] > max(told["linear"], told["tanh"])
    earned = {kind: seen["kinds"][kind]["utility"]["mean"] for kind in KINDS}
    assert sum(earned["isometric pairs"]) > sum(earned["linear"]) > sum(earned["tanh"])


def test_the_summary_depends_on_what_each_kind_separates(stored):
    results = stored("general")
    said = general.summary(results)
    assert "isometric first layer and sorted pairs separate blob and ring better than" in said
    assert "tanh and no biases (odd functions) separate blob and ring no better than" in said
    results["kinds"]["isometric pairs"]["told apart"]["mean"] = 0.2
    results["kinds"]["tanh"]["told apart"]["mean"] = 0.9
    said = general.summary(results)
    assert "isometric first layer and sorted pairs separate blob and ring worse than" in said
    assert "tanh and no biases (odd functions) separate blob and ring better than" in said


def test_the_summary_depends_on_the_angle_of_linear_players(stored):
    results = stored("general")
    assert "Linear players are the principal components" in general.summary(results)
    results["kinds"]["linear"]["angle"]["most"] = 1.0
    assert "Linear players are not the principal components" in general.summary(results)


def test_claims_depend_on_the_numbers_and_the_extension_is_not_judged(stored):
    results = stored("general")
    verdicts = [claim.verdict.value for claim in general.claims(results)]
    assert verdicts == ["holds", "not comparable", "holds", "holds", "does not hold"]
    kinds = results["kinds"]
    kinds["linear"]["angle"]["most"] = 1.0
    kinds[general.NETWORK]["told apart"]["mean"] = 0.5
    kinds[general.NETWORK]["overlap"]["most"] = 0.01
    verdicts = [claim.verdict.value for claim in general.claims(results)]
    assert verdicts == [
        "does not hold",
        "not comparable",
        "does not hold",
        "does not hold",
        "holds",
    ]

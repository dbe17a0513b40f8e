"""Gradients of examples computed by JAX: rows, labels that are drawn, fits, and errors."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import EigenGamePCA, SourceError, gradients, metrics
from eigengame.sources._likelihoods import LARGEST_UNIFORM, uniforms
from tests.game_pca import game_pca
from tests.sources.tables import error_of, same_fingerprint

N, BATCH, WIDTH, CLASSES = 300, 64, 5, 3
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(N, WIDTH)) * np.geomspace(2, 0.2, WIDTH)).astype(np.float32)
Y = RNG.integers(0, CLASSES, N)
PARAMS = {
    "bias": RNG.normal(size=CLASSES).astype(np.float32),
    "layers": [RNG.normal(size=(WIDTH, CLASSES)).astype(np.float32)],
}
BATCHES = [(X[i : i + BATCH], Y[i : i + BATCH]) for i in range(0, N, BATCH)]


def linear(params, x, *_):
    return x @ params["layers"][0] + params["bias"][None, :]


def copied(source, start=0, size=BATCH):
    return np.concatenate([np.array(block.values) for block in source.blocks(start, size)])


def softmax(z):
    powers = np.exp(z - z.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def by_hand(slopes):
    """Return rows from the derivatives of the loss by the outputs (n, classes), example by example."""
    rows = []
    for x, slope in zip(X.astype(float), slopes, strict=True):
        rows.append(np.concatenate([slope, np.outer(x, slope).ravel()]))
    return np.array(rows)


def scores():
    return X.astype(float) @ PARAMS["layers"][0].astype(float) + PARAMS["bias"]


def labels_of(rows):
    """Return the label of each row of a softmax model: its bias has the only negative gradient."""
    return rows[:, :CLASSES].argmin(axis=1)


@pytest.fixture(scope="module")
def empirical():
    return gradients("categorical", PARAMS, BATCHES, "empirical", outputs=linear)


@pytest.fixture(scope="module")
def sampled():
    return gradients("categorical", PARAMS, BATCHES, outputs=linear)


# ---------------------------------------------------------------- rows


def test_empirical_rows_equal_those_of_a_plain_loop_from_any_row(empirical):
    truth = by_hand(softmax(scores()) - np.eye(CLASSES)[Y])
    assert empirical.shape == truth.shape
    assert (empirical.dtype, empirical.block_rows) == (np.float32, BATCH)
    for start, size in ((0, BATCH), (70, 50)):
        np.testing.assert_allclose(copied(empirical, start, size), truth[start:], atol=1e-5)


@pytest.mark.parametrize(
    ("likelihood", "targets", "slopes"),
    [
        ("gaussian", RNG.normal(size=(N, CLASSES)).astype(np.float32), lambda z, y: z - y),
        ("bernoulli", RNG.integers(0, 2, (N, CLASSES)), lambda z, y: 1 / (1 + np.exp(-z)) - y),
    ],
)
def test_other_likelihoods_have_the_slopes_of_their_formulas(likelihood, targets, slopes):
    batches = [{"x": X[:BATCH], "y": targets[:BATCH]}, {"x": X[BATCH:], "y": targets[BATCH:]}]
    found = gradients(
        likelihood,
        PARAMS,
        batches,
        "empirical",
        target="y",
        outputs=lambda p, batch: linear(p, batch["x"]),
    )
    np.testing.assert_allclose(copied(found), by_hand(slopes(scores(), targets)), atol=2e-5)


def test_a_loss_of_batches_is_used_for_single_examples(empirical):
    def loss(params, x, y):
        return -jnp.mean(
            jnp.take_along_axis(jax.nn.log_softmax(linear(params, x)), y[:, None], axis=1)
        )

    own = gradients(loss, PARAMS, BATCHES, "empirical")
    np.testing.assert_allclose(copied(own), copied(empirical), atol=1e-5)


def test_the_size_of_a_chunk_changes_rounding_only(empirical):
    for chunk in (1, 7):
        other = gradients("categorical", PARAMS, BATCHES, "empirical", outputs=linear, chunk=chunk)
        assert other.chunk == chunk
        np.testing.assert_allclose(copied(other), copied(empirical), atol=1e-6)


def test_memory_grows_with_the_chunk_not_with_the_batch():
    rows, weights = 64, [np.ones((16, 64), np.float32), *np.ones((2, 64, 64), np.float32)]

    def loss(params, x):
        for one in params:
            x = jnp.tanh(x @ one)
        return jnp.sum(x**2)

    def temporary_bytes(chunk):
        x = np.ones((rows, 16), np.float32)
        network = gradients(loss, weights, [x], "empirical", chunk=chunk)._network
        given = (network._leaves_of_params, (x, np.zeros(rows, np.float32)), None)
        compiled = jax.jit(network._rows_of).lower(*given).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    gradient = 4 * sum(one.size for one in weights)
    # Parts of the gradients and the joined ones, and the activations, which are much smaller.
    assert temporary_bytes(4) < 3 * 4 * gradient
    assert temporary_bytes(64) > 3 * 4 * gradient


def test_a_component_becomes_a_tree_like_the_parameters(empirical):
    assert empirical.layers.names == ["bias", "layers.0"]
    tree = empirical.unflatten(np.arange(18.0))
    assert jax.tree.structure(tree) == jax.tree.structure(PARAMS)
    np.testing.assert_array_equal(tree["layers"][0], np.arange(3.0, 18).reshape(5, 3))
    assert empirical.describe_feature(4) == "the gradient by 'layers.0' at (0, 1)"
    with pytest.raises(ValueError, match=r"shape \(18,\); layers.cut splits several"):
        empirical.unflatten(np.zeros((2, 18)))


def test_parameters_are_chosen_by_name(empirical):
    some = gradients("categorical", PARAMS, BATCHES, "empirical", outputs=linear, names="layers.*")
    np.testing.assert_allclose(copied(some), copied(empirical)[:, 3:], atol=1e-6)
    assert some.unflatten(np.zeros(15))["bias"] is None


# ---------------------------------------------------------------- labels that are drawn


def test_drawn_labels_depend_on_the_seed_and_the_row_only(sampled):
    rows = copied(sampled)
    labels = labels_of(rows)
    np.testing.assert_allclose(
        rows, by_hand(softmax(scores()) - np.eye(CLASSES)[labels]), atol=1e-5
    )
    np.testing.assert_allclose(copied(sampled, 70, 50), rows[70:], atol=1e-6)
    longer = [(X[i : i + 100],) for i in range(0, N, 100)]
    other = gradients("categorical", PARAMS, longer, outputs=linear, chunk=3)
    np.testing.assert_allclose(copied(other), rows, atol=1e-6)
    again = gradients("categorical", PARAMS, BATCHES, outputs=linear, seed=1)
    assert (labels_of(copied(again)) != labels).mean() > 0.2
    assert not same_fingerprint(again, sampled)
    assert again.digest() != sampled.digest()


@pytest.mark.parametrize("likelihood", ["categorical", "bernoulli", "gaussian"])
def test_drawn_labels_give_the_fisher_matrix(likelihood):
    """The mean of g g' over many draws for one input is the Fisher matrix of its outputs."""
    n = 40_000
    z = np.array([1.0, -0.5, 0.2], np.float32)
    source = gradients(
        likelihood,
        z,
        [np.zeros((n, 1), np.float32)],
        outputs=lambda p, x: p[None, :] + 0 * x,
    )
    rows = copied(source, size=n).astype(float)
    found = rows.T @ rows / n
    p = softmax(z.astype(float))
    sigmoid = 1 / (1 + np.exp(-z.astype(float)))
    truth = {
        "categorical": np.diag(p) - np.outer(p, p),
        "bernoulli": np.diag(sigmoid * (1 - sigmoid)),
        "gaussian": np.eye(3),
    }[likelihood]
    # The fourth moments of the slopes are at most 3, so that standard errors are at most sqrt(2 / n); six of them.
    np.testing.assert_allclose(found, truth, atol=6 * math.sqrt(2 / n))
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=6 / math.sqrt(n))


def test_uniform_numbers_of_a_row_do_not_depend_on_other_rows():
    for shape in ((), (3,), (2, 5)):
        every = uniforms(7, 0, 50, shape)
        assert every.shape == (50, *shape)
        assert ((every >= 0) & (every <= LARGEST_UNIFORM)).all()
        np.testing.assert_array_equal(uniforms(7, 13, 20, shape), every[13:33])
    assert len(np.unique(uniforms(0, 0, 1000, (4,)))) > 3990


# ---------------------------------------------------------------- fits


def test_a_fit_gives_the_eigenvectors_of_the_fisher_matrix(sampled):
    rows = copied(sampled).astype(float)
    values, truth = metrics.true_components(matrix=rows.T @ rows / N, k=3)
    for pca in (
        EigenGamePCA(3, center=False, random_state=0).fit(sampled),
        game_pca(3, center=False, random_state=0, passes=4).fit(sampled),
    ):
        assert metrics.angular_error(pca.components_, truth).max() < 1e-3
        np.testing.assert_allclose(pca.singular_values_**2 / pca.n_samples_seen_, values, rtol=1e-4)
        assert pca.layers_.names == ["bias", "layers.0"]
        np.testing.assert_allclose(pca.transform(sampled), rows @ pca.components_.T, atol=1e-4)


def test_centring_is_refused_unless_the_covariance_is_meant(sampled):
    for call in (EigenGamePCA(2).fit, EigenGamePCA(2).partial_fit):
        assert "center=False), or gradients(..., covariance=True)" in error_of(call, sampled)
    noise = gradients("categorical", PARAMS, BATCHES, outputs=linear, covariance=True)
    pca = EigenGamePCA(2, random_state=0).fit(noise)
    away = copied(sampled).astype(float)
    away -= away.mean(axis=0)
    assert metrics.angular_error(pca.components_, metrics.true_components(away, 2)[1]).max() < 1e-3


def test_tiny_gradients_keep_their_digits():
    """The unit of the fit is found on the device: squares of 1e-25 are 0 in float32."""

    def loss(params, x, y):
        return 1e-25 * jnp.sum(params["layers"][0] * x[0, :, None]) ** 2

    big = [np.tile(X, (60, 1)), np.tile(Y, 60)]
    source = gradients(loss, PARAMS, [tuple(big)], "empirical")
    assert source.shape[0] * source.shape[1] > 2**18  # in float32
    rows = copied(source, size=5000).astype(float)
    truth = metrics.true_components(rows, 2)[1]
    pca = game_pca(2, center=False, random_state=0).fit(source)
    assert metrics.angular_error(pca.components_, truth).max() < 1e-3


def test_a_checkpoint_recognises_the_parameters(sampled):
    same = gradients("categorical", jax.tree.map(np.copy, PARAMS), BATCHES, outputs=linear)
    assert same.digest() == sampled.digest()
    other = gradients("categorical", jax.tree.map(lambda a: a + 1, PARAMS), BATCHES, outputs=linear)
    assert other.digest() != sampled.digest()


# ---------------------------------------------------------------- errors


def test_bad_arguments_are_refused_with_the_remedy():
    options = {"outputs": linear}
    for message, arguments, given in (
        ("kind='empirical' for the observed labels", (lambda p, x, y: 0.0, PARAMS, BATCHES), {}),
        ("give outputs=lambda params", ("categorical", PARAMS, BATCHES), {}),
        ("chunk=0: give an integer", ("categorical", PARAMS, BATCHES), {"chunk": 0} | options),
        (
            "give bfloat16 or float32",
            ("categorical", PARAMS, BATCHES),
            {"dtype": "float16"} | options,
        ),
        ("is for torch modules", ("categorical", PARAMS, BATCHES), {"device": "cpu"} | options),
        ("params has no arrays", ("categorical", {}, BATCHES), options),
        ("'bias' is a str", ("categorical", {"bias": "none"}, BATCHES), options),
        ("seed=-1", ("categorical", PARAMS, BATCHES), {"seed": -1} | options),
    ):
        assert message in error_of(gradients, *arguments, **given)
    for name in ("loss", "kind", "nonfinite"):
        given = {"loss": "categorical", "kind": "sampled"} | {name: "other"}
        with pytest.raises(ValueError, match=f"{name}='other'"):
            gradients(params=PARAMS, loader=BATCHES, outputs=linear, **given)


def test_parameters_without_a_gradient_are_refused_by_name():
    counted = PARAMS | {"steps": np.arange(3)}
    message = error_of(gradients, "categorical", counted, BATCHES, outputs=linear)
    assert "parameters 'steps' have dtype int" in message
    assert "names=" in message
    names = ["bias", "layers.*"]
    assert gradients("categorical", counted, BATCHES, outputs=linear, names=names).shape[1] == 18


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda p, x, y: jnp.sum(x), "does not depend on 'bias', 'layers.0'"),
        (lambda p, x, y: jnp.sum(linear(jax.lax.stop_gradient(p), x)), "does not depend on"),
        (lambda p, x, y: linear(p, x), r"has shape (1, 3) and dtype float32"),
        (lambda p, x, y: jnp.argmax(linear(p, x)), "return one real number"),
        (lambda p, x, y: (jnp.sum(linear(p, x)), 0), "where one array is needed"),
        (lambda p, x, y: jnp.sum(linear(p, x)) if x[0, 0] > 0 else 0.0, "cannot be traced"),
    ],
)
def test_losses_that_have_no_gradient_are_refused(loss, message):
    assert message in error_of(gradients, loss, PARAMS, BATCHES, "empirical")


def test_a_loss_with_a_constant_or_a_zero_gradient_is_no_error():
    line = gradients(lambda p, x, y: jnp.sum(p["bias"]), PARAMS, BATCHES, "empirical")
    np.testing.assert_array_equal(copied(line)[:, :4], [[1, 1, 1, 0]] * N)
    flat = gradients(lambda p, x, y: jnp.sum(p["bias"] * 0 * x[0, 0]), PARAMS, BATCHES, "empirical")
    assert not copied(flat).any()


def test_gradients_that_are_not_finite_name_the_example():
    def loss(params, x, y):
        return jnp.sum(params["bias"] * jnp.log(x[0, 0])) + jnp.sum(params["layers"][0])

    bad = np.ones((N, WIDTH), np.float32)
    bad[[123, 200], 0] = -1
    batches = [(bad[i : i + BATCH], Y[i : i + BATCH]) for i in range(0, N, BATCH)]
    source = gradients(loss, PARAMS, batches, "empirical")
    with pytest.raises(ValueError, match=r"by 'bias' at \(0,\) is nan in row 123.*nonfinite=.skip"):
        game_pca(2, center=False).fit(source)
    left = gradients(loss, PARAMS, batches, "empirical", nonfinite="skip")
    pca = game_pca(2, center=False, random_state=0).fit(left)
    assert pca.n_samples_seen_ == N - 2


@pytest.mark.parametrize(
    ("likelihood", "labels", "message"),
    [
        ("categorical", np.where(np.arange(N) == 77, -100, Y), "label of example 77 is -100"),
        ("categorical", np.where(np.arange(N) == 77, 3, Y), "give integers from 0 to 2"),
        ("categorical", Y.astype(float), "give integers, or a loss of your own"),
        ("bernoulli", np.full((N, CLASSES), 2), "label of example 0 is 2"),
    ],
)
def test_labels_that_the_likelihood_does_not_have_are_refused(likelihood, labels, message):
    batches = [(X[i : i + BATCH], labels[i : i + BATCH]) for i in range(0, N, BATCH)]
    source = gradients(likelihood, PARAMS, batches, "empirical", outputs=linear)
    assert message in error_of(copied, source)


def test_labels_of_another_shape_are_refused():
    wide = [(X, RNG.normal(size=N))]
    message = error_of(gradients, "gaussian", PARAMS, wide, "empirical", outputs=linear)
    assert "loss='gaussian' needs labels of shape (1, 3)" in message
    alone = error_of(gradients, "gaussian", PARAMS, [X], "empirical", outputs=linear)
    assert "a batch has 1 parts, but target=1" in alone


def test_a_loader_that_can_be_read_once_is_read_once():
    source = gradients("categorical", PARAMS, iter(BATCHES), outputs=linear)
    assert not source.again
    copied(source)
    with pytest.raises(SourceError, match="can be read once"):
        source.blocks(0, BATCH)

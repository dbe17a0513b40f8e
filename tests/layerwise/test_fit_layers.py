"""Fits of all layers in one pass: agreement with float64, routes, groups, files, pictures and bad input."""

import re
import warnings
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from eigengame import EigenGamePCA, LayerFits, UncertifiedWarning, activations, fit_layers
from eigengame.layerwise import solve as solving
from eigengame.layerwise.groups import by_covariance
from eigengame.linalg.chebyshev import leading_eigenvectors
from eigengame.metrics import angular_error
from eigengame.model_file import ModelFileError
from eigengame.solver.results.half_precision import HalfPrecisionWarning
from tests.sources.tables import error_of

D, K = 24, 4
RANDOM = np.random.default_rng(0)
WEIGHTS = [(RANDOM.normal(size=(D, D)) / D**0.5).astype(np.float32) for _ in range(3)]
SCALE = (np.arange(1, D + 1) ** -0.7).astype(np.float32)[None, None, :]


def network(batch, shift=1.0):
    """Return hidden states of three layers; each position depends on itself and on the mean of all."""
    x, mask = batch["x"], batch["mask"]
    found = {}
    for i, weights in enumerate(WEIGHTS):
        mean = (x * mask[..., None]).sum(1) / mask.sum(1)[:, None]
        x = (x @ weights + 0.2 * mean[:, None]) * SCALE + shift
        found[f"layer{i}"] = x
    return found


def texts(count=30, seed=1):
    """Return batches of different lengths, with masks."""
    random, batches = np.random.default_rng(seed), []
    for _ in range(count):
        lengths = random.integers(1, 15, 8)
        mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.float32)
        x = (random.normal(size=(*mask.shape, D)) * 3).astype(np.float32)
        batches.append({"x": x * mask[..., None], "mask": mask})
    return batches


def truth(batches, layer, shift=1.0):
    """Return components (K, D) and eigenvalues of a layer in float64, by NumPy."""
    found = []
    for batch in batches:
        x, mask = batch["x"].astype(np.float64), batch["mask"].astype(np.float64)
        for weights in WEIGHTS[: layer + 1]:
            mean = (x * mask[..., None]).sum(1) / mask.sum(1)[:, None]
            x = (x @ weights + 0.2 * mean[:, None]) * SCALE + shift
        found.append(x[mask > 0])
    rows = np.concatenate(found)
    _, singular, components = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    return components[:K], singular**2 / (len(rows) - 1), rows


@pytest.fixture(scope="module")
def fits():
    return fit_layers(network, texts(), k=K, mask="mask")


@pytest.mark.parametrize("algorithm", ["covariance", "remembered"])
def test_each_layer_agrees_with_float64(algorithm, fits):
    found = fits if algorithm == "covariance" else None
    if found is None:
        found = fit_layers(
            network, texts(), k=K, mask="mask", algorithm=algorithm, batch_size=512, tol=None
        )
    assert list(found) == ["layer0", "layer1", "layer2"]
    for i, pca in enumerate(found.values()):
        components, values, rows = truth(texts(), i)
        angles = angular_error(pca.components_.astype(float), components)
        # One pass of the game forgets a little; the matrix is exact up to float32.
        assert angles.max() < (1e-4 if algorithm == "covariance" else 0.02)
        assert (pca.certificate_.angle >= angles).all()
        np.testing.assert_allclose(pca.explained_variance_, values[:K], rtol=5e-3)
        np.testing.assert_allclose(pca.mean_, rows.mean(0), atol=1e-5)
        assert pca.n_samples_seen_ == len(rows)
        assert pca.outcome_.passes == 1
        assert algorithm.split()[0] in pca.outcome_.route


def test_certificates_hold_where_two_values_are_close(fits):
    assert all(one["certified"] == K for one in fits.table())
    assert all(pca.certificate_.kind == "certified" for pca in fits.values())
    assert all(pca.certificate_.confidence < 1 for pca in fits.values())


def test_the_effective_dimension_is_that_of_all_eigenvalues(fits):
    for i, one in enumerate(fits.table()):
        values = truth(texts(), i)[1]
        expected = values.sum() ** 2 / (values**2).sum()
        # Squares beyond the players are estimated by 48 probes, and are a small part.
        assert one["effective_dimension"] == pytest.approx(expected, rel=0.02)
        assert one["explained"] == pytest.approx(values[:K].sum() / values.sum(), rel=1e-3)


def test_a_layer_alone_has_the_same_fit_as_in_a_stack(fits):
    alone = fit_layers(network, texts(), "layer1", K, mask="mask", stack=False)["layer1"]
    np.testing.assert_allclose(alone.components_, fits["layer1"].components_, atol=1e-5)


def test_the_network_runs_once_for_each_batch():
    calls = []

    def counted(x):
        jax.debug.callback(lambda: calls.append(1))
        return {"one": x, "two": 2 * x}

    batches = [np.random.default_rng(i).normal(size=(4, 6, D)).astype(np.float32) for i in range(5)]
    fit_layers(counted, iter(batches), k=2, tol=None)
    jax.effects_barrier()
    assert len(calls) == 5


def test_whole_inputs_and_pixels_are_rows_too():
    images = np.random.default_rng(0).normal(size=(40, 6, 6, 5)).astype(np.float32)

    scale = np.arange(1, 6, dtype=np.float32)[None, None, None, :]

    def maps(x):
        return {"large": x, "small": x[:, ::2, ::2] * scale}

    found = fit_layers(maps, [images[:25], images[25:]], k=2, rows="pixels", tol=None)
    assert [pca.n_samples_seen_ for pca in found.values()] == [40 * 36, 40 * 9]
    rows = images[:, ::2, ::2].reshape(-1, 5) * np.arange(1, 6)
    components = np.linalg.svd(rows - rows.mean(0), full_matrices=False)[2]
    assert angular_error(found["small"].components_.astype(float), components[:2]).max() < 1e-3
    whole = fit_layers(maps, [images[:25], images[25:]], "small", 2, rows="inputs", tol=None)
    assert whole["small"].components_.shape == (2, 45)
    assert whole["small"].n_samples_seen_ == 40
    assert whole["small"].layers_[0].shape == (3, 3, 5)


def test_a_fit_transforms_continues_and_is_stored(fits, tmp_path):
    pca, rows = fits["layer1"], truth(texts(), 1)[2]
    scores = pca.transform(activations(network, texts(), pca.layers_, rows="tokens", mask="mask"))
    np.testing.assert_allclose(scores, (rows - pca.mean_) @ pca.components_.T, atol=1e-4)
    for target in (tmp_path / "all.safetensors", tmp_path / "folder"):
        fits.save(target)
        again = LayerFits.load(target)
        assert str(again) == str(fits)
        np.testing.assert_array_equal(again["layer2"].components_, fits["layer2"].components_)
    assert len(list((tmp_path / "folder").iterdir())) == 3
    single = EigenGamePCA.load(tmp_path / "folder" / "001-layer1.safetensors")
    twice = single.merge(fits["layer1"])
    assert twice.n_samples_seen_ == 2 * pca.n_samples_seen_
    assert (
        angular_error(twice.components_.astype(float), pca.components_.astype(float)).max() < 1e-3
    )


def test_files_that_are_not_fits_of_layers_are_refused(fits, tmp_path):
    fits["layer0"].save(tmp_path / "one.safetensors")
    with pytest.raises(ModelFileError, match="does not contain fits of layers"):
        LayerFits.load(tmp_path / "one.safetensors")
    with pytest.raises(ModelFileError, match="does not exist"):
        LayerFits.load(tmp_path / "none.safetensors")
    target = fits.save(tmp_path / "all.safetensors")
    damaged = bytearray(target.read_bytes())
    damaged[-7] ^= 1
    target.write_bytes(damaged)
    with pytest.raises(ModelFileError, match="checksum"):
        LayerFits.load(target)


def test_the_picture_shows_each_layer(fits, tmp_path):
    text = fits.draw(tmp_path / "layers.svg").read_text()
    assert all(f">{name}<" in text for name in fits)
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert text.count("<title>4 of 4</title>") == 3
    share = fits.table()[0]["explained"]
    assert f"first 4: {share:.1%}" in text
    widths = [
        float(one) for one in re.findall(r'width="([0-9.]+)" height="11" fill="#c6dbef"', text)
    ]
    assert widths[0] == pytest.approx(190 * share, abs=0.1)
    with pytest.raises(ValueError, match=r"\.svg"):
        fits.draw(tmp_path / "layers.png")


def test_rows_in_half_precision_are_centred_before_they_are_rounded():
    batches = texts()

    def far(batch):
        return network(batch, shift=100.0)

    found = fit_layers(far, batches, k=K, mask="mask", dtype="bfloat16")
    for i, pca in enumerate(found.values()):
        components = truth(batches, i, shift=100.0)[0]
        # Without an origin, components of layer 2 are off by up to 1.5 rad: see below.
        assert angular_error(pca.components_.astype(float), components).max() < 5e-3
        assert pca.outcome_.rounding == "bfloat16, centred first"
    with pytest.warns(HalfPrecisionWarning, match="times as large as their spread"):
        once = fit_layers(far, iter(batches), k=K, mask="mask", dtype="bfloat16", tol=None)
    assert once["layer2"].outcome_.rounding == "bfloat16"
    components = truth(batches, 2, shift=100.0)[0]
    assert angular_error(once["layer2"].components_.astype(float), components).max() > 0.3


def test_layers_of_different_shapes_are_stacked_only_by_shape():
    def two(x):
        return {"wide": x, "narrow": x[..., :5]}

    batches = [np.random.default_rng(i).normal(size=(3, 7, D)).astype(np.float32) for i in range(3)]
    assert "layers have 2 different shapes ('narrow': 7 positions of 5 features" in error_of(
        fit_layers, two, batches, None, 2, stack=True
    )
    assert set(fit_layers(two, batches, None, 2, tol=None)) == {"wide", "narrow"}

    def parting(x):
        return {"one": x, "two": x[:, :5]}

    lengths = [
        np.random.default_rng(i).normal(size=(2, n, D)).astype(np.float32)
        for i, n in enumerate((5, 6))
    ]
    assert "'one' 12, 'two' 10" in error_of(fit_layers, parting, lengths, None, 2)
    alone = fit_layers(parting, lengths, None, 2, stack=False, tol=None)
    assert [pca.n_samples_seen_ for pca in alone.values()] == [22, 20]


def test_bad_input_is_refused():
    batches = texts(2)
    nothing = [one | {"mask": 0 * one["mask"]} for one in batches]
    assert "no positions are left" in error_of(fit_layers, network, nothing, None, 2, mask="mask")
    assert "k=25 is more than the 24 features" in error_of(
        fit_layers, network, batches, None, 25, mask="mask"
    )
    with pytest.raises(ValueError, match="algorithm='power'"):
        fit_layers(network, batches, algorithm="power")
    with pytest.raises(ValueError, match="stack='yes'"):
        fit_layers(network, batches, mask="mask", stack="yes")
    broken = [one | {"x": one["x"] * np.nan} for one in batches]
    assert "layer 'layer0' has NaN or infinite numbers" in error_of(
        fit_layers, network, broken, None, 2, mask="mask"
    )
    few = [{"x": np.ones((1, 1, D), np.float32), "mask": np.ones((1, 1), np.float32)}]
    assert "has 1 row" in error_of(fit_layers, network, few, None, 2, mask="mask")


def test_layers_that_are_not_certified_are_named():
    random = np.random.default_rng(0)
    flat = [random.normal(size=(20, 10, D)).astype(np.float32)]
    with pytest.warns(
        UncertifiedWarning, match=r"components of output \([1-4] of 4\) are not certified"
    ):
        fit_layers(lambda x: x, flat, k=K, algorithm="remembered")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_layers(lambda x: x, flat, k=K, algorithm="remembered", tol=None)


def test_filters_find_the_eigenvectors_that_lapack_finds():
    random = np.random.default_rng(3)
    basis = np.linalg.qr(random.normal(size=(64, 64)))[0]
    spectra = (1 / np.arange(1, 65), np.linspace(1, 0.5, 64), np.r_[1e3, np.linspace(1, 0.1, 63)])
    matrices = np.stack([(basis * values) @ basis.T for values in spectra]).astype(np.float32)
    start = np.linalg.qr(random.normal(size=(64, 16)))[0].T.astype(np.float32)
    found, vectors = leading_eigenvectors(jnp.asarray(matrices), start, 8)
    for i, values in enumerate(spectra):
        exact = np.linalg.eigh(matrices[i].astype(np.float64))
        # Residuals are at most 1e-3 of the distance to the last Ritz value.
        angles = angular_error(np.asarray(vectors[i, :8], float), exact[1].T[::-1][:8])
        assert angles.max() < 0.02
        np.testing.assert_allclose(found[i, :8], exact[0][::-1][:8], atol=1e-5 * values[0])


def test_filters_of_a_matrix_of_low_rank_are_orthonormal():
    random = np.random.default_rng(4)
    low = random.normal(size=(2, 64, 3))
    matrices = jnp.asarray(low @ low.swapaxes(1, 2), jnp.float32)
    start = np.linalg.qr(random.normal(size=(64, 16)))[0].T.astype(np.float32)
    values, vectors = leading_eigenvectors(matrices, start, 8)
    np.testing.assert_allclose(vectors @ vectors.mT, np.stack([np.eye(16)] * 2), atol=1e-5)
    assert (values[:, 3:] < 1e-5 * values[:, :1]).all()


def test_eigenvectors_of_an_accelerator_give_the_same_fits(fits, monkeypatch):
    # The host computes them by filters here too.
    monkeypatch.setattr(solving, "on_accelerator", lambda: True)
    found = fit_layers(network, texts(), k=K, mask="mask", algorithm="covariance")
    for name, pca in found.items():
        assert (
            angular_error(pca.components_.astype(float), fits[name].components_.astype(float)).max()
            < 2e-3
        )
        assert pca.certificate_.within(0.05)
    assert jnp.isfinite(found["layer0"].components_).all()


def test_components_with_small_gaps_are_certified_by_probes_in_float64():
    # Neighbouring values differ by 1 %. Rounding errors of the matrix are 1e-6 of the largest; a bound on those of
    # probes in float32 would be 1e-3.
    random, values = np.random.default_rng(5), 0.99 ** np.arange(96)
    rows = (random.normal(size=(20, 512, 96)) * values**0.5).astype(np.float32)
    pca = fit_layers(lambda x: x, list(rows[:, None]), k=8, algorithm="covariance")["output"]
    flat = rows.reshape(-1, 96).astype(float)
    exact = np.linalg.svd(flat - flat.mean(0), full_matrices=False)[2][:8]
    angles = angular_error(pca.components_.astype(float), exact)
    assert angles.max() < 1e-4
    assert (pca.certificate_.angle >= angles).all()
    assert pca.certificate_.angle.max() < 0.01
    assert pca._result.stream.probes.images.dtype == np.float32


def test_a_cpu_sums_matrices_of_up_to_1024_features():
    assert by_covariance("auto", 1024, 12, 20)
    assert not by_covariance("auto", 1025, 12, 20)
    assert by_covariance("auto", 3000, 12, 1000)

"""Components of the ResNet, and the claims about them."""

import numpy as np
import pytest

from reproduction.base import Run, Verdict
from reproduction.experiments import resnet
from reproduction.experiments.resnet import photographs as files
from reproduction.experiments.resnet import text
from reproduction.experiments.resnet import verdicts as judged
from reproduction.experiments.resnet.rows import block_of
from reproduction.experiments.resnet.stored import StoredRows
from tests.reproduction.conftest import need_data

QUICK = resnet.PROTOCOL.size(quick=True)


@pytest.fixture(scope="module")
def seen(results):
    return results("resnet")


@pytest.fixture(scope="module")
def network():
    """The network with its real weights, and the rows of a quick run."""
    need_data("resnet")
    from reproduction.experiments.resnet.network import load

    folder = files.folder_of()
    rows = files.Photographs(folder / files.PHOTOGRAPHS, size=QUICK.side, count=QUICK.photographs)
    return load(folder / files.WEIGHTS, unit=files.UNIT), rows


def by_hand(network, rows):
    """Return activations by hooks and a loop, layer after layer, shape (rows, features)."""
    import torch

    kept = {}
    names = ("conv1", *QUICK.layers)
    hooks = [
        network.get_submodule(name).register_forward_hook(
            lambda _, __, out, name=name: kept.__setitem__(name, out.flatten(1).numpy())
        )
        for name in names
    ]
    with torch.inference_mode():
        network(torch.from_numpy(np.stack([rows[i][0] for i in range(len(rows))])))
    for hook in hooks:
        hook.remove()
    return [kept[name].astype(np.float64) for name in names]


@pytest.mark.slow
def test_quotients_and_shares_equal_a_singular_value_decomposition(seen, network):
    parts = by_hand(*network)
    x = np.concatenate(parts, axis=1)
    for name, rows in (("uncentred", x), ("centred", x - x.mean(axis=0))):
        _, values, components = np.linalg.svd(rows, full_matrices=False)
        k, found = seen["size"]["k"], seen["readings"][name]
        # Certified to pi/32, in float32: quotients are off by squares of the angles, shares by angles.
        np.testing.assert_allclose(found["rayleigh"], values[:k] ** 2 / (len(x) - 1), rtol=1e-2)
        ends = np.cumsum([0, *(part.shape[1] for part in parts)])
        shares = np.add.reduceat(components[:k] ** 2, ends[:-1], axis=1)
        np.testing.assert_allclose(found["shares"], shares, atol=0.03)


@pytest.mark.slow
def test_variance_is_stored_by_layer(seen, network):
    expected = [float(part.var(axis=0).sum()) for part in by_hand(*network)]
    np.testing.assert_allclose(seen["variance"], expected, rtol=1e-3)
    # The unit of pixels takes conv1 from all of the variance to about half of it.
    assert text._without_unit(seen) > 0.99


@pytest.mark.slow
def test_maps_are_means_over_the_channels_of_conv1(seen, network):
    parts = by_hand(*network)
    first = np.linalg.svd(np.concatenate(parts, axis=1), full_matrices=False)[2][0]
    first = first[: parts[0].shape[1]]
    expected = first.reshape(64, 16, 16).mean(axis=0).ravel()
    found = np.ravel(seen["arrays"]["maps"][0])
    # Up to its sign; whole numbers of up to 255, without outliers.
    assert abs(np.corrcoef(found, expected)[0, 1]) > 0.98


@pytest.mark.slow
def test_the_components_are_certified(seen):
    for found in seen["readings"].values():
        assert found["certificate"]["kind"] == "certified"
        assert found["certificate"]["streak"] == seen["size"]["k"]
        assert max(found["ratio"]) < 1e-6, "settled players pay no penalties"


@pytest.mark.slow
def test_the_uncentred_first_component_is_the_mean_activation(seen):
    assert seen["mean"]["angle"] < 0.1
    assert seen["mean"]["share"] > 0.9


@pytest.mark.slow
def test_enlarged_figures_are_written(quick):
    folder = quick("resnet")
    for name in ("blocks", "maps"):
        assert (folder / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
def test_the_real_network_classifies_photographs():
    need_data("resnet")
    import torch

    from reproduction.experiments.resnet.network import load

    folder = files.folder_of()
    photographs = files.Photographs(folder / files.PHOTOGRAPHS, count=20)
    network = load(folder / files.WEIGHTS, unit=files.UNIT)
    assert sum(one.numel() for one in network.parameters()) == 25_557_032
    assert photographs.names[0] == "tench"
    # 18 of these 20; a channel or a stride at the wrong place leaves hardly any.
    assert resnet._accuracy(network, photographs, torch.device("cpu")) >= 0.8


def test_a_full_run_without_a_gpu_is_an_error_with_the_memory_it_needs():
    need_data("resnet")
    import jax

    if jax.default_backend() != "cpu":
        pytest.skip("there is a GPU here")
    with pytest.raises(ValueError, match=r"needs a GPU with \d+ GiB free .* or give --quick"):
        resnet.measure(Run(quick=False, progress=lambda line: None))


# ---------------------------------------------------------------- claims


EDGE = {"kind": "Gabor", "fit": 0.9, "chance": 0.5, "cycles": 1.0, "degrees": 0.0, "width": 0.2}


def made_up(**changes):
    """Return results that meet every criterion."""
    certificate = {"kind": "certified", "streak": 8, "angle": [0.01] * 8, "passes": 9}
    reading = {
        "rayleigh": [40.0, 4.0, 3.8, 3.6, 3.4, 1.0, 0.95, 0.9],
        "shares": [[0.001, 0.5, 0.2, 0.15, 0.149], *[[0.8, 0.1, 0.05, 0.03, 0.02]] * 7],
        "certificate": certificate,
        "edges": [{"any": EDGE, "local": EDGE}] * 8,
    }
    steps = {"ratio": [0.01] * 8, "angle": [0.1] * 8, "streak": 8, "updates": 100}
    steps |= changes.pop("steps", {})
    steps["halfway"] = steps | {"updates": 50} | changes.pop("halfway", {})
    return {
        "size": {"k": 8, "photographs": 1000},
        "rows": 4000,
        "layers": [{"name": "", "block": block, "features": 10} for block in range(1, 6)],
        "readings": {"uncentred": reading | changes.pop("reading", {}), "centred": reading},
        "EigenGame": steps,
        "mean": {"angle": 1.0, "share": 0.2},
        **changes,
    }


def outcomes(**changes):
    """Return, for each claim, whether it holds or its criterion is met on this network."""
    return [
        claim.holds or claim.measured.endswith("the criterion is met.")
        for claim in judged.claims(made_up(**changes))
    ]


def test_all_criteria_can_be_met():
    assert outcomes() == [True] * 10


def test_each_criterion_fails_by_its_own_numbers():
    by_chance = [{"any": EDGE | {"chance": 0.95}, "local": EDGE}] * 8
    elsewhere = [{"any": EDGE, "local": EDGE | {"fit": 0.4}}] * 8
    even = [[0.2] * 5] * 8
    doubtful = {"kind": "conditional", "streak": 8, "angle": [0.01] * 8, "passes": 9}
    for place, changes in {
        (0, 1): {"steps": {"ratio": [0.0] * 4 + [0.2] * 4}},
        (2,): {"steps": {"angle": [0.1] * 7 + [1.0]}},
        (3,): {"reading": {"certificate": doubtful}},
        (4,): {"reading": {"rayleigh": [40.0, 4.0, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5]}},
        (5, 6): {"reading": {"shares": even}},
        (7,): {"mean": {"angle": 0.01, "share": 0.99}},
        (8,): {"reading": {"edges": by_chance}},
        (9,): {"reading": {"edges": elsewhere}},
    }.items():
        assert [i for i, met in enumerate(outcomes(**changes)) if not met] == list(place)


def test_statements_about_the_components_of_another_network_are_not_comparable():
    verdicts = [claim.verdict for claim in judged.claims(made_up())]
    assert verdicts == [Verdict.NOT_COMPARABLE] * 3 + [Verdict.HOLDS] + [Verdict.NOT_COMPARABLE] * 6


def test_a_run_that_is_too_short_is_reported():
    assert "the run is long enough" in judged.claims(made_up())[0].measured
    for half in ({"streak": 3}, {"ratio": [0.5] * 8}):
        assert "the run is too short" in judged.claims(made_up(halfway=half))[0].measured


def test_stored_rows_are_those_of_the_source_in_any_block():
    import jax.numpy as jnp

    from eigengame import activations

    x = np.random.default_rng(0).normal(size=(11, 3)).astype(np.float32)
    source = activations(lambda x: {"out": 2 * jnp.asarray(x)}, [x[:4], x[4:8], x[8:]])
    stored = StoredRows(source)
    assert stored.shape == source.shape == (11, 3)
    assert stored.layers.names == ["out"]
    for start, size in ((0, 4), (0, 5), (3, 2), (2, 20)):
        found = [np.asarray(block.values) for block in stored.blocks(start, size)]
        assert all(len(one) == size for one in found[:-1])
        np.testing.assert_array_equal(np.concatenate(found), 2 * x[start:])


def test_relative_variance_is_one_for_an_even_component():
    results = made_up(reading={"shares": [[0.5, 0.2, 0.1, 0.1, 0.1]]})
    for layer, features in zip(results["layers"], (50, 20, 10, 10, 10), strict=True):
        layer["features"] = features
    np.testing.assert_allclose(judged.relative_variance(results), 1)


def test_layers_belong_to_five_blocks():
    assert [block_of(name) for name in ("conv1", "layer1.0", "layer4.2")] == [1, 2, 5]


def test_the_summary_depends_on_the_share_of_the_mean(stored):
    results = stored("resnet")
    assert "mostly about the mean (99.8%" in text.summary(results)
    results["mean"]["share"] = 0.1
    assert "mostly about variance between photographs (10.0%" in text.summary(results)


def test_the_summary_depends_on_the_waves_of_the_maps(stored):
    results = stored("resnet")
    edges = results["readings"]["uncentred"]["edges"]
    for i, edge in enumerate(edges):
        edge["any"] = EDGE | {"cycles": 0.5 if i < len(edges) / 2 else 1.5}
    assert "increases from 0.5 in the first half of the components to 1.5" in text.summary(results)
    edges.reverse()
    assert "decreases from 1.5" in text.summary(results)
    for edge in edges:
        edge["any"] = EDGE
    assert "does not change from 1 " in text.summary(results)
    for edge in edges:
        edge["any"] = EDGE | {"kind": "LoG"}
    assert "Too few maps" in text.summary(results)


def test_the_summary_depends_on_the_maps_that_exceed_chance(stored):
    results = stored("resnet")
    edges = results["readings"]["uncentred"]["edges"]
    for edge in edges:
        edge["any"], edge["local"] = EDGE, EDGE | {"chance": 0.95}
    count = len(edges)
    said = text.summary(results)
    assert f"{count} of {count} are similar to any Gabor filter" in said
    assert f"0 of {count} are similar to local and bandpass filters" in said

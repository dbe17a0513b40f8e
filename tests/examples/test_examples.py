"""Every example of the gallery runs, and shows what its text says."""

import numpy as np
import pytest

from eigengame import metrics
from tests.sources.same_rows import FOLDER


def folder_with(name, data):
    """Return the folder of real data, or None for an example on its stand-in."""
    if data == "stand-in":
        return None
    if not (FOLDER / name).exists():
        pytest.skip(f"{name} is not in {FOLDER}: set EIGENGAME_DATA to the folder that holds it")
    return FOLDER


with_and_without = pytest.mark.parametrize("data", ["stand-in", "real"])


@with_and_without
def test_bounds_of_digits_hold(run, capsys, data):
    found = run("digits", folder_with("mnist", data))
    assert (found["angles"] <= found["bounds"]).all()
    assert (found["bounds"] <= 0.05).all()
    said = {"stand-in": "the digits of scikit-learn", "real": "MNIST, test images"}[data]
    assert f"data: {said}\n" in capsys.readouterr().out


def test_an_interrupted_run_resumes_to_the_same_bits(run, monkeypatch, capsys):
    monkeypatch.setenv("EIGENGAME_ROWS", "6000")
    found = run("larger_than_memory")
    expected, resumed = found["expected"], found["resumed"]
    np.testing.assert_array_equal(resumed.components_, expected.components_)
    np.testing.assert_array_equal(resumed.certificate_.angle, expected.certificate_.angle)
    first, second, whole = (found[name].rows for name in ("first", "second", "whole"))
    assert len(first) == 8
    assert second
    assert first + second == whole
    shown = capsys.readouterr().out
    assert "interrupted in pass 2 after 2000 rows and saved" in shown
    assert "identical to the last bit: True" in shown


@with_and_without
def test_groups_of_cells_have_their_own_genes(run, capsys, data):
    found = run("cells", folder_with("singlecell_10x", data))
    genes = [set(label.split(", ")) for label in found["labels"]]
    assert (found["pca"].certificate_.angle <= 0.05).all()
    if data == "stand-in":
        assert "data: generated counts" in capsys.readouterr().out
        types = [{gene[0] for gene in group} for group in genes]
        assert sorted("".join(sorted(one)) for one in types) == ["A", "B", "C", "D"]
        assert np.bincount(found["groups"]).tolist() == [300] * 4
    else:
        assert sum("HBB" in group for group in genes) == 1  # red blood cells
        assert sum("CD3E" in group for group in genes) == 1  # T cells


@with_and_without
def test_other_individuals_are_aligned_with_the_reference(run, capsys, data):
    pytest.importorskip("bed_reader")
    found = run("genotypes", folder_with("genotypes_hapmap3", data))
    np.testing.assert_allclose(
        found["aligned"], found["pca"].transform(found["calls"][found["new"]])
    )
    assert found["correct"]["aligned"] >= 0.98
    assert found["correct"]["not aligned"] < 0.95
    assert f"{found['other'].sum():,} with swapped alleles (flipped)" in capsys.readouterr().out


def test_weights_by_area_recover_the_tropical_oscillation(run):
    found = run("fields")
    correlations = [
        abs(np.corrcoef(model.scores().sel(mode=1), found["index"])[0, 1])
        for model in found["models"].values()
    ]
    assert list(found["models"]) == ["weighted by area", "without weights"]
    assert correlations[0] > 0.95
    assert correlations[1] < 0.5


def test_the_alarm_comes_with_the_fault_and_names_the_sensor(run):
    found = run("process")
    assert found["first"]["adaptive model"] == found["FAULT"]
    assert found["first"]["fixed model"] < found["FAULT"]
    assert found["sensor"] == "column 11"
    assert found["spe"] > 0.95 > 0.1 > found["t2"]
    before = np.concatenate([one.alarms for one in found["found"]["adaptive model"]])
    assert before[: found["FAULT"]].mean() < 0.06


def test_topics_have_the_words_of_the_exact_components(run):
    found = run("topics")
    pca, exact = found["pca"], found["exact"]
    assert (found["angles"] <= pca.certificate_.angle).all()
    signs = np.sign(np.sum(pca.components_ * exact, axis=1))
    for component, sign, top in zip(exact, signs, found["top"], strict=True):
        loadings = sign * component
        assert loadings[top[:5]].min() >= np.sort(loadings)[-5] - 1e-6
        assert loadings[top[5:]].max() <= np.sort(loadings)[2] + 1e-6
    assert found["weights"].shape == (len(found["texts"]), len(found["words"]))


def test_three_sites_together_find_what_none_finds_alone(run):
    found = run("three_sites")
    angles = {name: one.max() for name, one in found["angles"].items()}
    assert min(angles[f"site {i}"] for i in (1, 2, 3)) > 0.5
    assert angles["merged"] < 0.1
    assert (found["angles"]["merged"] <= found["bounds"]).all()
    assert found["known"].sum() >= 3
    assert found["merged"].n_samples_seen_ == len(found["digits"].data)


def test_training_separates_the_digits_layer_by_layer(run):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make torch")
    threads = torch.get_num_threads()
    try:
        found = run("transformer_layers")
    finally:
        torch.set_num_threads(threads)
    before, after = found["separated"]["before training"], found["separated"]["after training"]
    assert min(after) > max(before)
    assert found["accuracy"] > 0.8

    outputs = []
    network, last = found["network"], f"blocks.{found['BLOCKS'] - 1}"
    network.blocks[-1].register_forward_hook(lambda *given: outputs.append(given[2]))
    with torch.no_grad():
        network(found["held"])
    rows = outputs[0].reshape(-1, found["WIDTH"]).numpy().astype(np.float64)
    exact = metrics.true_components(rows - rows.mean(axis=0), found["K"])[1]
    pca = found["results"]["after training"][0][last]
    assert (metrics.angular_error(pca.components_, exact) <= pca.certificate_.angle).all()


def test_bounds_hold_for_components_and_for_the_span_of_a_tie(run):
    found = run("certificate")
    assert all(holds.all() for holds in found["holds"].values())
    (cluster,) = found["refined"].certificate_.clusters
    assert cluster.members == (4, 5)
    assert found["spans"][0] <= cluster.angle <= 1e-3
    # One pass bounds the near-tie, but not the tie, for which it has an estimate.
    once = found["one_pass"].certificate_
    assert (once.angle < np.pi / 2).tolist() == [True] * 4 + [False] * 2 + [True] * 2
    assert once.angle[2] > 10 * once.angle[1]
    assert found["refined"].certificate_.angle[2] < 1e-3

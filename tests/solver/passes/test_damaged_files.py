"""Models and checkpoints that were damaged on disk: refused, or read to the very numbers that were written."""

import json

import jax
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from eigengame import EigenGamePCA
from eigengame.model_file import ModelFileError
from eigengame.solver.passes.checkpoint import CheckpointError, CheckpointStore
from eigengame.solver.passes.run_record import FORMAT, sealed_facts
from tests.game_pca import game_pca

FLIPS = 400


def table():
    return np.random.default_rng(0).normal(size=(96, 5)) * np.arange(5, 0, -1)


@pytest.fixture(scope="module")
def pca():
    return game_pca(2, random_state=0).fit(table())


def flipped(whole, seed=0):
    """Give some copies of a file, each with one other bit, and every bit of its first bytes."""
    chosen = np.random.default_rng(seed).integers(0, 8 * len(whole), FLIPS)
    for place in [*range(128), *chosen.tolist()]:
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        yield bytes(damaged)


def numbers(model):
    """Return all that a model computes with, and what it says of itself."""
    arrays = {name: one for name, one in vars(model).items() if isinstance(one, np.ndarray)}
    arrays |= {
        str(i): np.asarray(one) for i, one in enumerate(jax.tree.leaves(model._result.stream))
    }
    said = [model.get_params(), model.outcome_, str(model.certificate_), model.n_samples_seen_]
    return arrays, [*said, model.noise_variance_, model._provenance]


def test_no_flipped_bit_of_a_model_changes_what_is_read(pca, tmp_path):
    path = pca.save(tmp_path / "model.safetensors")
    whole = path.read_bytes()
    arrays, said = numbers(EigenGamePCA.load(path))
    refused = 0
    for damaged in flipped(whole):
        path.write_bytes(damaged)
        try:
            found, told = numbers(EigenGamePCA.load(path))
        except ModelFileError:
            refused += 1
            continue
        assert told == said
        for name, one in arrays.items():
            np.testing.assert_array_equal(found[name], one)
    assert refused > 0.9 * FLIPS


def test_no_flipped_bit_of_a_checkpoint_changes_what_is_recalled(tmp_path):
    start = {"a": np.zeros((3, 4)), "b": np.zeros(5, np.float32), "rows": 0}
    carry = {"a": np.arange(12.0).reshape(3, 4), "b": np.ones(5, np.float32), "rows": 7}
    keeper = CheckpointStore(tmp_path, {}, {})
    keeper.write(2, carry, 7)
    path = tmp_path / "pass-0002.safetensors"
    refused = 0
    for damaged in flipped(path.read_bytes()):
        path.write_bytes(damaged)
        try:
            found, row, ended = keeper.read(2, start)
        except CheckpointError:
            refused += 1
            continue
        assert (row, ended, found["rows"]) == (7, False, 7)
        np.testing.assert_array_equal(found["a"], carry["a"])
        np.testing.assert_array_equal(found["b"], carry["b"])
    assert refused > 0.9 * FLIPS


def test_no_byte_of_the_facts_of_a_run_can_be_another_one(tmp_path):
    facts = {"tol": 0.5}, {"shape": [3, 4], "content": "abc"}
    CheckpointStore(tmp_path, *facts, seed=5).close()
    path = tmp_path / "run.json"
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            keeper = CheckpointStore(tmp_path, *facts, seed=9)
        except CheckpointError:
            continue
        assert keeper.seed == 5  # the bit was in the blanks between facts
        keeper.close()


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2]",
        "7",
        "null",
        "{}",
        '{"format": 2}',
        "[" * 100_000,
        '{"format": 1, "seed": "x"}',
        '{"format": "2", "configuration": {}, "source": {}, "seed": 0}',
        "\xff",
    ],
)
def test_other_json_is_not_taken_for_the_facts_of_a_run(tmp_path, text):
    (tmp_path / "run.json").write_text(text, encoding="latin-1")
    with pytest.raises(CheckpointError, match=r"damaged.*remove the folder"):
        CheckpointStore(tmp_path, {}, {})


def test_a_folder_of_a_newer_format_is_refused_with_the_remedy(tmp_path):
    CheckpointStore(tmp_path, {}, {}).close()
    path = tmp_path / "run.json"
    facts = json.loads(path.read_text())
    path.write_text(json.dumps(sealed_facts(facts | {"format": FORMAT + 1})))
    with pytest.raises(CheckpointError, match=rf"format {FORMAT + 1}.*upgrade eigengame"):
        CheckpointStore(tmp_path, {}, {})


def test_a_checkpoint_of_another_pass_or_run_is_refused(tmp_path):
    carry = {"a": np.arange(4.0)}
    keeper = CheckpointStore(tmp_path / "one", {}, {})
    keeper.write(0, carry, 4, ended=True)
    (tmp_path / "one" / "pass-0000.safetensors").rename(tmp_path / "one" / "pass-0001.safetensors")
    with pytest.raises(CheckpointError, match="its number is 0, not 1"):
        keeper.read(1, carry)
    other = CheckpointStore(tmp_path / "two", {"tol": 1}, {})
    (tmp_path / "one" / "pass-0001.safetensors").rename(tmp_path / "two" / "pass-0000.safetensors")
    with pytest.raises(CheckpointError, match="its run is"):
        other.read(0, carry)


def edited(path, change=None, facts=None, digest=False):
    """Write a model again with other arrays or facts, as of format 1 where it has no digest."""
    arrays = load_file(path)
    with safe_open(path, framework="np") as file:
        about = dict(file.metadata())
    told = json.loads(about["eigengame"])
    if not digest:
        del about["digest"]
        told["format"] = 1
    about["eigengame"] = json.dumps(told | (facts or {}))
    if change is not None:
        change(arrays)
    save_file(arrays, path, metadata=about)
    return path


def test_a_model_of_the_first_format_is_read(pca, tmp_path):
    again = EigenGamePCA.load(edited(pca.save(tmp_path / "m.safetensors")))
    np.testing.assert_array_equal(again.components_, pca.components_)


def test_a_model_without_its_digest_or_with_edited_facts_is_refused(pca, tmp_path):
    path = pca.save(tmp_path / "m.safetensors")
    with pytest.raises(ModelFileError, match="checksum does not match"):
        EigenGamePCA.load(edited(path, facts={"version": "other"}, digest=True))
    with pytest.raises(ModelFileError, match="checksum is missing"):
        EigenGamePCA.load(edited(pca.save(path), facts={"format": 2}))


def _nan(arrays):
    arrays["components_"][0, 1] = np.nan


def _below_zero(arrays):
    arrays["explained_variance_"][1] *= -1


def _skew(arrays):
    arrays["components_"][1] = arrays["components_"][0]


def _long(arrays):
    arrays["components_"][0] *= 1.1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_nan, "components_ holds numbers that are not finite"),
        (_below_zero, "explained_variance_ holds numbers below 0"),
        (_skew, "components_ are not orthonormal"),
        (_long, "components_ are not orthonormal"),
    ],
)
def test_numbers_that_no_fit_gives_are_refused(pca, tmp_path, change, message):
    path = edited(pca.save(tmp_path / "m.safetensors"), change)
    with pytest.raises(ModelFileError, match=message):
        EigenGamePCA.load(path)


@pytest.mark.parametrize("algorithm", ["gha", "oja", "frequent_directions", "auto"])
def test_models_of_every_kind_of_algorithm_are_read_again(tmp_path, algorithm):
    pca = game_pca(2, algorithm=algorithm, random_state=0).fit(table())
    again = EigenGamePCA.load(pca.save(tmp_path / "m.safetensors"))
    np.testing.assert_array_equal(again.components_, pca.components_)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"features": "abcde"}, "features is 'abcde'"),
        ({"features": ["a"]}, "features is"),
        ({"alleles": 3}, "alleles is 3"),
        ({"numbers": {}}, "noise_variance_ is missing"),
        ({"outcome": "x"}, "outcome is 'x'"),
        ({"outcome": {"outcome": "GUESSED", "route": "", "passes": 1}}, "outcome is 'GUESSED'"),
        ({"provenance": {"written": 5}}, "written is 5"),
        ({"layers": []}, "layers is"),
        ({"layers": [{"name": "a", "shape": [9], "channels_last": True}]}, "5 features together"),
        ({"unit": "x"}, "unit is 'x'"),
        ({"preparation": [{"kind": "missing", "policy": "raise"}]}, "features_before is None"),
        ({"parameters": {"tol": [1]}}, "parameters is"),
        ({"parameters": {"tol": -1}}, "tol is -1"),
        ({"features": ["a", "b", "c", "d", "\ud800"]}, "features is"),
    ],
)
def test_facts_that_do_not_belong_to_a_model_are_refused_when_it_is_loaded(
    pca, tmp_path, facts, message
):
    path = edited(pca.save(tmp_path / "m.safetensors"), facts=facts)
    with pytest.raises(ModelFileError, match=rf"m\.safetensors .*{message}.*write it again"):
        EigenGamePCA.load(path)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [("numbers", "n_samples_seen_", 0), ("certificate", "level", None)],
)
def test_single_facts_that_no_fit_gives_are_refused(pca, tmp_path, part, name, value):
    path = pca.save(tmp_path / "m.safetensors")
    with safe_open(path, framework="np") as file:
        told = json.loads(file.metadata()["eigengame"])[part]
    with pytest.raises(ModelFileError, match=rf"m\.safetensors .*{name} is"):
        EigenGamePCA.load(edited(path, facts={part: told | {name: value}}))


@pytest.mark.parametrize("name", ["mean_", "players", "singular_values_", "var_"])
def test_arrays_of_another_shape_are_refused_when_a_model_is_loaded(pca, tmp_path, name):
    def shorter(arrays):
        arrays[name] = np.ascontiguousarray(arrays[name][..., :-1])

    path = edited(pca.save(tmp_path / "m.safetensors"), shorter)
    with pytest.raises(ModelFileError, match=rf"m\.safetensors .*{name}"):
        EigenGamePCA.load(path)

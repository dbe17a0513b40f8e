"""Torch tensors, datasets of both styles and loaders as rows, and errors."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset  # noqa: E402

from eigengame.estimator.inputs import is_other  # noqa: E402
from eigengame.sources import SourceError, as_source  # noqa: E402
from tests.sources.same_rows import assert_read_on_a_thread  # noqa: E402
from tests.sources.tables import (  # noqa: E402
    assert_same_blocks,
    error_of,
    rows_read,
    same_fingerprint,
)

X = np.random.default_rng(0).normal(size=(37, 6)).astype(np.float32)
TENSOR = torch.from_numpy(X)


class Items(Dataset):
    """A map-style dataset."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        return self.items[number]


class Stream(IterableDataset):
    """An iterable-style dataset."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


PAIRS = [(row, i % 3) for i, row in enumerate(TENSOR)]
DICTS = [{"label": i, "image": row} for i, row in enumerate(TENSOR)]


# ---------------------------------------------------------------- tensors


def test_a_tensor_shares_its_memory():
    source = as_source(TENSOR)
    assert_same_blocks(source, X)
    assert source.shape == (37, 6)
    assert np.shares_memory(next(source.blocks(3, 5)).values, X)


def test_tensors_with_a_gradient_are_read():
    assert_same_blocks(as_source(torch.nn.Parameter(TENSOR.clone())), X)


def test_half_precision_that_numpy_lacks_becomes_float32():
    short = TENSOR.to(torch.bfloat16)
    assert_same_blocks(as_source(short), short.float().numpy())
    assert_same_blocks(as_source([short[:9], short[9:]]), short.float().numpy())


def test_images_are_flattened_and_keep_their_shape():
    source = as_source(TENSOR.reshape(37, 1, 2, 3))
    assert_same_blocks(source, X)
    assert source.image_shape == (2, 3, 1)
    assert as_source(TENSOR.reshape(37, 3, 2, 1)).image_shape == (3, 2, 1)


@pytest.mark.parametrize("shape", [(37 * 6,), (0, 6), ()])
def test_tensors_without_rows_are_refused(shape):
    assert "give one of shape (rows, features)" in error_of(as_source, torch.zeros(shape))


# ---------------------------------------------------------------- datasets


@pytest.mark.parametrize(
    "data",
    [TensorDataset(TENSOR, torch.arange(37)), Items(PAIRS), Items(TENSOR), Items(list(X))],
    ids=["tensors", "pairs", "rows", "arrays"],
)
def test_datasets_are_read_from_any_item(data):
    source = as_source(data)
    assert_same_blocks(source, X)
    assert_read_on_a_thread(source, X)
    assert source.shape == (37, 6)


def test_a_subset_is_read_in_its_order():
    order = np.random.default_rng(0).permutation(37)[:20]
    assert_same_blocks(as_source(Subset(Items(PAIRS), order.tolist())), X[order])


def test_only_the_items_of_a_block_are_read():
    asked = []

    class Watched(Items):
        def __getitem__(self, number):
            asked.append(number)
            return super().__getitem__(number)

    source = as_source(Watched(PAIRS))
    asked.clear()
    next(source.blocks(8, 4))
    assert asked == [8, 9, 10, 11]


def test_parts_of_an_item_are_chosen_by_key():
    assert_same_blocks(as_source(Items(DICTS), key="image"), X)
    assert_same_blocks(as_source(Items([(i, row) for i, row in enumerate(TENSOR)]), key=1), X)
    assert_same_blocks(as_source(TensorDataset(torch.arange(37), TENSOR), key=1), X)
    message = error_of(as_source, Items(DICTS))
    assert "gives ['label', 'image'] at row 0, but key=" in message
    assert "but key=5" in error_of(as_source, TensorDataset(TENSOR), key=5)


def test_an_iterable_dataset_is_read_from_its_beginning_and_again():
    source = as_source(Stream(PAIRS))
    assert source.shape == (None, 6)
    assert source.again
    assert_same_blocks(source, X)


def test_items_with_axes_are_flattened():
    pictures = [row.reshape(1, 2, 3) for row in TENSOR]
    for data in (Items(pictures), Stream(pictures)):
        source = as_source(data)
        assert_same_blocks(source, X)
        assert source.image_shape == (2, 3, 1)


# ---------------------------------------------------------------- loaders


@pytest.mark.parametrize(
    "data", [TensorDataset(TENSOR, torch.arange(37)), Items(PAIRS), Stream(PAIRS)]
)
@pytest.mark.parametrize("size", [1, 5, 64])
def test_the_batches_of_a_loader_are_rows(data, size):
    source = as_source(DataLoader(data, batch_size=size))
    assert_same_blocks(source, X)
    assert source.shape[0] == (None if isinstance(data, Stream) else 37)


def test_a_loader_of_dicts_is_read_by_key():
    assert_same_blocks(as_source(DataLoader(Items(DICTS), batch_size=5), key="image"), X)


def test_a_loader_that_drops_the_last_batch_has_a_known_length():
    source = as_source(DataLoader(Items(PAIRS), batch_size=5, drop_last=True))
    assert source.shape == (35, 6)
    assert_same_blocks(source, X[:35])


def test_a_loader_without_batch_size_yields_items():
    source = as_source(DataLoader(Stream([TENSOR[:9], TENSOR[9:]]), batch_size=None))
    assert_same_blocks(source, X)
    assert_same_blocks(as_source(DataLoader(Stream(list(TENSOR)), batch_size=None)), X)


def test_a_custom_batch_sampler_leaves_the_rows_unknown():
    batches = [[0, 1, 2], list(range(3, 37))]
    source = as_source(DataLoader(Items(PAIRS), batch_sampler=batches))
    assert source.shape == (None, 6)
    assert_same_blocks(source, X)


def test_a_loader_that_shuffles_gives_every_row():
    loader = DataLoader(Items(PAIRS), batch_size=5, shuffle=True)
    found = rows_read(as_source(loader))
    np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(X, axis=0))


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("data", [Items([]), Stream([]), DataLoader(Stream([]), batch_size=4)])
def test_data_without_rows_is_refused(data):
    assert "has no rows" in error_of(as_source, data)


@pytest.mark.parametrize("make", [Items, Stream])
def test_a_change_of_width_is_reported_with_the_row(make):
    source = as_source(make([*TENSOR[:20], torch.zeros(4)]))
    with pytest.raises(
        SourceError, match=r"first rows have 6 features, but row 20 has shape \(4,\)"
    ):
        rows_read(source)


def test_a_batch_of_another_width_names_the_row():
    source = as_source(DataLoader(Stream([TENSOR[:9], TENSOR[9:, :4]]), batch_size=None))
    with pytest.raises(
        SourceError, match=r"first rows have 6 features, but the piece at row 9 .*\(28, 4\)"
    ):
        rows_read(source)


@pytest.mark.parametrize("make", [Items, Stream])
def test_text_and_single_numbers_are_refused(make):
    assert "numbers are needed" in error_of(as_source, make(["a", "b"]))
    assert "a single number at row 0" in error_of(as_source, make([1.0, 2.0]))


def test_a_dataset_without_length_is_refused():
    class Endless(Dataset):
        def __getitem__(self, number):
            return TENSOR[number]

    assert "has no length: derive it from IterableDataset" in error_of(as_source, Endless())


def test_a_network_is_not_data():
    assert "has no rows: give a Tensor" in error_of(as_source, torch.nn.Linear(3, 2))


# ---------------------------------------------------------------- the rest


def test_estimators_take_datasets_as_sources_and_tensors_as_arrays():
    assert not is_other(TENSOR)
    for data in (Items(PAIRS), Stream(PAIRS), DataLoader(Items(PAIRS))):
        assert is_other(data)


def test_the_fingerprint_distinguishes_data():
    one = as_source(Items(PAIRS))
    assert same_fingerprint(one, as_source(Items(PAIRS)))
    assert not same_fingerprint(one, as_source(Items(PAIRS[:-1])))
    assert not same_fingerprint(as_source(TENSOR), as_source(TENSOR + 1))

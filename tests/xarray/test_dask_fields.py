"""Fields in Dask chunks are read by blocks of samples, whatever their chunks."""

import numpy as np
import pytest

from eigengame import EigenGamePCA, as_source
from tests.xarray.fields import coslat, make_field, truth, xr

import eigengame.xarray as fields  # isort: skip

da = pytest.importorskip("dask.array", reason="chunked fields need Dask")


@pytest.mark.parametrize(
    "chunks", [{"time": 7}, {"time": 60, "lat": 4, "lon": 5}, {"time": 1, "lat": 2}, {}]
)
def test_chunks_do_not_change_the_result(chunks):
    field = make_field()
    model = fields.fit(field.chunk(chunks), 4, weights="coslat", random_state=0)
    expected = fields.fit(field, 4, weights="coslat", random_state=0)
    xr.testing.assert_allclose(model.components(), expected.components(), rtol=1e-12)
    xr.testing.assert_allclose(model.scores(), expected.scores(), rtol=1e-12)


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_a_share_of_the_variance_is_reached_with_as_few_components_as_possible(share):
    field = make_field()
    model = fields.fit(field.chunk(time=7, lon=5), share, weights="coslat", random_state=0)
    shares = np.cumsum(truth(field.values, coslat(), 60)[3])
    assert model.n_components == int(np.searchsorted(shares, share)) + 1
    assert float(model.explained_variance_ratio().sum()) >= share


def test_only_the_chunks_of_a_block_are_computed_and_each_once():
    loaded = []

    def load(block_info=None):
        place, sizes = block_info[None]["chunk-location"], block_info[None]["chunk-shape"]
        loaded.append(place[0])
        return np.random.default_rng(place).random(sizes)

    rows = da.map_blocks(
        load, chunks=((4,) * 50, (3, 3), (5,)), dtype=float, meta=np.empty((0,) * 3)
    )
    source = as_source(xr.DataArray(rows, dims=("time", "y", "x")), dim="time")
    blocks = source.blocks(0, 10)
    assert loaded == []
    assert len(next(blocks)) == 10
    # Four chunks of four times contain the first ten, in two parts each.
    assert len(loaded) <= 8
    assert max(loaded) <= 3
    assert sum(map(len, blocks)) == 190
    assert sorted(loaded) == sorted(2 * list(range(50)))


# Workers compute chunks themselves, about which Dask of 2024 warns.
@pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler:UserWarning")
def test_a_cluster_fits_a_chunked_field():
    # Workers have one thread: a task that waited for a chunk of another task would wait forever.
    distributed = pytest.importorskip("distributed")
    field = make_field()
    expected = EigenGamePCA(3, random_state=0).fit(field)
    with (
        distributed.LocalCluster(1, processes=False, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        found = EigenGamePCA(3, random_state=0).fit(field.chunk(time=20, lat=4), engine=client)
    np.testing.assert_allclose(found.explained_variance_, expected.explained_variance_, rtol=1e-9)

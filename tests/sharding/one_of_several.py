"""Computations in one of several processes for `test_hosts.py`; prints their results as JSON.

python -m tests.sharding.one_of_several INDEX COUNT PORT MESH FOLDER PART...
"""

import contextlib
import json
import sys
from pathlib import Path

import jax
import numpy as np
import scipy.sparse
from jax.experimental.multihost_utils import sync_global_devices

from eigengame import make, play
from eigengame.preparation import prepare
from eigengame.sharding.hosts import Hosts, join
from eigengame.sharding.placement import choose_placement
from eigengame.solver.passes.checkpoint import Checkpoint
from eigengame.sources import ArraySource
from tests.game_pca import game_pca

ROWS, FEATURES, K, BATCH = 203, 13, 3, 50
"""Not divisible by the numbers of processes."""


def table():
    return np.random.default_rng(0).normal(size=(ROWS, FEATURES)) * 2.0 ** -np.arange(FEATURES) + 1


class Recorded(ArraySource):
    """An array that records which rows and columns were read in batches.

    The first read, of many rows, chooses a frame and does not count.
    """

    def __init__(self, data):
        super().__init__(data)
        self.seen = np.zeros(data.shape, bool)

    def read(self, begin, end):
        self.seen[begin:end] |= end - begin <= BATCH
        return super().read(begin, end)

    def read_columns(self, begin, end, first, last):
        self.seen[begin:end, first:last] |= end - begin <= BATCH
        return self.data[begin:end, first:last]

    def read_so_far(self):
        rows, columns = (np.flatnonzero(self.seen.any(axis=axis)).tolist() for axis in (1, 0))
        return {"rows": rows, "columns": columns}


FITS = {
    "one pass": {},
    "refined": {"tol": 1e-3},
    "covariance": {"algorithm": "auto", "extra": 30},
    "oja": {"algorithm": "oja"},
    "far": {},
    "prepared": {},
}


def data(kind):
    return table() + (1000 if kind == "far" else 0)


def alone(kind):
    """Return the fit in one process."""
    given = prepare(data(kind), scale="two-pass") if kind == "prepared" else data(kind)
    return estimator(**FITS[kind]).fit(given)


def estimator(**options):
    return game_pca(K, batch_size=BATCH, dtype="float64", random_state=0, **options)


def results(fit):
    return {
        "components": fit.components_.tolist(),
        "mean": fit.mean_.tolist(),
        "angle": fit.certificate_.angle.tolist(),
        "kind": fit.certificate_.kind,
    }


def fitted(kinds, mesh):
    """Return the results of fits, and the part of the data that this process has read."""
    found = {}
    for kind in kinds:
        source = Recorded(data(kind))
        given = prepare(source, scale="two-pass") if kind == "prepared" else source
        fit = estimator(mesh=mesh, **FITS[kind]).fit(given)
        found[kind] = results(fit) | source.read_so_far()
    return found


class InterruptsThirdBatch:
    """Progress callback that interrupts a fit in its third batch."""

    seen = 0

    def batch(self, at):
        self.seen += 1
        if self.seen == 3:
            raise KeyboardInterrupt
        return False


def resumed(mesh, folder):
    """Return a fit that was interrupted in its third batch and resumed."""
    kept = Checkpoint(Path(folder) / "run", every=0)
    with contextlib.suppress(KeyboardInterrupt):
        estimator(mesh=mesh, center=False).fit(
            Recorded(table()), checkpoint=kept, progress=InterruptsThirdBatch()
        )
    sync_global_devices("all have stopped")
    source = Recorded(table())
    fit = estimator(mesh=mesh, center=False).fit(source, checkpoint=kept)
    return results(fit) | source.read_so_far()


def played(mesh):
    """Return the components of `play` if each process has all columns of its own rows."""
    rows = table()[:200]
    first, count = choose_placement(mesh).local_rows(200)
    found = play(make("alpha"), rows[first : first + count], k=K, rounds=3, mesh=mesh)
    return np.asarray(found.components, np.float64).tolist()


def different_seeds(mesh):
    """Return the error message for processes with different seeds."""
    try:
        game_pca(K, random_state=jax.process_index(), mesh=mesh).fit(table())
    except ValueError as error:
        return str(error)
    return "no error"


def sparse(mesh):
    return results(estimator(mesh=mesh).fit(scipy.sparse.csr_array(table())))


def main(index, count, port, mesh, folder, *parts):
    join(Hosts(f"127.0.0.1:{port}", int(count), int(index)))
    found = {
        "fitted by every route": lambda: fitted(FITS, mesh),
        "resumed": lambda: resumed(mesh, folder),
        "sparse": lambda: sparse(mesh),
        "played": lambda: played(mesh),
        "different seeds": lambda: different_seeds(mesh),
        "auto": lambda: [
            str(choose_placement("auto", *shape).layout)
            for shape in ((64, 8, 10**6), (65536, 8, 256))
        ],
    }
    print(json.dumps({part: found[part]() for part in parts}))


if __name__ == "__main__":
    main(*sys.argv[1:])

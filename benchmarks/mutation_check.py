"""What happens with a mutated input: answered, refused with a message, or not as it should be."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.mutation_seeds import Seed

KINDS = ("answered", "refused", "unexpected", "crashed", "out of memory", "timed out")
"""Verdicts. The first two are as they should be."""

BLOCK = 8
LARGE = 10**5
"""Numbers of rows or features above which an input is opened but not read."""


class Verdict(NamedTuple):
    """Kind of the result, and the error or difference."""

    kind: str
    detail: str = ""


def check(name: str, path: Path, seed: Seed, *, raising: bool = False) -> Verdict:
    """Open and read an input, and return what happened.

    An input is refused well if the error is one of the project's own and its message names the file. Other rows
    than those of the valid input are an answer too, because a changed number may be a valid one. With `raising`,
    an unexpected error is raised again.
    """
    from eigengame.model_file import ModelFileError
    from eigengame.solver.passes.run_record import CheckpointError
    from eigengame.sources import SourceError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = READERS.get(name, _read_rows)(path, seed)
    except MemoryError as error:
        return Verdict("out of memory", repr(error))
    except (SourceError, ModelFileError, CheckpointError) as error:
        text = str(error)
        names = [Path(one).name for one in (*seed.files, seed.target)]
        if not any(one in text for one in names):
            return Verdict("unexpected", f"the message does not name the file: {text}")
        return Verdict("refused", text)
    except Exception as error:
        if raising:
            raise
        return Verdict("unexpected", f"{type(error).__name__}: {error}")
    if rows is None or seed.rows is None:
        return Verdict("answered")
    same = rows.shape == seed.rows.shape and np.array_equal(rows, seed.rows, equal_nan=True)
    return Verdict("answered", "" if same else "other rows")


def _read_rows(path: Path, seed: Seed) -> np.ndarray | None:
    """Return all rows of a source, read in blocks from two places."""
    from eigengame.sources import as_source

    source = as_source(path, **seed.options)
    source.fingerprint()
    if max(source.shape[1], source.shape[0] or 0) > LARGE:
        return None  # such a shape is valid, but to read it takes long
    rows = [_dense(block.values) for block in source.blocks(0, BLOCK)]
    for block in source.blocks(BLOCK, BLOCK):
        assert block.values.shape[1] == source.shape[1]
    table = np.vstack(rows) if rows else np.empty((0, source.shape[1]))
    assert table.shape[1] == source.shape[1], "blocks of another width"
    assert source.shape[0] in (None, len(table)), "blocks of another number of rows"
    return table


def _dense(values: Any) -> np.ndarray:
    return values.toarray() if sparse.issparse(values) else np.asarray(values)


def _read_model(path: Path, seed: Seed) -> None:
    """Load a model, use it, and write its report."""
    from eigengame import EigenGamePCA, write_report
    from eigengame.model_file import provenance

    model = EigenGamePCA.load(path)
    provenance(model)
    str(model.certificate_), str(model.outcome_), repr(model)
    prepared = model._preparation
    width = model.n_features_in_ if prepared is None else prepared.width
    model.transform(np.zeros((2, width)))
    write_report(model, path.with_name("report.html"))


def _read_checkpoint(path: Path, seed: Seed) -> None:
    """Open the folder of a run, and read all its passes."""
    from safetensors import SafetensorError

    from eigengame.solver.passes.checkpoint import CheckpointStore
    from eigengame.solver.passes.run_record import read_facts

    facts = read_facts(path / "run.json")
    store = CheckpointStore(path, facts["configuration"], facts["source"])
    try:
        from safetensors import safe_open

        for number, file in enumerate(sorted(path.glob("pass-*.safetensors"))):
            try:
                with safe_open(file, framework="np") as opened:
                    start = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118
            except (SafetensorError, KeyError, TypeError, AttributeError):
                start = {}
            store.read(number, start)
    finally:
        store.close()


READERS: dict[str, Any] = {"model": _read_model, "checkpoint": _read_checkpoint}
"""Functions that read an input that is not a source."""

"""Mutated inputs of every format: answered, or refused with a message that names the file."""

import random

import numpy as np
import pytest

pytest.importorskip("resource")  # limits of a process, which Windows does not have
from benchmarks.mutated_inputs import Tally, files_of, run, write
from benchmarks.mutation_check import check
from benchmarks.mutation_seeds import MAKERS, make_seeds
from benchmarks.mutations import mutate

FORMATS = list(MAKERS)

UPSTREAM = {
    "parquet": "crashed: exit code -# what(): Definition level histogram size mismatch",
    **dict.fromkeys(("hdf5", "hdf5 10x", "h5ad", "h5ad csr", "h5ad csc", "netcdf"), "timed out"),
}
"""Defects of pyarrow and libhdf5, which read damaged metadata in compiled code; see docs/promises.md."""


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    return make_seeds(tmp_path_factory.mktemp("seeds"))


def test_every_valid_input_is_answered(seeds, tmp_path):
    for name, seed in seeds.items():
        write(tmp_path / "input", seed.files)
        verdict = check(name, tmp_path / "input" / seed.target, seed)
        assert (verdict.kind, verdict.detail) == ("answered", ""), (name, verdict)


def test_a_case_is_the_same_in_every_process(seeds):
    for case in range(len(FORMATS)):
        assert files_of(case, 7, FORMATS, seeds) == files_of(case, 7, FORMATS, seeds)
    changed = sum(
        mutate(seeds["npy"].files, random.Random(i)) != seeds["npy"].files for i in range(50)
    )
    assert changed > 40


def test_errors_that_are_not_the_projects_own_are_counted_as_unexpected(
    seeds, tmp_path, monkeypatch
):
    write(tmp_path / "input", seeds["npy"].files)
    path = tmp_path / "input" / "x.npy"
    monkeypatch.setattr("eigengame.sources.as_source", lambda *_, **__: 1 / 0)
    assert check("npy", path, seeds["npy"]).kind == "unexpected"

    def nameless(*_, **__):
        from eigengame.sources import SourceError

        raise SourceError("something is wrong")

    monkeypatch.setattr("eigengame.sources.as_source", nameless)
    assert check("npy", path, seeds["npy"]).kind == "unexpected"


def test_a_child_that_dies_is_counted_and_the_next_case_is_read(monkeypatch, tmp_path):
    import benchmarks.mutated_inputs as harness

    monkeypatch.setattr(harness, "CASES_PER_CHILD", 20)
    (tmp_path / "sitecustomize.py").write_text(
        "import os\n"
        "import benchmarks.mutation_check as one\n"
        "plain, seen = one.check, []\n"
        "def check(*given, **options):\n"
        "    seen.append(1)\n"
        "    if len(seen) == 3: os.abort()\n"
        "    return plain(*given, **options)\n"
        "one.check = check\n"
    )
    import os

    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    tally = Tally(["raw"])
    run(range(4), 0, ["raw"], 1, tally, tell=False)
    assert tally.counts["raw", "crashed"] == 1
    assert sum(tally.counts[key] for key in tally.counts if key[1] != "other rows") == 4


def test_some_mutated_inputs():
    _run(8 * len(FORMATS))


@pytest.mark.slow
def test_many_mutated_inputs():
    _run(1000 * len(FORMATS), seed=int(np.random.default_rng().integers(2**31)))


def _run(cases, seed=0):
    tally = Tally(FORMATS)
    run(range(cases), seed, FORMATS, 1, tally, tell=False)
    print(tally.table())
    bad = {
        (name, words): found
        for (name, words), found in tally.examples.items()
        if name not in UPSTREAM or not words.startswith(UPSTREAM[name])
    }
    assert not bad, f"seed {seed}: {tally.report()}"

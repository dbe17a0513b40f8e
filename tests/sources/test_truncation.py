"""Files that another program truncates while they are read: an error, not a dead process."""

import subprocess
import sys

import pytest

CHILD = """
import os, sys
import numpy as np
import pyarrow as pa
from scipy import sparse
from eigengame.sources import SourceError, as_source

os.chdir(sys.argv[1])
rows = np.ones((4096, 64), np.float32)

def npy(name, array):
    np.save(name, array)
    return name, as_source(name)

def raw():
    rows.tofile("x.raw")
    return "x.raw", as_source("x.raw", columns=64)

def npz():
    np.savez("x.npz", x=rows)
    return "x.npz", as_source("x.npz")

def memory_map():
    np.save("map.npy", rows)
    return "map.npy", as_source(np.load("map.npy", mmap_mode="r"))

def arrow():
    columns = {str(i): rows[:, i] for i in range(64)}
    with pa.ipc.new_file("x.arrow", pa.table(columns).schema) as file:
        for begin in range(0, 4096, 256):
            file.write(pa.record_batch({name: one[begin:begin + 256] for name, one in columns.items()}))
    return "x.arrow", as_source("x.arrow")

kinds = {
    "npy": lambda: npy("x.npy", rows),
    "npy by columns": lambda: npy("f.npy", np.asfortranarray(rows)),
    "npy of other bytes": lambda: npy("b.npy", rows.astype(">f4")),
    "raw": raw,
    "npz": npz,
    "memory map": memory_map,
    "arrow": arrow,
}
for kind, made in kinds.items():
    path, source = made()
    blocks = source.blocks(0, 256)
    next(blocks)
    os.truncate(path, 100_000)
    try:
        for block in blocks:
            block.values.sum()
        print(f"{kind}: read to its end")
    except SourceError as error:
        print(f"{kind}: {error}", flush=True)
"""


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, tmp_path_factory.mktemp("files")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("npy", "x.npy"),
        ("npy by columns", "f.npy"),
        ("npy of other bytes", "b.npy"),
        ("raw", "x.raw"),
        ("npz", "x.npz"),
        ("memory map", "map.npy"),
    ],
)
def test_a_file_that_is_truncated_while_it_is_read_raises(messages, kind, file):
    assert file in messages[kind]
    assert "truncated" in messages[kind]


def test_an_arrow_file_that_is_truncated_while_it_is_read_raises(messages):
    assert messages["arrow"].startswith("x.arrow cannot be read beyond row")


def test_a_file_that_is_replaced_is_read_to_its_end(tmp_path):
    import numpy as np

    from eigengame import as_source

    path = tmp_path / "x.npy"
    np.save(path, np.ones((64, 4)))
    source = as_source(path)
    blocks = source.blocks(0, 16)
    next(blocks)
    np.save(tmp_path / "other.npy", np.zeros((8, 4)))
    (tmp_path / "other.npy").replace(path)
    assert all((block.values == 1).all() for block in blocks)

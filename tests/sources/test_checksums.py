"""Files with checksums: a flipped bit is refused before the last rows of a pass are read."""

import gzip
import struct

import numpy as np
import pytest
from scipy import sparse

from eigengame import EigenGamePCA, as_source
from eigengame.sources import SourceError, npz

X = np.random.default_rng(0).normal(size=(400, 6))
PICTURES = np.random.default_rng(1).integers(0, 256, (40, 4, 4), np.uint8)


def stored(path):
    np.savez(path / "x.npz", x=X)
    return path / "x.npz"


def by_columns(path):
    np.savez(path / "x.npz", x=np.asfortranarray(X))
    return path / "x.npz"


def compressed(path):
    np.savez_compressed(path / "x.npz", x=X)
    return path / "x.npz"


def compressed_sparse(path):
    sparse.save_npz(path / "x.npz", sparse.csr_array(np.where(X > 0.5, X, 0)))
    return path / "x.npz"


def idx(path):
    head = b"\0\0\x08\x03" + struct.pack(">3I", *PICTURES.shape)
    (path / "x-ubyte.gz").write_bytes(gzip.compress(head + PICTURES.tobytes(), mtime=0))
    return path / "x-ubyte.gz"


def rows(path, size=64, start=0):
    """Return all rows of a file, dense."""
    blocks = [block.values for block in as_source(path).blocks(start, size)]
    return np.vstack([one.toarray() if sparse.issparse(one) else one for one in blocks])


@pytest.fixture(params=[2**26, 0], ids=["checked when opened", "checked while read"])
def checked(request, monkeypatch):
    monkeypatch.setattr(npz, "SMALL", request.param)


@pytest.mark.parametrize("made", [stored, by_columns, compressed, compressed_sparse, idx])
def test_no_flipped_bit_of_a_file_with_checksums_changes_its_rows(tmp_path, checked, made):
    path = made(tmp_path)
    whole, right = path.read_bytes(), rows(path)
    places = np.random.default_rng(2).integers(0, 8 * len(whole), 300).tolist()
    places += range(8 * (len(whole) - 30), 8 * len(whole))
    refused = 0
    for place in places:
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            found = rows(path)
        except SourceError:
            refused += 1
            continue
        np.testing.assert_array_equal(found, right)
    assert refused > 100


def damage(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("made", [stored, by_columns])
def test_random_access_and_resumed_passes_are_checked_too(tmp_path, monkeypatch, made):
    monkeypatch.setattr(npz, "SMALL", 0)
    path = made(tmp_path)
    np.testing.assert_array_equal(rows(path, start=7), X[7:])
    damage(path, 9000)  # beyond the bytes that are read with the header
    source = as_source(path)
    for read in (
        lambda: source.read(300, 301),
        lambda: source.read_columns(300, 301, 0, 1),
        lambda: list(source.blocks(300, 40)),
    ):
        with pytest.raises(SourceError, match="checksum"):
            read()


@pytest.mark.parametrize("made", [stored, idx])
def test_a_damaged_file_gives_no_model(tmp_path, monkeypatch, made):
    monkeypatch.setattr(npz, "SMALL", 0)
    path = made(tmp_path)
    damage(path, len(path.read_bytes()) // 2)
    pca = EigenGamePCA(2, random_state=0, batch_size=16)
    with pytest.raises(SourceError, match="damaged"):
        pca.fit(path)
    assert not hasattr(pca, "components_")


def test_an_idx_file_that_is_longer_than_its_header_states_is_refused(tmp_path):
    path = idx(tmp_path)
    content = gzip.decompress(path.read_bytes()) + b"\0"
    plain = tmp_path / "y-ubyte"
    plain.write_bytes(content)
    path.write_bytes(gzip.compress(content))
    with pytest.raises(SourceError, match="its header describes"):
        as_source(plain)
    with pytest.raises(SourceError, match="continues after the last row"):
        rows(path)

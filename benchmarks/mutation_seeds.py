"""Small valid inputs of every format: the beginnings of mutated inputs."""

from __future__ import annotations

import gzip
import importlib.util
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

ROWS, FEATURES = 23, 5
X = np.random.default_rng(0).standard_normal((ROWS, FEATURES)).round(3)
SPARSE = sparse.csr_array(np.where(X > 0.2, X, 0))
NETCDF = all(importlib.util.find_spec(name) for name in ("xarray", "h5netcdf"))
BYTES = (40 * X + 128).clip(0, 255).astype(np.uint8)


class Seed(NamedTuple):
    """A valid input.

    Attributes
    ----------
    files : dict of bytes
        Content of its files, by their paths within a folder.
    target : str
        The path to open.
    rows : array of shape (n, d), optional
        Its rows; None for models and checkpoints.
    options : dict
        Options of `as_source`.
    """

    files: dict[str, bytes]
    target: str
    rows: np.ndarray | None
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed


def make_seeds(folder: Path, formats: Sequence[str] = ()) -> dict[str, Seed]:
    """Write one input of each of the formats, by default of all, below a folder, and return them."""
    seeds = {}
    for name in formats or MAKERS:
        place = folder / name
        place.mkdir(parents=True)
        target, rows, *rest = MAKERS[name](place)
        files = {
            str(path.relative_to(place)): path.read_bytes()
            for path in sorted(place.rglob("*"))
            if path.is_file()
        }
        seeds[name] = Seed(files, target, rows, *rest)
    return seeds


def _npy(folder: Path) -> tuple[Any, ...]:
    np.save(folder / "x.npy", X)
    return "x.npy", X


def _npz(folder: Path) -> tuple[Any, ...]:
    np.savez(folder / "x.npz", x=X, labels=np.arange(ROWS))
    return "x.npz", X


def _npz_compressed(folder: Path) -> tuple[Any, ...]:
    np.savez_compressed(folder / "x.npz", x=X)
    return "x.npz", X


def _npz_sparse(form: str) -> Callable[[Path], tuple[Any, ...]]:
    def make(folder: Path) -> tuple[Any, ...]:
        sparse.save_npz(folder / "x.npz", SPARSE.asformat(form), compressed=form == "csc")
        return "x.npz", SPARSE.toarray()

    return make


def _raw(folder: Path) -> tuple[Any, ...]:
    X.astype(np.float32).tofile(folder / "x.raw")
    return "x.raw", X.astype(np.float32), {"columns": FEATURES}


def _idx(ending: str) -> Callable[[Path], tuple[Any, ...]]:
    def make(folder: Path) -> tuple[Any, ...]:
        content = b"\0\0\x08\2" + struct.pack(">2I", ROWS, FEATURES) + BYTES.tobytes()
        packed = gzip.compress(content, mtime=0) if ending.endswith("gz") else content
        (folder / f"x{ending}").write_bytes(packed)
        return f"x{ending}", BYTES

    return make


def _text(ending: str, delimiter: str, header: str | None) -> Callable[[Path], tuple[Any, ...]]:
    def make(folder: Path) -> tuple[Any, ...]:
        lines = [] if header is None else [delimiter.join(header)]
        lines += [delimiter.join(f"{one:g}" for one in row) for row in X]
        content = "\n".join(lines).encode() + b"\n"
        packed = gzip.compress(content, mtime=0) if ending.endswith("gz") else content
        (folder / f"x{ending}").write_bytes(packed)
        return f"x{ending}", X

    return make


def _hdf5(folder: Path) -> tuple[Any, ...]:
    import h5py

    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("group/x", data=X, chunks=(8, FEATURES), compression="gzip")
        file["labels"] = np.arange(ROWS)
    return "x.h5", X


def _netcdf(engine: str) -> Callable[[Path], tuple[Any, ...]]:
    def make(folder: Path) -> tuple[Any, ...]:
        import xarray

        field = xarray.DataArray(
            X, dims=("time", "lat"), coords={"lat": np.linspace(-60, 60, FEATURES)}, name="sst"
        )
        field.to_netcdf(folder / "x.nc", engine=engine)
        return "x.nc", X

    return make


def _hdf5_sparse(folder: Path) -> tuple[Any, ...]:
    import h5py

    with h5py.File(folder / "x.h5", "w") as file:
        group = file.create_group("matrix")
        matrix = SPARSE.T.tocsc()  # genes x cells, as 10x Genomics stores it
        group["shape"] = np.array(matrix.shape)
        group["barcodes"] = np.array([f"c{i}" for i in range(ROWS)], "S4")
        group["genes"] = np.array([f"g{i}" for i in range(FEATURES)], "S4")
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(matrix, part)
    return "x.h5", SPARSE.toarray()


def _h5ad(form: str) -> Callable[[Path], tuple[Any, ...]]:
    def make(folder: Path) -> tuple[Any, ...]:
        import h5py

        with h5py.File(folder / "x.h5ad", "w") as file:
            var = file.create_group("var")
            var.attrs["_index"] = "index"
            var["index"] = np.array([f"g{i}" for i in range(FEATURES)], "S4")
            if form == "dense":
                file["X"] = X
                return "x.h5ad", X
            matrix, group = SPARSE.asformat(form), file.create_group("X")
            group.attrs.update({"encoding-type": f"{form}_matrix", "shape": matrix.shape})
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(matrix, part)
        return "x.h5ad", SPARSE.toarray()

    return make


def _zarr(version: int) -> Callable[[Path], tuple[Any, ...]]:
    def make(folder: Path) -> tuple[Any, ...]:
        import zarr

        array = zarr.create_array(
            folder / "x.zarr",
            shape=X.shape,
            dtype="f8",
            chunks=(8, FEATURES),
            zarr_format=version,
        )
        array[:] = X
        return "x.zarr", X

    return make


def _parquet(folder: Path) -> tuple[Any, ...]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({f"c{i}": X[:, i] for i in range(FEATURES)})
    pq.write_table(table, folder / "x.parquet", row_group_size=10, write_page_checksum=True)
    return "x.parquet", X


def _arrow(stream: bool, compression: str | None) -> Callable[[Path], tuple[Any, ...]]:
    def make(folder: Path) -> tuple[Any, ...]:
        import pyarrow as pa

        table = pa.table({f"c{i}": X[:, i] for i in range(FEATURES)})
        opened = pa.ipc.new_stream if stream else pa.ipc.new_file
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with opened(folder / "x.arrow", table.schema, options=options) as file:
            file.write_table(table, max_chunksize=10)
        return "x.arrow", X

    return make


def _arrow_lists(folder: Path) -> tuple[Any, ...]:
    import pyarrow as pa

    table = pa.table({"rows": pa.array(list(X), pa.list_(pa.float64()))})
    with pa.ipc.new_file(folder / "x.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=10)
    return "x.arrow", X


def _bed(folder: Path) -> tuple[Any, ...]:
    calls = np.clip(np.round(np.abs(X)), 0, 2)
    codes = np.array([3, 2, 0], np.uint8)[calls.astype(int)].T  # two bits, by SNPs
    padded = np.zeros((FEATURES, -(-ROWS // 4) * 4), np.uint8)
    padded[:, :ROWS] = codes
    packed = (padded.reshape(FEATURES, -1, 4) << np.array([0, 2, 4, 6], np.uint8)).sum(
        axis=2, dtype=np.uint8
    )
    (folder / "x.bed").write_bytes(b"\x6c\x1b\x01" + packed.tobytes())
    snps = "".join(f"1\trs{i}\t0\t{i + 1}\tA\tG\n" for i in range(FEATURES))
    (folder / "x.bim").write_text(snps)
    (folder / "x.fam").write_text("".join(f"f{i} i{i} 0 0 0 -9\n" for i in range(ROWS)))
    return "x.bed", calls.astype(np.float32)


def _images(ending: str) -> Callable[[Path], tuple[Any, ...]]:
    def make(folder: Path) -> tuple[Any, ...]:
        from PIL import Image

        (folder / "images").mkdir()
        pictures = BYTES[:20].reshape(4, 5, 5)
        for i, picture in enumerate(pictures):
            Image.fromarray(picture).save(folder / "images" / f"{i}.{ending}")
        exact = ending in ("png", "bmp", "tiff", "pgm")
        return "images", pictures.reshape(4, 25) if exact else None

    return make


def _model(folder: Path) -> tuple[Any, ...]:
    from eigengame import EigenGamePCA, prepare

    EigenGamePCA(2, random_state=0).fit(prepare(X, missing="mean")).save(
        folder / "model.safetensors"
    )
    return "model.safetensors", None


def _checkpoint(folder: Path) -> tuple[Any, ...]:
    from eigengame import Checkpoint, EigenGamePCA

    EigenGamePCA(2, random_state=0).fit(X, checkpoint=Checkpoint(folder / "run", 0))
    return "run", None


MAKERS: dict[str, Callable[[Path], tuple[Any, ...]]] = {
    "npy": _npy,
    "npz": _npz,
    "npz compressed": _npz_compressed,
    "npz csr": _npz_sparse("csr"),
    "npz csc": _npz_sparse("csc"),
    "npz coo": _npz_sparse("coo"),
    "raw": _raw,
    "idx": _idx("-ubyte"),
    "idx gz": _idx("-ubyte.gz"),
    "csv": _text(".csv", ",", "abcde"),
    "csv gz": _text(".csv.gz", ",", None),
    "tsv": _text(".tsv", "\t", "abcde"),
    "txt": _text(".txt", "  ", None),
    "hdf5": _hdf5,
    "hdf5 10x": _hdf5_sparse,
    **({"netcdf": _netcdf("h5netcdf"), "netcdf classic": _netcdf("scipy")} if NETCDF else {}),
    "h5ad": _h5ad("dense"),
    "h5ad csr": _h5ad("csr"),
    "h5ad csc": _h5ad("csc"),
    "zarr 2": _zarr(2),
    "zarr 3": _zarr(3),
    "parquet": _parquet,
    "arrow": _arrow(False, None),
    "arrow zstd": _arrow(False, "zstd"),
    "arrow stream": _arrow(True, None),
    "arrow lists": _arrow_lists,
    "bed": _bed,
    "png": _images("png"),
    "jpg": _images("jpg"),
    "gif": _images("gif"),
    "bmp": _images("bmp"),
    "tiff": _images("tiff"),
    "webp": _images("webp"),
    "pgm": _images("pgm"),
    "model": _model,
    "checkpoint": _checkpoint,
}
"""Functions that write a valid input into a folder, by the name of the format."""

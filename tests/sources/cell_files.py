"""Small files of single cells, written by h5py in the layouts of anndata and 10x Genomics."""

import numpy as np
from scipy import sparse


def cell_counts(n=120, d=40, seed=0):
    """Return counts (n, d) of three types of cells, with very different means of genes, as float32."""
    rng = np.random.default_rng(seed)
    means = rng.lognormal(0, 1.5, d) * np.exp(
        rng.standard_normal((3, d)) * (rng.random((3, d)) < 0.3)
    )
    sizes = rng.lognormal(0, 0.3, (n, 1))
    return rng.poisson(means[rng.integers(0, 3, n)] * sizes).astype(np.float32)


def gene_names(d=40):
    return [f"gene{i}" for i in range(d)]


def barcodes(n=120):
    return [f"AAAC-{i}" for i in range(n)]


def put_matrix(parent, key, matrix):
    """Write a sparse matrix."""
    group = parent.create_group(key)
    kind = {"encoding-type": f"{matrix.format}_matrix", "encoding-version": "0.1.0"}
    group.attrs.update(kind | {"shape": matrix.shape})
    for part in ("data", "indices", "indptr"):
        group[part] = getattr(matrix, part)


def put_table(parent, key, index):
    """Write a table without columns."""
    group = parent.create_group(key)
    group.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0"})
    group.attrs.update({"_index": "_index", "column-order": np.zeros(0)})
    put_column(group, "_index", np.array([str(one) for one in index], dtype=object))
    return group


def put_column(group, name, values):
    """Write a column of a table, with the encoding of its texts or numbers."""
    import h5py

    text = values.dtype == object
    column = group.create_dataset(name, data=values, dtype=h5py.string_dtype() if text else None)
    encoding = "string-array" if text else "array"
    column.attrs.update({"encoding-type": encoding, "encoding-version": "0.2.0"})


def write_h5ad(path, counts, genes=None, cells=None, layers=None, raw=None):
    """Write an `.h5ad` file of sparse counts, optionally with layers and `raw.X`."""
    import h5py

    n, d = counts.shape
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        put_matrix(file, "X", sparse.csr_array(counts))
        put_table(file, "obs", barcodes(n) if cells is None else cells)
        put_table(file, "var", gene_names(d) if genes is None else genes)
        for name, layer in (layers or {}).items():
            put_matrix(file.require_group("layers"), name, sparse.csr_array(layer))
        if raw is not None:
            put_matrix(file.require_group("raw"), "X", sparse.csr_array(raw))
            put_table(file["raw"], "var", [f"raw{i}" for i in range(raw.shape[1])])
    return path


def write_old_h5ad(path, counts, labels=("b", "a", "c")):
    """Write a file in the layout from before 2019: compound tables, `raw.X`, categories in `uns`."""
    import h5py

    n, d = counts.shape
    matrix = sparse.csr_array(counts)
    with h5py.File(path, "w") as file:
        file["X"] = np.log1p(counts)
        group = file.create_group("raw.X")
        group.attrs.update({"h5sparse_format": "csr", "h5sparse_shape": matrix.shape})
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(matrix, part)
        names = np.array([(one.encode(),) for one in gene_names(d)], [("index", "S16")])
        file["var"] = file["raw.var"] = names
        kind = [("index", "S16"), ("type", "i1"), ("depth", "f4")]
        rows = [(one.encode(), i % (len(labels) + 1) - 1, i) for i, one in enumerate(barcodes(n))]
        file["obs"] = np.array(rows, kind)
        file["uns/type_categories"] = [one.encode() for one in labels]
        file["obsm"] = np.zeros(n, [("X_pca", "f4", (2,)), ("X_umap", "f8", (2,))])
    return path


def write_10x(path, counts, genes=None):
    """Write the layout of Cell Ranger 3: genes by cells, stored by columns."""
    import h5py

    n, d = counts.shape
    matrix = sparse.csr_array(counts)
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix")
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(matrix, part).astype(np.int32)
        group["shape"] = np.array([d, n], np.int32)
        group["barcodes"] = [one.encode() for one in barcodes(n)]
        names = gene_names(d) if genes is None else genes
        group["features/name"] = [one.encode() for one in names]
        group["features/id"] = [f"ENSG{i}".encode() for i in range(d)]
    return path

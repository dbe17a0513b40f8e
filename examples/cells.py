"""Single cells: from raw counts to a scatter plot.

A single-cell experiment counts the molecules of each gene in each cell. The usual first steps are: divide
the counts of a cell by their total, take logarithms, select the genes that vary most, and compute principal
components. Here all of these happen while the file is read, and the counts stay sparse. The cells are then
grouped by their scores, and each group is described by the genes that distinguish it.

The counts are those of a 10x Genomics file (`singlecell_10x`) if it is in the folder `EIGENGAME_DATA`.
Otherwise a file of the same form is generated, with four types of cells.
"""

# %%
# A file of 10x Genomics is an HDF5 file with the non-zero counts, the names of genes, and the barcodes of
# cells.
import os
import tempfile
from pathlib import Path

import h5py
import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans

from eigengame import EigenGamePCA, as_source, prepare


def write_counts(path, n=1200, genes=900):
    """Write the counts of four types of cells, each with ten genes of its own that are expressed more."""
    rng = np.random.default_rng(0)
    types = np.repeat(np.arange(4), n // 4)
    rate = np.tile(rng.gamma(0.5, 1.0, genes), (4, 1))
    names = [f"gene {j}" for j in range(genes)]
    for t in range(4):
        rate[t, 10 * t : 10 * t + 10] = rng.uniform(5, 15, 10)
        names[10 * t : 10 * t + 10] = [f"{'ABCD'[t]}{j}" for j in range(1, 11)]
    counts = sparse.csr_array(rng.poisson(rate[types] * rng.uniform(0.2, 1, (n, 1))))
    with h5py.File(path, "w") as file:
        for part in ("data", "indices", "indptr"):
            file[f"matrix/{part}"] = getattr(counts, part)
        file["matrix/shape"] = [genes, n]
        file["matrix/barcodes"] = [f"cell{i}".encode() for i in range(n)]
        file["matrix/features/name"] = [name.encode() for name in names]
    return path


folder = Path(os.environ.get("EIGENGAME_DATA", "../shared/data")) / "singlecell_10x"
temporary = tempfile.TemporaryDirectory()
found = sorted(folder.glob("*.h5"))
path = found[0] if found else write_counts(Path(temporary.name) / "counts.h5")
counts = as_source(path)
print("data:", path.name if found else "generated counts of four types of cells")
print(f"{counts.shape[0]} cells, {counts.shape[1]} genes")

# %%
# `prepare` describes the steps; the data passes through them when the fit reads it. The totals of cells
# include all genes, also those that are not selected.
GENES = min(2000, counts.shape[1] // 4)
cells = prepare(path, counts="log-normalise", top_variable=GENES)
pca = EigenGamePCA(20, random_state=0).fit(cells)
print(f"fitted on {cells.shape[1]} genes, sparse: {cells.sparse}; {pca.outcome_}")
print(f"largest bound of the 20 components: {pca.certificate_.angle.max():.1e} rad")

# %%
# The model keeps the preparation, so raw counts can be transformed: those of the fit, or of new cells.
scores = pca.transform(path)
GROUPS = 5 if found else 4
groups = KMeans(GROUPS, n_init=10, random_state=0).fit_predict(scores)

# %%
# The mean scores of a group, multiplied by the components, are its mean expression relative to all cells. The
# genes with the largest values describe the group.
names = np.asarray(pca.feature_names_in_)
order = np.argsort(-np.bincount(groups))
labels = []
for number, group in enumerate(order, start=1):
    expression = scores[groups == group].mean(axis=0) @ pca.components_
    top = names[np.argsort(-expression)[:4]]
    labels.append(", ".join(top))
    print(f"group {number}: {(groups == group).sum():>4} cells, {labels[-1]}")

# %%
# Colours are groups, and the legend lists their genes. Groups that overlap in one plane can be apart in the
# other.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#000000"]
figure, panels = plt.subplots(1, 2, figsize=(9.5, 4.6), layout="constrained")
for axes, (a, b) in zip(panels, [(0, 1), (2, 3)], strict=True):
    for group, colour, label in zip(order, COLOURS, labels, strict=False):
        x, y = scores[groups == group][:, [a, b]].T
        axes.scatter(x, y, s=4, color=colour, alpha=0.6, lw=0, label=label, rasterized=True)
    share = pca.explained_variance_ratio_
    axes.set(xlabel=f"component {a + 1} ({share[a]:.1%} of the variance)")
    axes.set(ylabel=f"component {b + 1} ({share[b]:.1%})")
    axes.spines[["top", "right"]].set_visible(False)
handles, _ = panels[0].get_legend_handles_labels()
legend = {"loc": "outside lower center", "frameon": False, "ncols": 2, "markerscale": 4}
figure.legend(handles, labels, title="genes that distinguish the group", **legend)
figure.savefig("cells.png", dpi=100)
temporary.cleanup()

"""Genotypes: new individuals, projected onto the components of a reference.

Components of genotypes show ancestry. To place new individuals among those of a reference, their scores are
computed from the components of the reference. The new file may have another form: its SNPs are in another
order, and for some of them it counts the other allele. A model therefore stores the ids and alleles of its
SNPs, and aligns other files with them. This program shows what happens with and without it.

The individuals are those of HapMap3 (`genotypes_hapmap3`) if they are in the folder `EIGENGAME_DATA`.
Otherwise three populations are generated.
"""

# %%
# Calls count the copies of an allele: 0, 1 or 2, with NaN for a missing call.
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from bed_reader import open_bed, to_bed

from eigengame import EigenGamePCA, prepare

ANCESTRY = {
    "African ancestry": ("ASW", "LWK", "MKK", "YRI"),
    "European": ("CEU", "TSI"),
    "East Asian": ("CHB", "CHD", "JPT"),
    "Gujarati": ("GIH",),
    "Mexican": ("MEX",),
}
rng = np.random.default_rng(0)
folder = Path(os.environ.get("EIGENGAME_DATA", "../shared/data")) / "genotypes_hapmap3"
if folder.exists():
    print("data: HapMap3")
    with open_bed(next(folder.glob("*.bed"))) as bed:
        calls, ids, people = bed.read(), bed.sid, bed.iid
        alleles = np.stack([bed.allele_1, bed.allele_2])
    lines = next(folder.glob("*.txt")).read_text().splitlines()[1:]
    codes = {line.split()[1]: line.split()[6] for line in lines}
    names = {code: name for name, members in ANCESTRY.items() for code in members}
    group = np.array([names[codes[person]] for person in people])
else:
    print("data: three generated populations")
    group = np.repeat(["population A", "population B", "population C"], 60)
    common = rng.uniform(0.1, 0.9, 1500)
    each = {
        one: np.clip(common + 0.1 * rng.standard_normal(1500), 0, 1) for one in sorted(set(group))
    }
    calls = rng.binomial(2, [each[one] for one in group]).astype(np.float32)
    calls[rng.random(calls.shape) < 0.01] = np.nan
    ids, people = np.array([f"rs{i}" for i in range(1500)]), np.arange(180).astype(str)
    alleles = np.array([["A"], ["G"]]).repeat(1500, axis=1)

# %%
# Half of the individuals are the reference. The file of the others has its SNPs in another order, and counts
# the other allele of a third of them.
temporary = tempfile.TemporaryDirectory()
reference, cohort = (Path(temporary.name) / f"{name}.bed" for name in ("reference", "cohort"))
old, new = np.arange(0, len(calls), 2), np.arange(1, len(calls), 2)
order, other = rng.permutation(len(ids)), rng.random(len(ids)) < 1 / 3
recoded, swapped = np.where(other, 2 - calls, calls), np.where(other, alleles[::-1], alleles)
for path, rows, columns, values, pair in (
    (reference, old, np.arange(len(ids)), calls, alleles),
    (cohort, new, order, recoded, swapped),
):
    about = {"iid": people[rows], "sid": ids[columns]}
    about |= {"allele_1": pair[0, columns], "allele_2": pair[1, columns]}
    to_bed(path, values[np.ix_(rows, columns)], properties=about)

# %%
# The model standardises each SNP by its allele frequency in the reference.
pca = EigenGamePCA(4, random_state=0).fit(prepare(reference, genotypes=True))
print(f"{len(old)} individuals, {len(ids)} SNPs: {pca.outcome_}")

# %%
# `transform` aligns the file of the others; `align` shows how. The scores are those of the same individuals
# without any change of their file.
aligned = pca.transform(cohort)
print(pca.align(cohort).alignment)
difference = np.abs(aligned - pca.transform(calls[new])).max()
print(f"largest difference to scores from unchanged calls: {difference:.0e}")

# %%
# An array has no ids and alleles. If the columns are put in order, but the alleles are not, scores are wrong:
# fewer individuals are closest to the centre of their own group in the reference.
careless = pca.transform(recoded[new])
base = pca.transform(reference)
groups = [one for one in ANCESTRY if one in group] or sorted(set(group))
centres = np.stack([base[group[old] == one].mean(axis=0) for one in groups])
correct = {}
for name, scores in (("aligned", aligned), ("not aligned", careless)):
    nearest = np.linalg.norm(scores[:, None] - centres, axis=2).argmin(axis=1)
    correct[name] = np.mean(np.array(groups)[nearest] == group[new])
    print(f"{name}: {correct[name]:.0%} are closest to the centre of their own group")

# %%
# Dots are the reference, crosses the new individuals. Scores of new individuals are closer to 0 than those of
# the reference, whose noise is a part of the components. `score_shrinkage` estimates the ratio, for a
# correction.
print("ratio of scores:", ", ".join(f"{one:.2f}" for one in pca.score_shrinkage()[:2]))
COLOURS = ["#E69F00", "#0072B2", "#009E73", "#CC79A7", "#000000"]
figure, panels = plt.subplots(
    1, 2, figsize=(9.5, 4.4), layout="constrained", sharex=True, sharey=True
)
for axes, scores, name in zip(panels, (aligned, careless), correct, strict=True):
    for one, colour in zip(groups, COLOURS, strict=False):
        axes.scatter(*base[group[old] == one, :2].T, s=8, color=colour, alpha=0.35, lw=0)
        shown = scores[group[new] == one, :2]
        axes.scatter(*shown.T, s=18, color=colour, marker="x", lw=0.8, label=one)
    axes.set(xlabel="component 1", title=f"{name}: {correct[name]:.0%} closest to their own group")
    axes.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("component 2")
handles, labels = panels[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", frameon=False, ncols=5)
figure.savefig("genotypes.png", dpi=100)
temporary.cleanup()

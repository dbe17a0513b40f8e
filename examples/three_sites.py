"""Three sites that share no rows, and merge their models.

Hospitals, companies or countries often may not pool their data. Each site can fit its own rows and send a
model file, which contains sums over rows but no rows. The merged model has nearly the components that a fit
of all rows would have. A model file is not anonymous, though: a mean of two rows reveals much about both.

The data is the digits of scikit-learn, split in the worst way: each site has images of its own digits and
none of the others, so that no site alone can find the components of all.
"""

# %%
import tempfile
from functools import reduce
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from eigengame import EigenGamePCA
from eigengame.metrics import angular_error, true_components

K = 8
digits = load_digits()
KINDS = ([0, 1, 2], [3, 4, 5], [6, 7, 8, 9])
sites = [digits.data[np.isin(digits.target, kind)] for kind in KINDS]
print(f"data: the digits of scikit-learn, {[len(rows) for rows in sites]} images at three sites")


# %%
# Each site runs this function, on its own machine. Merging uses the memory that one pass of the game leaves,
# so one pass is enough. The same `random_state` at all sites gives them the same random probes: then the
# merged model has a certificate too.
def fit_site(rows, file):
    """Fit the rows of one site, and write a model file."""
    pca = EigenGamePCA(K, algorithm="remembered", tol=None, batch_size=256, random_state=0)
    pca.fit(rows).save(file)
    return file


with tempfile.TemporaryDirectory() as folder:
    files = [fit_site(rows, Path(folder) / f"{i}.safetensors") for i, rows in enumerate(sites)]
    print("bytes sent:", [file.stat().st_size for file in files])
    models = [EigenGamePCA.load(file) for file in files]

# %%
# The files are merged where they arrive.
merged = reduce(EigenGamePCA.merge, models)
print(f"merged: {merged.n_samples_seen_} rows")
print(f"largest error of the mean: {np.abs(merged.mean_ - digits.data.mean(axis=0)).max():.0e}")

# %%
# For comparison: one pass over all rows in one place, and the exact components.
pooled = EigenGamePCA(K, algorithm="remembered", tol=None, batch_size=256, random_state=0)
pooled.fit(digits.data)
_, exact = true_components(digits.data - digits.data.mean(axis=0), K)
names = ["site 1", "site 2", "site 3", "merged", "pooled"]
fits = dict(zip(names, [*models, merged, pooled], strict=True))
angles = {name: angular_error(model.components_, exact) for name, model in fits.items()}
bounds = merged.certificate_.angle
for name in names:
    print(f"{name}: largest angle to the exact components {angles[name].max():.3f} rad")
known = bounds < np.pi / 2
print(f"certificate of the merged model: {known.sum()} of {K} components have a bound,")
print(f"    {(angles['merged'] <= bounds).sum()} of {K} angles are below theirs")

# %%
# Above: component 1 of each model. Below: the angle of each component to the exact one.
figure = plt.figure(figsize=(8.5, 4.8), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1, 2])
for axes, (name, model) in zip(top.subplots(1, 5), fits.items(), strict=True):
    picture = model.components_[0] * np.sign(model.components_[0] @ exact[0])
    axes.imshow(picture.reshape(8, 8), cmap="RdBu_r", vmin=-0.4, vmax=0.4)
    axes.set_title(name, fontsize=10)
    axes.set_axis_off()
axes, numbers = bottom.subplots(), np.arange(1, K + 1)
STYLES = {"site 1": ("s", "#E69F00"), "site 2": ("D", "#CC79A7"), "site 3": ("^", "#009E73")}
STYLES |= {"merged": ("o", "#0072B2"), "pooled": ("x", "#000000")}
for name, (marker, colour) in STYLES.items():
    axes.plot(numbers, angles[name], marker, color=colour, label=name)
axes.plot(
    numbers[known], bounds[known], "_", ms=14, mew=2, color="#0072B2", label="bound of merged"
)
axes.set(yscale="log", xlabel="component", ylabel="angle to the exact\ncomponent (rad)")
axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("three_sites.png", dpi=100)

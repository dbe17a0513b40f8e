"""A first fit: components of handwritten digits, with certified bounds.

Principal components of pictures are pictures. This program fits eight of them, draws them, and compares the
bound that the fit gives for each component with its true error. The bound is computed without knowing the
exact components; here the data is small enough to compute these too.

The pictures are the test images of MNIST (28 x 28 pixels) if they are in the folder `EIGENGAME_DATA`, and
otherwise the digits that come with scikit-learn (8 x 8 pixels).
"""

# %%
# The images of MNIST are a compressed file. A path can be given to `fit` in place of an array.
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from eigengame import EigenGamePCA, as_source
from eigengame.metrics import angular_error, true_components

K = 8
folder = Path(os.environ.get("EIGENGAME_DATA", "../shared/data"))
path = folder / "mnist" / "t10k-images-idx3-ubyte.gz"
data = path if path.exists() else load_digits().data
print("data:", "MNIST, test images" if path.exists() else "the digits of scikit-learn")

# %%
# The fit needs no step size and no number of iterations. It ends when every component is within 0.05 rad of
# the exact one by its certificate; `outcome_` says how it ended.
pca = EigenGamePCA(K, random_state=0).fit(data)
n, side = pca.n_samples_seen_, round(pca.n_features_in_**0.5)
print(f"{n} images of {side} x {side} pixels: {pca.outcome_}")

# %%
# The exact components come from an eigendecomposition in float64. Each angle is below its bound.
images = np.concatenate([block.values for block in as_source(data).blocks(0, 1000)]).astype(float)
_, exact = true_components(images - images.mean(axis=0), K)
angles = angular_error(pca.components_, exact)
bounds = pca.certificate_.angle
print("component  variance  true angle  bound (rad)")
for i in range(K):
    share = pca.explained_variance_ratio_[i]
    print(f"{i + 1:>9} {share:>9.1%} {angles[i]:>11.1e} {bounds[i]:>12.1e}")
print(f"{(angles <= bounds).sum()} of {K} angles are below their bounds")

# %%
# Blue and red pixels have opposite signs: moving along a component makes the red ones brighter and the blue
# ones darker. The sign of a component as a whole has no meaning.
figure = plt.figure(figsize=(9, 3.4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1.35, 1])
left.suptitle("components, with their shares of the variance", fontsize=10)
for i, axes in enumerate(left.subplots(2, 4).flat):
    largest = np.abs(pca.components_[i]).max()
    picture = pca.components_[i].reshape(side, side)
    axes.imshow(picture, cmap="RdBu_r", vmin=-largest, vmax=largest)
    axes.set_title(f"{i + 1}: {pca.explained_variance_ratio_[i]:.1%}", fontsize=9)
    axes.set_axis_off()
axes, numbers = right.subplots(), np.arange(1, K + 1)
axes.vlines(numbers, angles, bounds, color="0.8", lw=3)
axes.plot(numbers, bounds, "v", color="#D55E00", label="certified bound")
axes.plot(numbers, angles, "o", color="#0072B2", label="true angle")
axes.set(yscale="log", xlabel="component", ylabel="angle to the exact component (rad)")
axes.set(xticks=numbers, ylim=(None, bounds.max() * 20))
axes.legend(frameon=False, loc="upper left", ncols=2, fontsize=9, columnspacing=1)
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("digits.png", dpi=120)

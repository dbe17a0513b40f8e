"""Topics of texts: components of a sparse TF-IDF matrix, described by their words.

Each text becomes a row with a weight for each word: how often the word occurs, relative to the number of
texts that contain it (TF-IDF). Most weights are 0, so the matrix is sparse. The fit takes it as it is. The
words with the largest loadings describe a component, and the scores place the texts.

The texts are on every machine that runs this program: the docstrings of the functions and classes of SciPy.
The module from which a text comes is not used in the fit. It is used afterwards, to see whether components
correspond to modules.
"""

# %%
import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from eigengame import EigenGamePCA
from eigengame.metrics import angular_error, true_components

MODULES = ["fft", "interpolate", "linalg", "ndimage", "optimize", "signal", "spatial.distance"]
MODULES += ["special", "stats"]
texts, module = [], []
for name in MODULES:
    content = importlib.import_module(f"scipy.{name}")
    for attribute in content.__all__:
        text = inspect.getdoc(getattr(content, attribute)) or ""
        if len(text) > 500:
            texts.append(text.split("Examples\n")[0])
            module.append(name)
module = np.array(module)

# %%
# Words that occur in few texts, or in many, say little about topics.
vectorizer = TfidfVectorizer(
    stop_words="english", token_pattern=r"[a-zA-Z]{4,}", min_df=8, max_df=0.25
)
weights = vectorizer.fit_transform(texts)
words = vectorizer.get_feature_names_out()
print(f"data: {len(texts)} docstrings of SciPy, {len(words)} words")
print(f"{weights.nnz / np.prod(weights.shape):.1%} of the weights are not 0")

# %%
# A sparse matrix is given to `fit` as it is. The exact components, for comparison, need a dense copy.
K = 6
pca = EigenGamePCA(K, random_state=0).fit(weights)
dense = weights.toarray()
_, exact = true_components(dense - dense.mean(axis=0), K)
angles = angular_error(pca.components_, exact)
print(pca.outcome_)
below = (angles <= pca.certificate_.angle).sum()
print(
    f"largest bound: {pca.certificate_.angle.max():.0e} rad; {below} of {K} angles are below theirs"
)

# %%
# The sign of a component has no meaning, but its two ends have: they are words that do not go together.
top = []
for i, component in enumerate(pca.components_):
    order = np.argsort(component)
    top.append(np.r_[order[-5:][::-1], order[:3]])
    print(f"{i + 1}: {' '.join(words[top[i][:5]])}   |   {' '.join(words[top[i][5:]])}")

# %%
# Mean scores of each module: a column with one dark cell is a topic of one module.
scores = pca.transform(weights)
means = np.stack([scores[module == name].mean(axis=0) for name in MODULES])

# %%
# Left: words with the largest positive and negative loadings. Right: mean scores of the modules, in standard
# deviations.
figure = plt.figure(figsize=(10, 4.8), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[2.1, 1])
for i, axes in enumerate(left.subplots(2, 3).flat):
    loadings = pca.components_[i, top[i]]
    axes.barh(words[top[i]], loadings, color=np.where(loadings > 0, "#D55E00", "#0072B2"))
    axes.invert_yaxis()
    axes.axvline(0, color="0.3", lw=0.8)
    axes.set_title(f"component {i + 1} ({pca.explained_variance_ratio_[i]:.1%})", fontsize=10)
    axes.set_xlabel("loading" if i > 2 else "")
    axes.tick_params(axis="y", length=0, labelsize=9)
    axes.spines[["top", "right", "left"]].set_visible(False)
axes = right.subplots()
relative = means / scores.std(axis=0)
largest = np.abs(relative).max()
picture = axes.imshow(relative, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto")
axes.set(xticks=range(K), xticklabels=range(1, K + 1), xlabel="component")
axes.set_yticks(range(len(MODULES)), MODULES)
axes.spines[:].set_visible(False)
right.colorbar(picture, ax=axes, label="mean score", location="bottom")
figure.savefig("topics.png", dpi=100)

"""A fitted model as `sklearn.decomposition.PCA`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sklearn.decomposition import PCA


def to_sklearn(estimator: Any) -> PCA:
    """Return a fitted `sklearn.decomposition.PCA` with the components of a fitted estimator.

    Raises ValueError if its whitening would give other scores: scikit-learn does not divide by deviations below the
    rounding error of the dtype.
    """
    from sklearn.decomposition import PCA  # it takes a tenth of a second to import

    deviations = np.sqrt(estimator.explained_variance_)
    least = np.finfo(deviations.dtype).eps
    if estimator.whiten and (deviations < least).any():
        raise ValueError(
            f"component {int((deviations < least).argmax()) + 1} has a standard deviation below {least:.1g}, by "
            "which scikit-learn does not divide: call set_params(whiten=False) first, or fit fewer components or "
            "data of a larger scale."
        )
    pca = PCA(n_components=estimator.n_components_, whiten=bool(estimator.whiten))
    for name in (
        "components_",
        "explained_variance_",
        "explained_variance_ratio_",
        "singular_values_",
        "mean_",
    ):
        setattr(pca, name, np.array(getattr(estimator, name)))
    pca.noise_variance_ = float(estimator.noise_variance_)
    pca.n_components_ = int(estimator.n_components_)
    pca.n_samples_ = int(estimator.n_samples_seen_)
    pca.n_features_in_ = int(estimator.n_features_in_)
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        pca.feature_names_in_ = np.array(names, dtype=object)
    return pca

"""Estimators of results that other functions than `fit` computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eigengame.estimator.fitted import attributes_of
from eigengame.estimator.pca import EigenGamePCA
from eigengame.solver.planning import parameters
from eigengame.solver.results.result import Result
from eigengame.sources import Layers


def estimator_of(
    result: Result, given: Mapping[str, Any], *, source: Mapping[str, Any], layers: Layers
) -> EigenGamePCA:
    """Return an estimator with a result, as if it had been fitted.

    Parameters
    ----------
    result : Result
    given : mapping
        Parameters of the estimator.
    source : mapping
        Fingerprint of the data.
    layers : Layers
    """
    estimator = EigenGamePCA(**given)
    about = {
        "n_features_in_": result.components.shape[1],
        "layers_": layers,
        "_source": source,
        "_began": parameters.accumulated(estimator.get_params(deep=False)),
    }
    for name, value in (attributes_of(result) | about).items():
        setattr(estimator, name, value)
    return estimator

"""The warning about components that a fit could not certify."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from eigengame.solver.certificates.certificate_text import ranks, shortfall
from eigengame.solver.results.outcome import Status

if TYPE_CHECKING:
    from eigengame.estimator.fitted import FittedPCA

NULL = 1e-12
"""Share of the largest variance up to which a component counts as one without variance: nothing determines it."""


class UncertifiedWarning(ConvergenceWarning):
    """Some components of a fit are not certified within its tolerance."""


def uncertified(model: FittedPCA) -> np.ndarray:
    """Return the components, numbered from 0, that are not certified within the tolerance of the fit.

    Components without variance are left out, because no exact component exists. After a fit with ``tol=None`` there
    are none.
    """
    if model.tol_ is None:
        return np.zeros(0, int)
    variance = model.explained_variance_
    determined = variance > NULL * variance.max(initial=0)
    return np.flatnonzero(determined & model.certificate_.open_components(model.tol_))


def uncertified_message(model: FittedPCA) -> str | None:
    """Return which components are not certified within the tolerance of a fit, and the remedy; None if all are."""
    which, outcome = uncertified(model), model.outcome_
    # A watcher that ended the run knows that the components are not final.
    if not len(which) or outcome.status is Status.STOPPED:
        return None
    verb = "is" if len(which) == 1 else "are"
    remedy = model.certificate_.advice or outcome.advice
    return (
        f"{ranks(which)} of {len(model.components_)} {verb} not certified within {model.tol_:g} rad "
        f"({shortfall(model.certificate_, which)}): {outcome}. {remedy}"
    )


def warn_uncertified(model: FittedPCA) -> None:
    """Warn about components that are not certified within the tolerance of a fit: one warning for all of them."""
    message = uncertified_message(model)
    if message is not None:
        message = f"{message} tol=None turns this warning off."
        warnings.warn(
            message, UncertifiedWarning, stacklevel=4
        )  # the call of `fit`, which is wrapped

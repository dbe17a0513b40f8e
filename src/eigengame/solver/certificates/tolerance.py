"""The tolerance by which the components of a fitted model are judged."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

DEFAULT_TOL = 0.05
"""Angle in radians that counts as accurate if no tolerance was requested."""


class Tolerance(NamedTuple):
    """An angle, and whether it was requested.

    Attributes
    ----------
    angle : float
        In radians.
    requested : bool
        Whether it is the `tol` of the fit, or the default.
    """

    angle: float
    requested: bool

    def sentence(self) -> str:
        """Return which tolerance is used."""
        if self.requested:
            return f"Components are judged by the tol of the fit, {self.angle:g} rad."
        return f"No tol was requested: components are judged by {self.angle:g} rad."


def judged_tolerance(model: Any) -> Tolerance:
    """Return the tolerance of a fitted model: `tol_` if it has one, `tol` if that is a number, else the default."""
    for tol in (getattr(model, "tol_", None), getattr(model, "tol", None)):
        if isinstance(tol, Real):
            return Tolerance(float(tol), True)
    return Tolerance(DEFAULT_TOL, False)

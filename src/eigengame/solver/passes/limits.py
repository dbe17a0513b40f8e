"""Largest number of passes of a fit, and its tolerance."""

from __future__ import annotations

from typing import Literal

AUTO_TOL = 0.05
"""Angle in radians that ``tol="auto"`` stands for."""

AUTO_PASSES = 16
"""Largest number of passes of a fit with ``tol="auto"``: see the table in the documentation."""

MAX_PASSES = 30
"""Largest number of passes of a fit with a number for `tol`, if `passes` is "auto"."""


def limits(
    passes: int | Literal["auto"],
    tol: float | Literal["auto"] | None,
    *,
    again: bool,
    certified: bool,
) -> tuple[int, float | None]:
    """Return the largest number of passes of a fit, and its tolerance in radians.

    Parameters
    ----------
    passes : int or "auto"
    tol : float, "auto" or None
    again : bool
        Whether the data can be read again.
    certified : bool
        Whether the algorithm refines and certifies its components. The others make as many passes as given, and
        have no tolerance.
    """
    if tol is None or not certified:
        return 1 if isinstance(passes, str) else int(passes), None
    most, angle = (AUTO_PASSES, AUTO_TOL) if isinstance(tol, str) else (MAX_PASSES, float(tol))
    most = most if isinstance(passes, str) else int(passes)
    # One pass over a stream is judged by the same angle.
    return most if again else 1, angle

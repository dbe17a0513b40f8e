"""The probability that a certificate does not hold, and how the parts of a fit share it.

A fit may try one route after another, and reports the certificate of one of them. It may fail if a bound of any of
the routes does, so their probabilities add up.
"""

from __future__ import annotations

RISK = 1e-3
"""Probability that a certificate does not hold."""

ROUNDING_RISK = RISK / 100
"""The part of it that is left to rounding errors in float32 which are measured by random vectors: once during
Lanczos' method (`dense_problem`), and once during a refinement (`float32_products`)."""

START_RISK = RISK / 100
"""The part of it that is left to the start of Lanczos' method (`counted_eigenvalues`)."""

EXACT_RISK = RISK / 100
"""The part of it that is left to errors of an exact route in float32 (`float32_scatter`, `inner_products`)."""

PROBES_RISK = RISK - START_RISK - EXACT_RISK - 2 * ROUNDING_RISK
"""The part of it that is left to the probes of a game."""


FIRST_RISK = PROBES_RISK / 4
"""The part of that which is left to the first pass of a fit that may make more: it ends if that pass certifies
everything."""


def share_of_risk(look: int) -> float:
    """Return the risk of one draw of probes: 1/2, 1/6, 1/12, ... of what is left to later passes, all together."""
    return (PROBES_RISK - FIRST_RISK) / (look * (look + 1))

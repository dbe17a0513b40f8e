"""Algorithms as families of a step size, each named once: a family made anew would be compiled anew."""

from __future__ import annotations

from typing import Any

from eigengame.algorithms import Alpha, BestResponse, Remembered


def eigengame(step: Any) -> Alpha:
    """Return plain EigenGame, which follows its gradients unprojected."""
    return Alpha(step, riemannian=False)


def remembered(_: Any) -> Remembered:
    """Return the remembered game, which has no step size."""
    return Remembered()


def best_response(_: Any) -> BestResponse:
    """Return best response, one round an update; it has no step size either."""
    return BestResponse(rounds=1)

"""Whether two models can be merged: same features, same preparation, same options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from eigengame.preparation import Preparation, same_preparation
from eigengame.solver.routes import Options

SHOWN = 5
"""Names that an error message lists."""


def refuse_other_options(one: Options, other: Options) -> None:
    """Raise if two models accumulate different things."""
    for name in ("center", "forget"):
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs:
            raise ValueError(
                f"the models were fitted with {name}={mine} and {name}={theirs}: fit both with the same {name}."
            )


def refuse_other_sizes(one: Sequence[int], other: Sequence[int]) -> None:
    """Raise if players (K, d) of two models have different shapes."""
    if one[1] != other[1]:
        raise ValueError(
            f"the models have {one[1]} and {other[1]} features: fit both on the same columns."
        )
    if tuple(one) != tuple(other):
        raise ValueError(
            f"players have shapes {tuple(one)} and {tuple(other)}: give both the same n_components and extra."
        )


def refuse_other_preparation(one: Preparation | None, other: Preparation | None) -> None:
    """Raise if the data of two models was prepared differently."""
    if not same_preparation(one, other):
        raise ValueError(
            "the two were fitted on data prepared in different ways: prepare one part, and the others "
            "with its statistics, `one.preparation.over(other)`."
        )


def refuse_other_layers(one: Any, other: Any) -> None:
    """Raise if two models of activations have different layers."""
    if one is not None and other is not None and one != other:
        raise ValueError(
            "the models were fitted on different layers, or on layers in another order: pass "
            "layers=pca.layers_ of one model to `activations` for the other."
        )


def feature_order(names: Sequence[Any], others: Sequence[Any]) -> np.ndarray | None:
    """Return the order that brings other features into the order of `names`.

    Parameters
    ----------
    names, others : sequences of d names

    Returns
    -------
    array of shape (d,) or None
        ``others[order[i]]`` is ``names[i]``; None if the names are already in the same order.
    """
    mine, theirs = [str(name) for name in names], [str(name) for name in others]
    if mine == theirs:
        return None
    only_mine, only_theirs = Counter(mine) - Counter(theirs), Counter(theirs) - Counter(mine)
    if only_mine or only_theirs:
        raise ValueError(
            f"the models have different features: only the first has {_some(list(only_mine.elements()))}, "
            f"only the second has {_some(list(only_theirs.elements()))}. Fit both on the same columns."
        )
    twice = [name for name, count in Counter(mine).items() if count > 1]
    if twice:
        raise ValueError(
            f"the models have their features in different orders, and the name {twice[0]!r} occurs more than "
            "once: rename columns so that names are unique, or fit both on columns in the same order."
        )
    place = {name: i for i, name in enumerate(theirs)}
    return np.array([place[name] for name in mine])


def _some(names: Sequence[str]) -> str:
    """Return the first few names as text."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (", ".join(map(repr, names[:SHOWN])) or "none") + more

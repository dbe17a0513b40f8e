"""Merging of two fitted models: checks that they belong together, and the merged stream."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eigengame.preparation import Preparation, same_preparation
from eigengame.solver.planning.options import Options
from eigengame.solver.results.result import Result, result_of
from eigengame.solver.solve import found_in_stream
from eigengame.solver.streams import stream as streams
from eigengame.solver.streams.more_players import with_players
from eigengame.solver.streams.probe_products import with_errors_of
from eigengame.sources._alleles import refuse_other_alleles

SHOWN = 5
"""Number of names that an error message lists."""

KEPT = (
    "n_features_in_",
    "_alleles",
    "_positions",
    "_layer",
    "_began",
    "_preparation",
    "_sklearn_output_config",
)
"""Attributes that a merged estimator has of the first one."""


def merge_results(one: Result, other: Result, order: np.ndarray | None) -> Result:
    """Return the result of both streams together, in the frame of the first, with the larger number of players.

    Parameters
    ----------
    one, other : Result
        Each with a stream.
    order : array of shape (d,) or None
        Order that brings the features of `other` into the order of `one`.
    """
    assert one.stream is not None
    assert other.stream is not None
    dtype = np.promote_types(one.options.dtype, other.options.dtype)
    # Nothing is refined or judged: the rows are not there.
    options = replace(one.options, dtype=dtype, passes=1, tol=None, automatic=False)
    mine, theirs = (
        streams.in_precision(part, options.dtype) for part in (one.stream, other.stream)
    )
    frame = other.frame
    if order is not None:
        theirs, frame = streams.reordered(theirs, order), frame.reordered(order)
    moved = streams.reframed(theirs, frame, one.frame)
    most = max(len(part.state.memory.players) for part in (mine, moved))
    if len(mine.state.memory.players) < most:
        options = replace(options, extra=other.options.extra)
    padded = (with_players(part, most, options.seed) for part in (mine, moved))
    merged = streams.merge(options.game(), *padded)
    # Without centring frames differ by their units only, which are powers of two.
    if moved is not theirs and options.center:
        parts = ((mine, 1.0), (theirs, (frame.unit / one.frame.unit) ** 2))
        merged = with_errors_of(merged, parts)
    return result_of(found_in_stream(merged, options), options, one.frame)


def common_features(one: Any, other: Any) -> tuple[Any, np.ndarray | None]:
    """Return the feature names of two fitted estimators, and the order of the other's features if it differs.

    Raises ValueError if their features are different, and warns if only one has names.
    """
    refuse_other_layers(one.layers_, other.layers_)
    if one._alleles is not None and other._alleles is not None:
        refuse_other_alleles(
            "the second model",
            other.feature_names_in_,
            other._alleles,
            one.feature_names_in_,
            one._alleles,
            "in the first model",
        )
    names = (getattr(model, "feature_names_in_", None) for model in (one, other))
    return merged_names(*names)


def refuse_other_options(one: Options, other: Options) -> None:
    """Raise ValueError if two models accumulate different things."""
    for name in ("center", "forget"):
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs:
            raise ValueError(
                f"the models were fitted with {name}={mine} and {name}={theirs}: fit both with the same {name}."
            )


def refuse_other_sizes(one: Result, other: Result) -> None:
    """Raise ValueError if two streams have different numbers of components or features.

    Those of the models may differ: data of low rank has fewer components.
    """
    assert one.stream is not None
    assert other.stream is not None
    mine, theirs = (
        (part.k, part.state.memory.players.shape[1]) for part in (one.stream, other.stream)
    )
    if mine[1] != theirs[1]:
        raise ValueError(
            f"the models have {mine[1]} and {theirs[1]} features: fit both on the same columns."
        )
    if mine != theirs:
        raise ValueError(
            f"the models have {mine[0]} and {theirs[0]} components: give both the same n_components, as a whole "
            "number (how many a share of the variance or None stands for depends on the rows)."
        )


def refuse_other_preparation(one: Preparation | None, other: Preparation | None) -> None:
    """Raise ValueError if the data of two models was prepared differently."""
    if not same_preparation(one, other):
        raise ValueError(
            "the models were fitted on data prepared in different ways: prepare one part, and the others "
            "with its statistics, `one.preparation.over(other)`."
        )


def refuse_other_layers(one: Any, other: Any) -> None:
    """Raise ValueError if two models of activations have different layers."""
    if one is not None and other is not None and one.side != other.side:
        raise ValueError(
            "one model was fitted on the inputs and one on the outputs of layers: pass the same side= to "
            "`activations` for both."
        )
    if one is not None and other is not None and one != other:
        raise ValueError(
            "the models were fitted on different layers, or on layers in another order: pass "
            "layers=pca.layers_ of one model to `activations` for the other."
        )


def merged_names(
    mine: Sequence[Any] | None, theirs: Sequence[Any] | None
) -> tuple[Any, np.ndarray | None]:
    """Return the feature names of a merged model, and the order of the other features if it differs."""
    if mine is not None and theirs is not None:
        return mine, feature_order(mine, theirs)
    if mine is not None or theirs is not None:
        which = "second" if theirs is None else "first"
        warnings.warn(
            f"the {which} model was fitted without feature names, so the order of features cannot be checked: it "
            "is assumed to be the same in both.",
            UserWarning,
            stacklevel=4,
        )
    return theirs if mine is None else mine, None


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

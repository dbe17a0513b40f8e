"""Routes over streams: batches of uneven lengths, forgetting, and merges of several models.

Models of a stream are played in the data type of the setting, also where a fit of as few rows would use float64.
Models that are merged have the same `random_state`, so they have the same probes, and the products of these add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from benchmarks.hostile_claims import Claim, Route, claim, estimator
from benchmarks.hostile_problems import PARTS, Problem
from eigengame import EigenGamePCA


def even_batches(problem: Problem) -> Iterator[np.ndarray]:
    """Yield the rows in batches of the length of the setting."""
    for begin in range(0, len(problem.rows), problem.setting.batch):
        yield problem.rows[begin : begin + problem.setting.batch]


def ragged_batches(problem: Problem) -> Iterator[np.ndarray]:
    """Yield the rows in the batches of `ragged_ranges`."""
    for own in ragged_ranges(problem):
        yield problem.rows[own]


def ragged_ranges(problem: Problem) -> Iterator[slice]:
    """Yield batches of very different lengths, the first of which may be a single row.

    There are few lengths, because each power of two is compiled once.
    """
    batch = problem.setting.batch
    sizes = [1, batch, 7, batch // 3]
    begin, turn = 0, problem.index
    while begin < len(problem.rows):
        size = sizes[turn % len(sizes)]
        yield slice(begin, begin + size)
        begin, turn = begin + size, turn + 1


def streamed(batches: Iterator[np.ndarray], pca: EigenGamePCA) -> EigenGamePCA:
    """Return an estimator after `partial_fit` with each batch."""
    for batch in batches:
        pca.partial_fit(batch)
    return pca


def by_partial_fit(problem: Problem) -> list[Claim]:
    pca = streamed(even_batches(problem), estimator(problem))
    so_far = claim("plain", pca)
    pca.certify(problem.rows)
    return [so_far, claim("plain", pca)]


def by_ragged_batches(problem: Problem) -> list[Claim]:
    return [claim("plain", streamed(ragged_batches(problem), estimator(problem)))]


def weights_in_a_stream(problem: Problem) -> list[Claim]:
    pca = estimator(problem)
    for own in ragged_ranges(problem):
        if problem.weights[own].any():
            pca.partial_fit(problem.rows[own], sample_weight=problem.weights[own])
    return [claim("weighted", pca)]


def weights_in_a_tree(problem: Problem) -> list[Claim]:
    parts = zip(
        *(np.array_split(one, PARTS) for one in (problem.rows, problem.weights)), strict=True
    )
    fits = [estimator(problem).partial_fit(rows, sample_weight=own) for rows, own in parts]
    return [claim("weighted", in_tree(fits))]


def forgetting_in_a_stream(problem: Problem) -> list[Claim]:
    pca = estimator(problem, forget=problem.forget)
    return [claim("faded", streamed(ragged_batches(problem), pca))]


def by_merge(problem: Problem) -> list[Claim]:
    half = len(problem.rows) // 2
    parts = (problem.rows[:half], problem.rows[half:])
    one, other = (estimator(problem).fit(part) for part in parts)
    pca = one.merge(other)
    merged = claim("plain", pca)
    pca.certify(problem.rows)
    return [merged, claim("plain", pca)]


def models(problem: Problem, count: int, **options: Any) -> list[EigenGamePCA]:
    """Return one model of each of several parts of the rows, in their order."""
    parts = np.array_split(problem.rows, count)
    return [estimator(problem, **options).partial_fit(part) for part in parts]


def in_tree(parts: Sequence[EigenGamePCA]) -> EigenGamePCA:
    """Return the merge of neighbours, then of neighbours of these, until one model is left."""
    while len(parts) > 1:
        parts = [one.merge(other) for one, other in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def in_chain(parts: Sequence[EigenGamePCA]) -> EigenGamePCA:
    """Return the first model merged with the second, then with the third, and so on."""
    return reduce(lambda one, other: one.merge(other), parts)


def by_tree(problem: Problem, count: int) -> list[Claim]:
    return [claim("plain", in_tree(models(problem, count)))]


def by_chain(problem: Problem) -> list[Claim]:
    return [claim("plain", in_chain(models(problem, 8)))]


def forgetting_in_a_tree(problem: Problem) -> list[Claim]:
    parts = models(problem, PARTS, forget=problem.forget)
    return [claim("faded parts", in_tree(parts))]


STREAM_ROUTES: dict[str, Route] = {
    "partial_fit": by_partial_fit,
    "ragged": by_ragged_batches,
    "merge": by_merge,
    "tree4": partial(by_tree, count=4),
    "tree8": partial(by_tree, count=8),
    "chain8": by_chain,
    "weights-stream": weights_in_a_stream,
    "weights-tree4": weights_in_a_tree,
    "forget-stream": forgetting_in_a_stream,
    "forget-tree4": forgetting_in_a_tree,
}

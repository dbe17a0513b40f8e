"""A long stream: constant memory, exact counts and means.

    python -m benchmarks.soak [--rows 1e8] [--features 256] [--mode fit|partial_fit] [--dtype float32]

Rows are whole numbers that are computed from their position, so that the exact sum of each feature is known. `fit`
reads them from a generator of pieces of different lengths, `partial_fit` receives the pieces. Memory is sampled
after each piece; the first tenth of the rows is the time in which programs are compiled and buffers allocated.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import jax
import numpy as np

from benchmarks.machine import circumstances
from benchmarks.memory import MB, status_bytes
from eigengame import EigenGamePCA

PIECES = (4096, 1, 1000, 4097, 777, 2048)
"""Lengths of the pieces, repeated."""

WARM = 0.1
"""Share of the rows before memory is compared."""

MOST_GROWTH = 0.05
"""Largest accepted growth of the memory."""


@dataclass
class Stream:
    """Rows of whole numbers, with the exact sums of what was drawn.

    Attributes
    ----------
    rows, features : int
    drawn, pieces_drawn : int
        Rows and pieces drawn so far.
    sums : array of shape (features,)
        Of the rows drawn so far, as integers.
    early, late : int
        Largest resident memory in bytes before and after the first tenth of the rows.
    """

    rows: int
    features: int
    drawn: int = 0
    pieces_drawn: int = 0
    early: int = 0
    late: int = 0
    sums: np.ndarray = field(init=False)
    _block: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        # A few strong directions, and means that differ between features and from zero.
        strong = rng.integers(-3, 4, (max(PIECES), 12)) @ rng.integers(-2, 3, (12, self.features))
        noise = rng.integers(-4, 5, strong.shape)
        self._block = (strong + noise + np.arange(self.features) % 50).astype(np.int64)
        self._floats = self._block.astype(np.float32)
        self.largest = float(np.abs(self._floats).max()) + 11
        self.sums = np.zeros(self.features, np.int64)

    def pieces(self) -> Iterator[np.ndarray]:
        """Yield the rows; each piece is shifted by another whole number, so that the mean moves all the time."""
        number = 0
        while self.drawn < self.rows:
            size = min(PIECES[number % len(PIECES)], self.rows - self.drawn)
            shift = number % 11 - 3
            self.sums += self._block[:size].sum(axis=0) + size * shift
            self.drawn += size
            number = self.pieces_drawn = number + 1
            yield self._floats[:size] + np.float32(shift)
            self._sample()

    def _sample(self) -> None:
        memory = status_bytes("VmRSS")
        if self.drawn < WARM * self.rows or not self.early:
            self.early = max(self.early, memory)
        else:
            self.late = max(self.late, memory)


@dataclass
class Measured:
    """Result of a soak.

    Attributes
    ----------
    rows, counted : int
        Rows of the stream, and rows that the estimator has counted.
    error, allowed : float
        Largest error of a mean, and what rounding can explain.
    deviation : float
        Mean standard deviation of the features.
    growth : float
        Growth of the memory after the first tenth of the rows.
    early : int
        Memory in bytes in the first tenth.
    compilations : int
    seconds : float
    """

    rows: int
    counted: int
    error: float
    allowed: float
    deviation: float
    growth: float
    early: int
    compilations: int
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether the count is exact, the mean is exact up to rounding, and the memory has not grown."""
        exact = self.counted == self.rows and self.error <= self.allowed
        return exact and self.growth <= MOST_GROWTH

    def __str__(self) -> str:
        return (
            f"{self.rows} rows in {self.seconds:.0f} s ({self.rows / self.seconds:.0f} rows/s), counted "
            f"{self.counted}; largest error of a mean {self.error:.1e}, or "
            f"{self.error / self.deviation:.1e} standard deviations ({self.allowed:.1e} by rounding); memory "
            f"{self.early / MB:.0f} MB in the first tenth of the rows, {self.growth:+.1%} at the most afterwards; "
            f"{self.compilations} compilations; {'passed' if self.passed else 'FAILED'}"
        )


def run(
    rows: int,
    features: int = 256,
    components: int = 8,
    mode: str = "fit",
    dtype: str = "float32",
) -> Measured:
    """Fit a long stream and compare its counts, means and memory."""
    stream, compiled = Stream(rows, features), []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, seconds, **_: compiled.append(name) if "backend_compile" in name else None
    )
    pca = EigenGamePCA(components, dtype=dtype, random_state=0)
    began = time.perf_counter()
    if mode == "fit":
        pca.fit(stream.pieces())
    else:
        for piece in stream.pieces():
            pca.partial_fit(piece)
    seconds = time.perf_counter() - began
    exact = stream.sums / stream.drawn
    # Each batch rounds the mean once, and the errors are as likely up as down.
    steps = stream.pieces_drawn if mode == "partial_fit" else -(-rows // max(PIECES))
    allowed = np.finfo(dtype).eps * stream.largest * np.sqrt(steps)
    return Measured(
        rows=rows,
        counted=pca.n_samples_seen_,
        error=float(np.abs(pca.mean_ - exact).max()),
        allowed=float(allowed),
        deviation=float(np.sqrt(pca.var_).mean()),
        growth=stream.late / stream.early - 1,
        early=stream.early,
        compilations=len(compiled),
        seconds=seconds,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--components", type=int, default=8)
    parser.add_argument("--mode", choices=("fit", "partial_fit"), default="fit")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    given = parser.parse_args()
    facts = circumstances(jax.local_device_count())
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    measured = run(int(given.rows), given.features, given.components, given.mode, given.dtype)
    print(f"{given.mode}, {given.dtype}, {given.features} features: {measured}")
    sys.exit(not measured.passed)


if __name__ == "__main__":
    main()

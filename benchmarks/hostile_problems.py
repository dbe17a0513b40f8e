"""Hostile problems: a family of rows in a setting, with weights and true components.

Shapes come from a few fixed settings, because every new shape is compiled again.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.exact_eigen import SecondTruth, Truth, truth_of
from benchmarks.hostile_families import FAMILIES, Made, Setting, light_rows
from benchmarks.hostile_orders import ORDERED, ORDERS
from benchmarks.quick_truth import QuickTruth, quick_truth_of

FORGET = (1 - 2.0**-7, 1 - 2.0**-4)
"""Forgetting factors of the routes with `forget`, used in turn."""

PARTS = 4
"""Number of streams that are merged after each has forgotten its own rows."""

SETTINGS = {
    one.name: one
    for one in (
        Setting("small64", 400, 24, 4, 100, "float64", "float64"),
        Setting("large32", 7000, 40, 6, 1000, "float32", "float32"),
        Setting("middle64", 1200, 40, 6, 200, "float64", "float64"),
        Setting("mixed", 7000, 40, 6, 1000, "float64", "float32"),
        Setting("small32", 400, 24, 4, 100, "float32", "float32"),
        Setting("large64", 7000, 40, 6, 1000, "float64", "float64"),
        Setting("many32", 7000, 40, 20, 1000, "float32", "float32"),
    )
}


@dataclass(frozen=True)
class Problem:
    """Rows and weights of one draw, and the true components on demand.

    Attributes
    ----------
    family : str
    setting : Setting
    seed, index : int
        Together with the names they determine everything else.
    order : str
        The order of the rows, a name of `ORDERS`.
    """

    family: str
    setting: Setting
    seed: int
    index: int
    order: str = "drawn"

    @property
    def rng(self) -> np.random.Generator:
        """A fresh generator that depends on the problem alone."""
        names = zlib.crc32(f"{self.family} {self.setting.name}".encode())
        return np.random.default_rng([self.seed, self.index, names])

    @property
    def random_state(self) -> int:
        """The seed of the estimators: another one for each problem, so that their probes are independent."""
        return int(self.rng.bit_generator.random_raw() >> 33)

    @property
    def forget(self) -> float:
        """The forgetting factor."""
        return FORGET[self.index // 2 % len(FORGET)]

    @cached_property
    def made(self) -> Made:
        """Rows of shape (n, d) in the data type of the setting, and their description."""
        rng = self.rng
        rows, text = FAMILIES[self.family](rng, self.setting)
        rows = np.ascontiguousarray(rows, dtype=self.setting.data)
        if self.order != "drawn":
            rows = np.ascontiguousarray(rows[ORDERS[self.order](rows, self.setting.batch, rng)])
            text = f"{text}, rows {self.order}"
        return rows, text

    @property
    def rows(self) -> np.ndarray:
        """Rows of shape (n, d)."""
        return self.made[0]

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights of shape (n,): small counts or, for few rows, numbers over six orders of magnitude.

        In the family `light_start` the first rows are light, and all others count once.
        """
        rng = np.random.default_rng([self.seed, self.index])
        n = self.setting.rows
        if self.family == "light_start":
            light, weight = light_rows(self.rng, self.setting)
            return np.where(np.arange(n) < light, weight, 1.0)
        if n <= 2000 and self.index % 4 < 2:
            return 10 ** rng.uniform(-3, 3, n)
        return rng.integers(0, 4, n).astype(np.float64)

    def faded(self, parts: int = 1) -> np.ndarray:
        """Return weights (n,) under forgetting, as Python integers in units of 2 ** -200.

        Rows of several parts, as `numpy.array_split` divides them, do not fade one another.
        """
        numerator, denominator = self.forget.as_integer_ratio()
        lengths = [len(part) for part in np.array_split(np.empty(self.setting.rows), parts)]
        weights = [2**200]
        while len(weights) < max(lengths):
            weights.append(weights[-1] * numerator // denominator)
        return np.array([one for n in lengths for one in weights[:n][::-1]], dtype=object)

    def target(self, name: str) -> tuple[np.ndarray | None, bool]:
        """Return the weights and whether rows are centred, for a target by name.

        The names are "plain", "uncentred", "weighted", "faded" and "faded parts".
        """
        if name == "weighted":
            return self.weights, True
        if name.startswith("faded"):
            return self.faded(PARTS if name == "faded parts" else 1), True
        return None, name != "uncentred"

    def quick_truth(self, name: str) -> QuickTruth | None:
        """Return the components of a target in float64, with a bound on their error; None if there is none."""
        if name not in self._quick_truths:
            weights, center = self.target(name)
            self._quick_truths[name] = quick_truth_of(self.rows, weights, center=center)
        return self._quick_truths[name]

    def truth(self, name: str) -> Truth | None:
        """Return the true components of a target; each is computed once."""
        if name not in self._truths:
            weights, center = self.target(name)
            self._truths[name] = truth_of(self.rows, weights, center=center)
        return self._truths[name]

    def second_truth(self, name: str) -> SecondTruth:
        """Return the second computation for a target, to check a violation."""
        if name not in self._second_truths:
            weights, center = self.target(name)
            first = self.truth(name)
            assert first is not None
            self._second_truths[name] = SecondTruth(self.rows, weights, center, first)
        return self._second_truths[name]

    @cached_property
    def _quick_truths(self) -> dict[str, QuickTruth | None]:
        return {}

    @cached_property
    def _truths(self) -> dict[str, Truth | None]:
        return {}

    @cached_property
    def _second_truths(self) -> dict[str, SecondTruth]:
        return {}


def draw_problems(
    seed: int,
    families: Sequence[str],
    settings: Sequence[str],
    problems: int,
    orders: Sequence[str] = tuple(ORDERS),
) -> list[Problem]:
    """Return `problems` problems of each family, over the settings in turn, in orders drawn at random."""
    found = []
    for family in families:
        rng = np.random.default_rng([seed, zlib.crc32(family.encode())])
        usable = ["drawn"] if family in ORDERED and "drawn" in orders else orders
        for index, place in enumerate(rng.integers(len(usable), size=problems)):
            setting = SETTINGS[settings[index % len(settings)]]
            found.append(Problem(family, setting, seed, index, usable[place]))
    return found

"""Hostile problems: a family of rows in a setting, with weights and true components.

Shapes come from a few fixed settings, because every new shape is compiled again.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.exact_eigen import SecondTruth, Truth, truth_of
from benchmarks.hostile_families import FAMILIES, Made, Setting

FORGET = 1 - 2.0**-7
"""The forgetting factor of the routes with `forget`."""

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
    """

    family: str
    setting: Setting
    seed: int
    index: int

    @property
    def rng(self) -> np.random.Generator:
        """A fresh generator that depends on the problem alone."""
        names = zlib.crc32(f"{self.family} {self.setting.name}".encode())
        return np.random.default_rng([self.seed, self.index, names])

    @cached_property
    def made(self) -> Made:
        """Rows of shape (n, d) in the data type of the setting, and their description."""
        rows, text = FAMILIES[self.family](self.rng, self.setting)
        return np.ascontiguousarray(rows, dtype=self.setting.data), text

    @property
    def rows(self) -> np.ndarray:
        """Rows of shape (n, d)."""
        return self.made[0]

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights of shape (n,): small counts or, for few rows, numbers over six orders of magnitude."""
        rng = np.random.default_rng([self.seed, self.index])
        n = self.setting.rows
        if n <= 2000 and self.index % 4 < 2:
            return 10 ** rng.uniform(-3, 3, n)
        return rng.integers(0, 4, n).astype(np.float64)

    @cached_property
    def faded(self) -> np.ndarray:
        """Weights of shape (n,) under forgetting, as Python integers in units of 2 ** -200."""
        numerator, denominator = float(FORGET).as_integer_ratio()
        weights = [2**200]
        while len(weights) < self.setting.rows:
            weights.append(weights[-1] * numerator // denominator)
        return np.array(weights[::-1], dtype=object)

    def target(self, name: str) -> tuple[np.ndarray | None, bool]:
        """Return the weights and whether rows are centred, for a target by name."""
        weights = {"weighted": "weights", "faded": "faded"}.get(name)
        return None if weights is None else getattr(self, weights), name != "uncentred"

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
    def _truths(self) -> dict[str, Truth | None]:
        return {}

    @cached_property
    def _second_truths(self) -> dict[str, SecondTruth]:
        return {}


def draw_problems(
    seed: int, families: list[str], settings: list[str], problems: int
) -> list[Problem]:
    """Return `problems` problems of each family, over the settings in turn."""
    return [
        Problem(family, SETTINGS[settings[index % len(settings)]], seed, index)
        for family in families
        for index in range(problems)
    ]

"""Families of rows on which bounds on angles are likely to fail.

A family is a function of a random generator and a `Setting` that returns rows (float64) and a description. The
rows are then rounded to the data type of the setting. The true components are those of the rounded rows, so a
family need not have its spectrum exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Setting:
    """The shape of a problem, and the data types of its rows and of the fit.

    Attributes
    ----------
    name : str
    rows, columns, k, batch : int
    data, play : {"float32", "float64"}
        The data type of the rows, and the `dtype` of the estimator. Fits of up to 262,144 numbers are always
        computed in float64.
    """

    name: str
    rows: int
    columns: int
    k: int
    batch: int
    data: str
    play: str

    @property
    def single(self) -> bool:
        """Whether numbers must stay within the range of float32."""
        return "float32" in (self.data, self.play)


Made = tuple[np.ndarray, str]
Family = Callable[[np.random.Generator, Setting], Made]


def with_spectrum(rng: np.random.Generator, setting: Setting, values: np.ndarray) -> np.ndarray:
    """Return rows (n, d) of mean zero whose covariance has this spectrum, up to rounding."""
    n, d = setting.rows, setting.columns
    draws = rng.standard_normal((n, d))
    left = np.linalg.qr(draws - draws.mean(axis=0))[0]
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return (left * np.sqrt(n * np.asarray(values))) @ basis.T


def harmonic(rng: np.random.Generator, s: Setting) -> Made:
    return with_spectrum(rng, s, 1 / np.arange(1, s.columns + 1)), "values 1 / i"


def exponential(rng: np.random.Generator, s: Setting) -> Made:
    low = rng.uniform(-8, -2)
    return with_spectrum(rng, s, np.logspace(0, low, s.columns)), f"values from 1 to 1e{low:.1f}"


def flat(rng: np.random.Generator, s: Setting) -> Made:
    lift = rng.uniform(0, 0.5)
    scales = np.where(np.arange(s.columns) < s.k, 1 + lift, 1)
    return rng.standard_normal(
        (s.rows, s.columns)
    ) * scales, f"noise, k columns lifted by {lift:.2f}"


def near_tied(rng: np.random.Generator, s: Setting) -> Made:
    first, gap = int(rng.integers(0, s.k)), 10 ** rng.uniform(-9, -2)
    values = _tail(rng, s)
    values[first + 1] = values[first] * (1 - gap)
    return with_spectrum(rng, s, values), f"values {first} and {first + 1} within {gap:.1e}"


def cluster(rng: np.random.Generator, s: Setting) -> Made:
    size = int(rng.integers(3, 7))
    first = int(rng.integers(0, max(s.k - size, 0) + 1))
    return _clustered(rng, s, first, size)


def k_inside_cluster(rng: np.random.Generator, s: Setting) -> Made:
    size = int(rng.integers(3, 7))
    first = int(rng.integers(max(s.k - size + 1, 0), s.k))
    return _clustered(rng, s, first, size)


def dominant(rng: np.random.Generator, s: Setting) -> Made:
    ratio, values = 10 ** rng.uniform(4, 10), _tail(rng, s)
    values[1:] /= ratio
    return with_spectrum(rng, s, values), f"the first value {ratio:.1e} times the next"


def one_hot(rng: np.random.Generator, s: Setting) -> Made:
    chances = 1 / np.arange(1, s.columns + 1) ** rng.choice([0.0, 0.5, 1.0, 2.0])
    places = rng.choice(s.columns, s.rows, p=chances / chances.sum())
    return np.eye(s.columns)[places], "one entry of 1 in each row"


def rank_deficient(rng: np.random.Generator, s: Setting) -> Made:
    rank = int(rng.integers(1, s.k + 3))
    if rng.random() < 0.5:  # small integers: exactly of this rank
        factors = rng.integers(-9, 10, (s.rows, rank)), rng.integers(-9, 10, (rank, s.columns))
        return (factors[0] @ factors[1]).astype(float), f"rank {rank}, exactly"
    values = np.where(np.arange(s.columns) < rank, 0.7 ** np.arange(s.columns), 0)
    return with_spectrum(rng, s, values), f"rank {rank}, up to rounding"


def duplicated_rows(rng: np.random.Generator, s: Setting) -> Made:
    distinct = int(rng.integers(s.k + 1, s.columns + 20))
    rows = rng.standard_normal((distinct, s.columns)) * 0.8 ** np.arange(s.columns)
    return rows[rng.integers(0, distinct, s.rows)], f"{distinct} distinct rows"


def duplicated_columns(rng: np.random.Generator, s: Setting) -> Made:
    rows = harmonic(rng, s)[0]
    half = s.columns // 2
    rows[:, half : 2 * half] = rows[:, :half]
    return rows, "every column twice"


def large_mean(rng: np.random.Generator, s: Setting) -> Made:
    # Beyond 1e6 standard deviations, rows in float32 have no significant digits.
    far = 10 ** rng.uniform(1, 6 if s.data == "float32" else 9)
    rows = near_tied(rng, s)[0] if rng.random() < 0.5 else harmonic(rng, s)[0]
    direction = rng.standard_normal(s.columns) if rng.random() < 0.5 else np.ones(s.columns)
    return rows + far * direction * rows.std(), f"mean of {far:.1e} standard deviations"


def heavy_tails(rng: np.random.Generator, s: Setting) -> Made:
    freedom = rng.uniform(1, 3)
    rows = rng.standard_t(freedom, (s.rows, s.columns)) * 0.8 ** np.arange(s.columns)
    return np.clip(rows, -1e8, 1e8), f"Student t with {freedom:.1f} degrees of freedom"


def sorted_rows(rng: np.random.Generator, s: Setting) -> Made:
    rows = with_spectrum(rng, s, _tail(rng, s))
    column = int(rng.integers(0, s.columns))
    return rows[np.argsort(rows[:, column])], f"rows sorted by column {column}"


def last_row(rng: np.random.Generator, s: Setting) -> Made:
    return _appears_late(rng, s, 1)


def last_batch(rng: np.random.Generator, s: Setting) -> Made:
    return _appears_late(rng, s, s.batch)


def first_batch(rng: np.random.Generator, s: Setting) -> Made:
    rows, text = _appears_late(rng, s, s.batch)
    return rows[::-1], text.replace("last", "first")


def growing(rng: np.random.Generator, s: Setting) -> Made:
    # Within the range of squares in float32.
    decades = rng.uniform(1, 12 if s.single else 60) * rng.choice([-1, 1])
    rows = with_spectrum(rng, s, _tail(rng, s))
    sizes = 10 ** (decades * (np.arange(s.rows) / s.rows - 0.5))
    return rows * sizes[:, None], f"rows that grow by 1e{decades:.1f} on the way"


def moving_mean(rng: np.random.Generator, s: Setting) -> Made:
    far = 10 ** rng.uniform(0, 5 if s.single else 8)
    rows = with_spectrum(rng, s, _tail(rng, s))
    change = int(rng.choice([1, s.batch, s.rows // 2, s.rows - s.batch]))
    direction = rng.standard_normal(s.columns) * far * rows.std()
    rows[slice(change) if rng.random() < 0.5 else slice(change, None)] += direction
    return rows, f"the mean moves by {far:.1e} standard deviations after {change} rows"


def light_start(rng: np.random.Generator, s: Setting) -> Made:
    light, weight = light_rows(rng, s)
    rows = with_spectrum(rng, s, _tail(rng, s))
    spread = rows.std()
    for begin in range(light, s.rows, s.batch):
        own = slice(begin, begin + s.batch)
        direction = rng.standard_normal(s.columns) * spread
        rows[own] = rows[own] * 10 ** rng.uniform(-1.5, 1.5) + direction * 10 ** rng.uniform(-1, 1)
    # With their weight they count for anything from nothing to more than all others.
    size = 10 ** rng.uniform(-2, 1) / np.sqrt(weight)
    far = 10 ** rng.uniform(-1, 1) * size
    rows[:light] = rows[:light] * size + far * spread * rng.standard_normal(s.columns)
    text = f"{light} rows of weight {weight:.1e} and size {size:.1e} at {far:.1e} before the others"
    return rows, f"{text}, whose scale and mean change with each batch"


def light_rows(rng: np.random.Generator, s: Setting) -> tuple[int, float]:
    """Return the number of rows with which `light_start` begins, and their weight: its first draws."""
    power = int(rng.choice([10, 30, 40, 46] if s.single else [10, 40, 80, 90]))
    return int(rng.choice([1, 7, s.batch, s.batch])), 2.0**-power


def near_underflow(rng: np.random.Generator, s: Setting) -> Made:
    # The squares of most numbers are too small for float32, but together they outweigh the others.
    few = max(s.rows // 300, 2)
    large = np.sqrt(float(np.finfo(np.float32).tiny)) * rng.uniform(3, 6)
    small = large * rng.uniform(1, 2) * np.sqrt(few / s.rows)
    rows = np.zeros((s.rows, s.columns))
    rows[:few, 2:4] = large, large / 2
    rows[few:, :2] = small, small / 2
    # The first row alone does not show the size of the others.
    rows = np.roll(rows, 1, axis=0) * rng.choice([-1, 1], rows.shape)
    return rows, f"{few} rows of {large:.1e}, all others of {small:.1e}"


def scales(rng: np.random.Generator, s: Setting) -> Made:
    power = rng.uniform(-21, 17) if s.single else rng.uniform(-100, 100)
    return with_spectrum(rng, s, _tail(rng, s)) * 10**power, f"rows times 1e{power:.1f}"


def ties(rng: np.random.Generator, s: Setting) -> Made:
    roots = np.array([3, 3, 3, 2, 1, 1] if rng.random() < 0.5 else [5, 4, 4, 3, 2, 2], float)
    entries = np.concatenate([roots, 0.5 ** np.arange(1, s.columns - 5)])
    block = np.vstack([np.diag(entries), -np.diag(entries)])
    repeats = s.rows // len(block)
    rows = np.zeros((s.rows, s.columns))
    rows[: repeats * len(block)] = np.vstack([block] * repeats)
    return rows, f"exactly tied values {roots**2}"


def scaled_columns(rng: np.random.Generator, s: Setting) -> Made:
    powers = rng.uniform(-4, 4, s.columns)
    rows = rng.standard_normal((s.rows, s.columns)) + rng.standard_normal((s.rows, 1))
    return rows * 10**powers, "columns in units of 1e-4 to 1e4"


def counts(rng: np.random.Generator, s: Setting) -> Made:
    gap = 10 ** rng.uniform(-7, -3)
    rates = rng.gamma(0.5, 1, s.columns) + 0.05
    rows = np.repeat(rng.poisson(rates, (s.rows // 4, s.columns)), 4, axis=0).astype(float)
    # Two columns of the same variance without correlation: a close pair above a tail of sparse counts.
    a, b = rng.poisson(3, (2, s.rows // 4))
    rows[:, 0] = np.stack([a, b, -a, -b], axis=1).ravel()
    rows[:, 1] = np.stack([b, -a, -b, a], axis=1).ravel() * (1 - gap)
    return rng.permutation(rows), f"counts with a pair of columns within {gap:.1e}"


def _tail(rng: np.random.Generator, s: Setting) -> np.ndarray:
    """Return separated leading values, then a tail that falls or is flat, shape (d,)."""
    lead = 0.75 ** np.arange(s.k + 1)
    rest = s.columns - s.k - 1
    low = lead[-1] * rng.uniform(0.2, 0.9)
    falling = low * (0.9 ** np.arange(rest) if rng.random() < 0.5 else np.ones(rest))
    return np.concatenate([lead, falling])


def _clustered(rng: np.random.Generator, s: Setting, first: int, size: int) -> Made:
    """Return rows with `size` values from index `first` on within a small width, or equal."""
    width = 0.0 if rng.random() < 0.25 else 10 ** rng.uniform(-9, -4)
    values = 0.8 ** np.arange(s.columns)
    spread = np.sort(rng.random(size))[::-1]
    values[first : first + size] = values[first] * (1 - width * (spread[0] - spread))
    values[first + size :] *= values[first] / values[first + size - 1]
    values[first + size :] = np.minimum(values[first + size :], 0.8 * values[first])
    return with_spectrum(rng, s, values), f"{size} values from {first} on within {width:.1e}"


def _appears_late(rng: np.random.Generator, s: Setting, late: int) -> Made:
    """Return rows with a direction that only the last `late` rows have."""
    rows = with_spectrum(rng, s, _tail(rng, s))
    direction = np.linalg.qr(rng.standard_normal((s.columns, 1)))[0][:, 0]
    rows -= np.outer(rows @ direction, direction)
    share = rng.uniform(0.1, 3)
    rows[-late:] += np.outer(
        rng.standard_normal(late) if late > 1 else np.ones(1), direction
    ) * np.sqrt(share * s.rows / late)
    return rows, f"a direction of variance {share:.2f} in the last {late} rows"


FAMILIES: dict[str, Family] = {
    one.__name__: one
    for one in (
        harmonic,
        exponential,
        flat,
        near_tied,
        cluster,
        k_inside_cluster,
        dominant,
        one_hot,
        rank_deficient,
        duplicated_rows,
        duplicated_columns,
        large_mean,
        heavy_tails,
        sorted_rows,
        last_row,
        last_batch,
        first_batch,
        growing,
        moving_mean,
        light_start,
        near_underflow,
        scales,
        ties,
        scaled_columns,
        counts,
    )
}

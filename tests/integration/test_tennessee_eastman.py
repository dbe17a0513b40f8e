"""The benchmark of the Tennessee Eastman process: its scores, and its methods on data with a known fault."""

import numpy as np
import pytest
from benchmarks import tennessee_eastman as te

RNG = np.random.default_rng(0)
D = 52
AXES = np.linalg.qr(RNG.standard_normal((D, D)))[0]


def rows(n):
    return RNG.standard_normal((n, D)) * np.r_[np.linspace(6, 2, 5), np.full(D - 5, 0.5)] @ AXES.T


def test_a_score_counts_alarms_before_and_after_the_onset():
    alarms = np.zeros((2, 960), bool)
    alarms[0, [3, 10]] = alarms[1, 10] = True
    alarms[0, [165, 166]] = True  # not three in a row
    alarms[1, 200:210] = True
    assert te.score(alarms) == te.Score(12 / 800, 2 / 160, 40)
    assert te.score(np.zeros((2, 960), bool)) == te.Score(0, 0, None)


def test_methods_agree_on_a_constant_process_and_differ_on_a_slow_fault():
    watches = te.methods(rows(500), rows(960), 5)
    run = rows(960)
    run[te.ONSET :] += np.linspace(0, 12, 800)[:, None] * AXES[:, 10]
    alarms = {name: watch(run) for name, watch in watches.items()}
    np.testing.assert_array_equal(alarms["static"], alarms["scikit-learn"])
    scores = {name: te.score(one) for name, one in alarms.items()}
    assert scores["static"].detected > 0.7
    assert scores["adaptive"].detected < 0.5 * scores["static"].detected
    assert scores["static"].false < 0.08


@pytest.mark.parametrize("fault", [3, 6, 14])
def test_the_table_has_the_scores_of_the_real_faults(fault):
    data = te.folder()
    if data is None:
        pytest.skip("the data is part of bibmon, which is not installed")
    normal, reference = te.run(data, "d00"), te.run(data, "d00_te")
    assert normal.shape == (500, D)
    run = te.run(data, f"d{fault:02d}_te")
    watches = te.methods(normal, reference, 17)
    line = next(one for one in te.OUT.read_text().splitlines() if one.startswith(f"| {fault} |"))
    cells = [one.strip() for one in line.split("|")[2:-1]]
    for i, name in enumerate(watches):
        found = te.score(watches[name](run))
        # One of 800 rows may be at a limit.
        assert found.detected == pytest.approx(float(cells[3 * i]), abs=0.003)
        assert str("never" if found.delay is None else found.delay) == cells[3 * i + 2]

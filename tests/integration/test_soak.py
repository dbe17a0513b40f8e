"""A long stream: counts, means and memory. EIGENGAME_SOAK_ROWS sets its length; 1e8 is the full one."""

import os

import pytest
from benchmarks import soak

ROWS = int(float(os.environ.get("EIGENGAME_SOAK_ROWS", "2e6")))

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/status"),
    reason="memory is read from /proc, which only Linux has",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "dtype"), [("fit", "float32"), ("fit", "float64"), ("partial_fit", "float32")]
)
def test_a_long_stream_has_exact_counts_and_means_and_constant_memory(mode, dtype, capsys):
    measured = soak.run(ROWS, mode=mode, dtype=dtype)
    with capsys.disabled():
        print(f"\n{mode}, {dtype}: {measured}")
    assert measured.counted == ROWS
    assert measured.error <= measured.allowed
    assert measured.growth <= soak.MOST_GROWTH


@pytest.mark.parametrize("mode", ["fit", "partial_fit"])
def test_a_short_stream_is_counted_and_its_mean_is_exact(mode):
    # The memory of so few rows is that of compilation.
    measured = soak.run(30_000, features=12, components=3, mode=mode)
    assert measured.counted == 30_000
    assert measured.error <= measured.allowed

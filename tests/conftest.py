"""Settings of JAX for all tests: strict ranks, float64 available, and little time for compilation.

Most of the time of the tests is compilation of small programs. So programs are compiled without expensive
optimisations, unless ``EIGENGAME_OPTIMIZE=1`` (as in `make test-slow`), and cached in a folder that all workers and
the next run share. Processes that tests start inherit both settings.
"""

import os
import signal
from importlib.metadata import version
from pathlib import Path

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell ignores Ctrl-C in the background, and so would all programs that tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
CACHE = Path(__file__).parents[1] / ".cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
# Threads of BLAS that wait for each other take all time of the cores that the workers share.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
flags = os.environ.get("XLA_FLAGS", "")
if os.environ.get("EIGENGAME_OPTIMIZE") != "1" and "optimization_level" not in flags:
    flags += " --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    # Each process has one core for itself: no threads for code generation.
    flags += " --xla_cpu_parallel_codegen_split_count=1"
    if tuple(map(int, version("jax").split(".")[:2])) < (0, 11):
        # The older way to generate code takes a third of the time. JAX 0.11 does not have it.
        flags += " --xla_cpu_use_fusion_emitters=false"
os.environ["XLA_FLAGS"] = flags

import jax  # noqa: E402
import pytest  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param

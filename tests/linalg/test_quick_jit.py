"""Programs are compiled with options of their backend, unless XLA_FLAGS say otherwise."""

import os
import subprocess
import sys

import jax.numpy as jnp
import pytest

from eigengame.linalg import quick_jit as module
from eigengame.linalg.quick_jit import ON_CPU, ON_GPU, quick_jit

FIT = """
import numpy as np
from eigengame import EigenGamePCA
rows = np.random.default_rng(0).standard_normal((200, 30)) / np.arange(1, 31)
pca = EigenGamePCA(3, algorithm="remembered", random_state=0).fit(rows.astype("float32"))
print(pca.outcome_.converged, pca.certificate_.angle.max() < 0.05)
"""


@pytest.mark.parametrize(
    ("backend", "flags", "expected"),
    [
        ("cpu", "", ON_CPU),
        ("cpu", "--xla_backend_optimization_level=3", None),
        ("gpu", "", ON_GPU),
        ("gpu", "--xla_backend_optimization_level=3", ON_GPU),
        ("tpu", "", None),
    ],
)
def test_options_are_those_of_the_backend(monkeypatch, backend, flags, expected):
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert module._compiler_options(backend) == expected


def test_arguments_are_those_of_jit():
    power = quick_jit(lambda values, exponent: values**exponent, static_argnums=1)
    assert power(jnp.float32(3), 2) == 9
    assert power.lower(jnp.float32(3), 2).compile()(jnp.float32(3)) == 9


def test_this_version_of_jax_has_the_options():
    """Other tests are compiled with XLA_FLAGS, and so without these options."""
    environment = os.environ | {"XLA_FLAGS": "", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    done = subprocess.run(
        [sys.executable, "-c", FIT], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout.split() == ["True", "True"], done.stderr[-2000:]

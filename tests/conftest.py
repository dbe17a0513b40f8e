"""JAX as strict as it goes: float64 where meant, no silent broadcasting between ranks."""

import jax
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param

import jax
import jax.numpy as jnp
import numpy as np

from eigengame.linalg.orthonormal import whiten


def test_many_singular_overlaps_are_whitened_at_once():
    """Vmapped, a min over a factor of NaN may lose the NaN, and with it that there is no factor."""
    overlaps = jnp.ones((300, 16, 16), jnp.float32)
    basis, empty = jax.jit(jax.vmap(whiten))(overlaps)
    assert np.isfinite(basis).all()
    assert (np.asarray(empty).sum(axis=1) == 15).all()

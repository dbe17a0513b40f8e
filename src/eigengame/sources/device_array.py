"""Arrays that are on a device with memory of its own: JAX arrays and torch tensors on a GPU. They stay there."""

from __future__ import annotations

import copy
import hashlib
from functools import partial
from typing import Any

import jax
import numpy as np

from eigengame.sources._base import RandomAccess
from eigengame.sources._digest import digest_of_array
from eigengame.sources.arrays import check_two_axes

KINDS = ("float32", "bfloat16", "float16")
"""Dtypes of rows that stay on the device. Others are converted on the host."""


class DeviceArray(RandomAccess):
    """Rows of a two-dimensional array on a device. Blocks are slices on the same device.

    Parameters
    ----------
    data : JAX array of shape (n, d)
    name : str
    """

    on_device = True
    views = True
    slow = False
    _in_float64 = False
    _few: jax.Array | None = None

    def __init__(self, data: jax.Array, name: str = "array") -> None:
        check_two_axes(name, data.shape)
        self.data, self.name = data, name
        self.shape = (data.shape[0], data.shape[1])
        self.dtype = np.dtype(data.dtype)

    def read(self, begin: int, end: int) -> jax.Array:
        """Return rows `begin` to `end`, on the device: the array itself if these are all."""
        if not self._in_float64 and (begin, end) == (0, len(self.data)):
            return self.data
        if not self._in_float64:
            return _rows(self.data, begin, end - begin, False)
        with jax.enable_x64(True):
            return _rows(self.data, begin, end - begin, True)

    def in_float64(self) -> DeviceArray:
        """Return a source that converts rows to float64 where it copies them."""
        found = copy.copy(self)
        found._in_float64 = True
        return found

    def begin_fingerprint(self) -> None:
        """Begin to transfer the rows of the fingerprint."""
        n = len(self.data)
        few = np.unique(np.linspace(0, n - 1, min(n, 16)).astype(int)).tolist()
        self._few = _chosen(self.data, tuple(few))
        self._few.copy_to_host_async()

    def fingerprint(self) -> dict[str, Any]:
        """Return shape, dtype and a digest of a few rows."""
        if self._few is None:
            self.begin_fingerprint()
        digest = hashlib.sha256(np.asarray(self._few).tobytes()).hexdigest()
        return super().fingerprint() | {"rows": digest[:16]}

    def digest(self) -> str | None:
        """Return a digest of all numbers, which are copied to the host for it."""
        return digest_of_array(np.asarray(self.data))


@partial(jax.jit, static_argnums=(2, 3))
def _rows(data: jax.Array, begin: int, count: int, wide: bool) -> jax.Array:
    """Return rows from `begin` on, in float64 if `wide`. Compiled once for each number of rows."""
    found = jax.lax.dynamic_slice_in_dim(data, begin, count)
    return found.astype(np.float64) if wide else found


@partial(jax.jit, static_argnums=1)
def _chosen(data: jax.Array, places: tuple[int, ...]) -> jax.Array:
    """Return some rows. Their places are part of the program, so that they need not be transferred."""
    return data[np.asarray(places, np.int32)]


def on_device(X: Any) -> jax.Array | None:
    """Return a matrix of floating-point numbers that is on the device of the fit, without a copy; else None.

    JAX arrays and torch tensors on the default device of JAX are such matrices, unless that is a CPU.
    """
    if jax.default_backend() == "cpu":
        return None
    if isinstance(X, jax.Array):
        if X.ndim != 2:
            return None
        here = X.is_fully_addressable and X.devices() == {jax.devices()[0]}
        return X if here and X.dtype.name in KINDS else None
    torch = type(X).__module__.split(".")[0] == "torch"
    if not torch or not getattr(X, "is_cuda", False) or X.ndim != 2:
        return None
    if str(X.dtype).removeprefix("torch.") not in KINDS or X.device.index != jax.devices()[0].id:
        return None
    return jax.dlpack.from_dlpack(X.detach().contiguous())

"""Sizes of the basis of Lanczos' method: vectors that are multiplied at a time, all vectors, and their bytes."""

from __future__ import annotations

from eigengame.solver.certificates.counted_eigenvalues import SPARE

BLOCK = 8
"""Vectors that are multiplied at a time. Larger blocks need a larger basis for the same accuracy."""

LARGEST = 10.0
"""Largest number of vectors of a basis, as a multiple of the number of eigenvectors."""

MOST_BASIS = 2**27
"""Largest size of a basis: 1 GiB."""

LANCZOS_PASSES = 12
"""Largest number of passes over dense rows by Lanczos' method: a certificate usually takes six to ten."""


def largest_basis(size: int, count: int, block: int = BLOCK) -> int:
    """Return the largest number of vectors of a basis, a multiple of the block."""
    return int(min(LARGEST * count + block, MOST_BASIS // size, size)) // block * block


def lanczos_block(k: int) -> int:
    """Return the number of vectors of dense rows that are multiplied at a time, for k components.

    A space of about $4.5k + 40$ vectors is needed. Small blocks need fewer of them, but more passes.
    """
    return max(16, 8 * -(-(9 * k + 80) // 160))


def basis_bytes(size: int, k: int, block: int | None = None) -> int:
    """Return the bytes of the largest basis of vectors of this size for k components; by default of dense rows."""
    if block is not None:
        return 8 * size * largest_basis(size, k + SPARE, block)
    block = lanczos_block(k)
    return 8 * size * min(largest_basis(size, k + SPARE, block), LANCZOS_PASSES * block)

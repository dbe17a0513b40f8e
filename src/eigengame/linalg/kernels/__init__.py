"""Kernels for wide rows on one GPU; imported where they apply."""

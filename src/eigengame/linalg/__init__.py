"""Array operations that do not depend on the game: products, orthonormalisation, offloading, kernels."""

"""One pass and a refined fit on the default device: angles, orthonormality, time of a warm fit.

python -m benchmarks.gpu_check
"""

import time

import jax
import numpy as np

import eigengame as eg


def main() -> None:
    print(jax.__version__, jax.devices())
    for name, spectrum in (
        ("1/i", eg.testing.harmonic(784)),
        ("exponential", np.exp(-np.arange(1, 785) / 8) + 1e-3),
    ):
        stream, _ = eg.testing.stream_with(spectrum, 60_000, 1, seed=1)
        x = next(stream).astype("float32")
        truth = eg.metrics.true_components(x - x.mean(axis=0), 16)[1]
        for options in ({"tol": None}, {"tol": 1e-3}):
            for _ in range(3):
                began = time.perf_counter()
                pca = eg.EigenGamePCA(
                    16, algorithm="remembered", batch_size=1024, random_state=0, **options
                ).fit(x)
                seconds = time.perf_counter() - began
            v = pca.components_.astype("float64")
            drift = np.abs(v @ v.T - np.eye(16)).max()
            angle = eg.metrics.angular_error(v, truth)
            held = bool((angle <= pca.certificate_.angle + 1e-6).all())
            print(
                f"{name:>12} {options}: angle {angle.max():.2e}, orthonormal to {drift:.1e}, "
                f"{seconds:.3f} s, {pca.outcome_}, bound {pca.certificate_.angle.max():.2e} held: {held}"
            )


if __name__ == "__main__":
    main()

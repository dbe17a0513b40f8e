"""The fits of all layers of a network: a mapping with a table, a picture and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eigengame._system.atomic_write import atomic_write
from eigengame.estimator import EigenGamePCA
from eigengame.estimator.uncertified import uncertified
from eigengame.layerwise.files import load_layers, save_layers
from eigengame.layerwise.picture import draw_layers


class LayerFits(Mapping[str, EigenGamePCA]):
    """Fitted estimators by the names of their layers, in the order in which the layers run.

    Parameters
    ----------
    fits : mapping of EigenGamePCA
    """

    def __init__(self, fits: Mapping[str, EigenGamePCA]) -> None:
        self._fits = dict(fits)

    def __getitem__(self, layer: str) -> EigenGamePCA:
        return self._fits[layer]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fits)

    def __len__(self) -> int:
        return len(self._fits)

    def table(self) -> list[dict[str, Any]]:
        """Return the figures of each layer.

        Returns
        -------
        list of dict
            `layer`, `rows`, `features`, `components`, `explained` (share of the variance that all components
            explain), `certified` (components within the tolerance of the fit by their certificate), `angle`
            (largest bound of those, in radians), `effective_dimension`, and the `outcome`.
        """
        return [_figures(name, pca) for name, pca in self.items()]

    def __str__(self) -> str:
        head = ("layer", "rows", "features", "explained", "certified", "effective dimension")
        lines = [head]
        for one in self.table():
            dimension = one["effective_dimension"]
            lines.append(
                (
                    one["layer"],
                    f"{one['rows']:,}",
                    f"{one['features']:,}",
                    f"{one['explained']:.1%}",
                    f"{one['certified']} of {one['components']}",
                    "" if dimension is None else f"{dimension:.1f}",
                )
            )
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        return "\n".join(
            "  ".join(
                text.ljust(width) if i == 0 else text.rjust(width)
                for i, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )

    def draw(self, path: Any) -> Path:
        """Write a picture (SVG) of explained variance, certified components and effective dimension by layer."""
        target = Path(path)
        if target.suffix != ".svg":
            raise ValueError(f"{target}: give a name that ends in .svg.")
        shares = {name: np.cumsum(pca.explained_variance_ratio_) for name, pca in self.items()}
        with atomic_write(target) as draft:
            Path(draft).write_text(draw_layers(self.table(), shares), encoding="utf-8")
        return target

    def save(self, path: Any) -> Path:
        """Write all fits to one `.safetensors` file, or to a folder with one model file for each layer."""
        return save_layers(self, path)

    @classmethod
    def load(cls, path: Any) -> LayerFits:
        """Read the fits from a file or folder that `save` wrote."""
        return cls(load_layers(path))


def _figures(name: str, pca: EigenGamePCA) -> dict[str, Any]:
    """Return the figures of one layer."""
    open_ = set(uncertified(pca).tolist())
    tol = pca.tol_
    angles = pca.certificate_.group_angle
    certified = [] if tol is None else [i for i in range(pca.n_components_) if angles[i] <= tol]
    certified = [i for i in certified if i not in open_]
    return {
        "layer": name,
        "rows": pca.n_samples_seen_,
        "features": pca.n_features_in_,
        "components": pca.n_components_,
        "explained": float(pca.explained_variance_ratio_.sum()),
        "certified": len(certified),
        "angle": float(angles[certified].max()) if certified else None,
        "effective_dimension": effective_dimension(pca),
        "outcome": str(pca.outcome_),
    }


def effective_dimension(pca: EigenGamePCA) -> float | None:
    r"""Return the participation ratio $(\sum_i\lambda_i)^2 / \sum_i\lambda_i^2$ of the covariance matrix.

    The eigenvalues of the players are known. The squares of all others together are estimated by the probes $G$ of
    the fit: the expectation of $\|GM\Pi\|^2$ for each of them, with $\Pi$ the projection outside the players. None
    for a model without probes.
    """
    stream = None if pca._result is None else pca._result.stream
    if stream is None or stream.probes is None:
        return None
    memory = stream.state.memory
    players, images, values = (
        np.asarray(one, np.float64)
        for one in (memory.players, stream.probes.images, memory.strengths)
    )
    outside = images - (images @ players.T) @ players
    squares = float(np.sum(values**2) + np.sum(outside**2) / len(images))
    total = float(np.sum(np.asarray(stream.moments.scatter, np.float64)))
    if not pca.center:
        mean = np.asarray(stream.moments.mean, np.float64)
        total += float(stream.moments.weight) * float(np.sum(mean**2))
    return total**2 / squares if squares > 0 else 0.0

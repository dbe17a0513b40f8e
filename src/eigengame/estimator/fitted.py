"""A fitted estimator: its attributes, scores, inverse transform, likelihoods and model files."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from eigengame import model_file
from eigengame.dask.lazy import lazy_rows, lazy_scores
from eigengame.estimator.exports import Exports
from eigengame.estimator.features import align_features
from eigengame.estimator.genotypes import align, alignment_of, least_squares
from eigengame.estimator.inputs import (
    checked_array,
    checked_source,
    is_lazy,
    is_other,
    to_numpy,
    with_columns_of_fit,
)
from eigengame.estimator.monitor import control_limits, monitored, monitored_blocks
from eigengame.estimator.shrinkage import shrinkage_factors
from eigengame.model import Model, refuse_nonfinite
from eigengame.monitoring import ControlLimits, Monitoring
from eigengame.preparation import Preparation
from eigengame.solver.results.result import Result
from eigengame.sources import Layers, Source, as_source
from eigengame.sources._snp_alignment import Snps
from eigengame.sources.device_array import DeviceArray, on_device

TRANSFORMED_BYTES = 2**28
"""Bytes of the rows of an array on a GPU that are transformed at a time."""


def attributes_of(result: Result) -> dict[str, Any]:
    """Return the attributes of an estimator with this result."""
    return {
        "_result": result,
        "components_": result.components,
        "explained_variance_": result.explained_variance,
        "explained_variance_ratio_": result.explained_variance_ratio,
        "singular_values_": result.singular_values,
        "mean_": result.mean,
        "var_": result.var,
        "noise_variance_": result.noise_variance,
        "n_components_": len(result.components),
        "n_samples_seen_": result.rows,
        "n_players_": len(result.players),
        "n_passes_": result.outcome.passes,
        "certificate_": result.certificate,
        "outcome_": result.outcome,
        "tol_": result.options.tol,
        "_provenance": None,  # only of a model that was loaded and not changed
    }


class FittedPCA(Exports, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Methods of a fitted estimator."""

    whiten: bool
    center: bool
    layers_: Layers | None
    tol_: float | None
    _result: Result | None = None
    _began: Mapping[str, Any]
    _preparation: Preparation | None = None
    _alleles: list[str] | None = None
    _positions: list[str] | None = None
    _layer: str | None = None
    sample_ids_: np.ndarray | None = None
    _source: Mapping[str, Any] | None = None
    _folders: Sequence[str] = ()
    _provenance: Mapping[str, Any] | None = None

    def _set_result(self, result: Result) -> None:
        """Store a result, and set the public attributes."""
        self.__dict__.update(attributes_of(result))

    def transform(self, X: Any) -> Any:
        """Return the scores of X on the components, shape (n_samples, n_components_).

        X may be anything that `fit` takes. Data that is not in memory is read block by block. A model of prepared
        data prepares X first, unless it is prepared already; rows that the preparation skips have NaN. Scores of a
        Dask array or data frame are a Dask array, computed on demand. Rows on a GPU stay there, and their scores
        are a NumPy array.

        Genotypes in a PLINK file are aligned with the SNPs of the fit first: by id, in any order, with swapped
        alleles flipped. If SNPs are missing, see `align`.
        """
        check_is_fitted(self)
        if is_lazy(X):
            source = checked_source(self, X, reset=False)
            return lazy_scores(source, self._model(), whiten=self.whiten)
        if self._preparation is None and (there := on_device(X)) is not None:
            # Only the scores are transferred.
            size = max(4096, TRANSFORMED_BYTES // max(there.nbytes // max(len(there), 1), 1))
            return np.concatenate(list(self.transform_blocks(DeviceArray(there, "X"), size)))
        if self._preparation is None and not is_other(X):
            rows = checked_array(self, X, reset=False)
            return self._model().project(rows, whiten=self.whiten)
        return np.concatenate(list(self.transform_blocks(X)))

    def transform_blocks(self, X: Any, size: int = 4096) -> Iterator[np.ndarray]:
        """Iterate over the scores of X block by block."""
        check_is_fitted(self)
        source = checked_source(self, X, reset=False, partial=True)
        model, alignment = self._model(), alignment_of(source)
        if alignment is not None and not alignment.complete:
            model = model._replace(
                components=np.where(alignment.used, self.components_, 0),
                mixing=least_squares(self.components_, alignment),
            )
        yield from model.score_blocks(source, size, whiten=self.whiten)

    def align(self, X: Any, *, intersect: bool = False, ambiguous: str = "auto") -> Source:
        r"""Return genotypes with the SNPs of the fit, which `transform` accepts, and how they were matched.

        For other data, features are found by name. `intersect` then allows features to be absent on which
        components have no loadings, such as genes that only count for the totals of cells: their values are 0.

        SNPs are found by id. Swapped alleles are flipped ($2 - g$), and alleles on the other strand are recognised
        where that is unambiguous. `transform` does the same with default options.

        Parameters
        ----------
        X : path or Source
            PLINK genotypes with their `.bim`, or other data with names of features, unprepared.
        intersect : bool
            Whether to use the SNPs that both have, if some are missing or have other alleles. Scores are then
            least-squares fits to these SNPs, in the scale of the fit: $(V_u V_u^T)^{-1} V_u z_u$ for components
            $V_u$ restricted to them. Each score has a noise variance that is larger by a factor of
            ``alignment.noise_factors``, and a part of the variation beyond the components leaks into it. Without
            it, missing SNPs raise.
        ambiguous : {"auto", "keep", "drop"}
            Treatment of SNPs with the alleles A/T or C/G, whose strand their alleles cannot tell. "auto" uses the
            strand that all other SNPs have, and raises if they have both; "keep" assumes the strand of the fit;
            "drop" does not use these SNPs.

        Returns
        -------
        AlignedSource or Source
            For genotypes, its `alignment` has the numbers of SNPs that were matched or flipped, are ambiguous or
            missing, or have other alleles: ``print(pca.align("new.bed").alignment)``.
        """
        check_is_fitted(self)
        source = as_source(with_columns_of_fit(self, X))
        if self._alleles is None and source.alleles is None:
            return align_features(self, source, intersect=intersect, ambiguous=ambiguous)
        return align(self, source, intersect=intersect, ambiguous=ambiguous)

    def score_shrinkage(self) -> np.ndarray:
        r"""Return by how much the scores of new rows are smaller than those of the fit, shape (n_components_,).

        With more features than rows, components fit a part of the noise of their rows, and scores of other rows are
        too close to 0. ``pca.transform(new) / pca.score_shrinkage()`` corrects that; scores of the rows of the fit
        need no correction. The factors are $\rho_i = (\ell_i - 1) / (\ell_i - 1 + \gamma)$ of the spiked covariance
        model (Lee, Zou and Wright, 2010), for $\gamma$ features per row; see `eigengame.estimator.shrinkage`.

        They are asymptotic, and assume noise of equal variance in all directions, and that all components above the
        noise were fitted. Correlated features, such as SNPs in linkage disequilibrium, increase the shrinkage:
        prune them first. A component that the noise alone could explain has NaN.
        """
        check_is_fitted(self)
        assert self._result is not None
        if self._result.options.forget < 1:
            raise ValueError(
                f"forget={self._result.options.forget}: the shrinkage is known for rows of equal weight only."
            )
        features = int(np.count_nonzero(self.var_ > 0))
        freedom = self.n_samples_seen_ - bool(self.center)
        # Not the sum of `var_`, which is divided by the number of rows.
        total = float(np.sum(self.explained_variance_) / np.sum(self.explained_variance_ratio_))
        return shrinkage_factors(self.explained_variance_, total, features, freedom)[0]

    @property
    def snps_(self) -> Snps | None:
        """SNPs of a fit on genotypes: ids, alleles and positions. None for other data."""
        if self._alleles is None:
            return None
        names = [str(name) for name in self.feature_names_in_]
        return Snps(names, self._alleles, self._positions)

    def inverse_transform(self, X: Any) -> Any:
        """Return rows from scores, shape (n_samples, n_features_in_); for a Dask array, a Dask array."""
        check_is_fitted(self)
        if is_lazy(X):
            return lazy_rows(X, self._model(), whiten=self.whiten)
        return self._model().restore(np.asarray(to_numpy(X)), whiten=self.whiten)

    def get_covariance(self) -> np.ndarray:
        """Return the covariance of the model: components, and noise in all other directions."""
        check_is_fitted(self)
        return self._model().covariance()

    def get_precision(self) -> np.ndarray:
        """Return the inverse of the covariance of the model."""
        check_is_fitted(self)
        return self._model().precision()

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-likelihood of each row under the probabilistic model, shape (n_samples,)."""
        check_is_fitted(self)
        if self._preparation is None and not is_other(X):
            return self._model().log_likelihood(checked_array(self, X, reset=False))
        source, model = checked_source(self, X, reset=False), self._model()
        found: list[np.ndarray] = []
        for number, block in enumerate(source.blocks(0, 4096)):
            found.append(model.log_likelihood(block.values))
            refuse_nonfinite(source.name, found[-1], block.values, 4096 * number)
        return np.concatenate(found)

    def monitor(
        self, X: Any, *, limits: ControlLimits | float | None = 0.99, reference: Any = None
    ) -> Monitoring:
        """Return T2, squared prediction error, alarms and contributions of each row. The model does not change.

        Parameters
        ----------
        X : any input of `transform`
            Prepared as in the fit. Contributions have the size of X, in float64: see `monitor_blocks` for data that
            is larger than memory.
        limits : float, ControlLimits or None
            Confidence of the theoretical limits of this model; or limits from `control_limits`, such as those of an
            earlier state; or None for statistics without limits.
        reference : EigenGamePCA, optional
            A fitted model with the same features and number of components, such as a copy of an earlier state: the
            result contains the angles between its components and the present ones.

        Returns
        -------
        Monitoring
            Formulas are in `eigengame.monitoring.statistics`.
        """
        check_is_fitted(self)
        return monitored(self, X, limits, reference)

    def monitor_blocks(
        self,
        X: Any,
        *,
        limits: ControlLimits | float | None = 0.99,
        reference: Any = None,
        size: int | None = None,
    ) -> Iterator[Monitoring]:
        """Iterate over the results of `monitor` block by block, each of at most `size` rows."""
        check_is_fitted(self)
        yield from monitored_blocks(self, X, limits, reference, size)

    def control_limits(self, X: Any = None, *, confidence: float = 0.99) -> ControlLimits:
        """Return limits of T2 and squared prediction error for new rows.

        Parameters
        ----------
        X : any input of `transform`, optional
            Reference rows of normal operation that are not part of the fit: limits are order statistics of their
            values, whatever the distribution. Default: limits by theory, for independent, normally distributed rows
            (`eigengame.monitoring.limits`). With few rows per feature these are too narrow for SPE.
        confidence : float
            Probability in (0, 1) that one statistic of a normal row is within its limit.
        """
        check_is_fitted(self)
        return control_limits(self, X, confidence)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of the rows."""
        return float(np.mean(self.score_samples(X)))

    def save(self, path: Any, *, full_paths: bool = False) -> Path:
        """Write the model to a `.safetensors` file and return its path. An existing file is replaced atomically.

        Parameters
        ----------
        path : path
        full_paths : bool
            Whether the file contains the paths of the data. By default it contains their names without folders.
        """
        check_is_fitted(self)
        # A copy of one moment: another thread may be in `partial_fit`.
        return model_file.save(copy.copy(self), path, full_paths=full_paths)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Load a model from a file. It can transform, certify, merge and continue with `partial_fit`."""
        return model_file.load(cls, path)

    def _model(self) -> Model:
        """Return the components with their variances, mean and noise."""
        now = dict(vars(self))  # of one moment: another thread may be in `partial_fit`
        if now["n_samples_seen_"] < 2 and self.center:
            raise ValueError(
                f"the estimator has seen {now['n_samples_seen_']} row: components need at least two. Call "
                "partial_fit with more rows first."
            )
        names = ("components_", "explained_variance_", "mean_", "noise_variance_")
        return Model(*(now[name] for name in names))

    @property
    def _n_features_out(self) -> int:
        """Number of columns of the scores, for their names in scikit-learn."""
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

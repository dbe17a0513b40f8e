"""The scikit-learn estimator: it checks its input, calls the solver and stores the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Literal, Self

import jax
import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from eigengame._system import interrupts
from eigengame.dask.engine import engine_for
from eigengame.estimator import merging
from eigengame.estimator.callbacks import CallbackSupport, callback_watchers, with_callbacks
from eigengame.estimator.exclusive import exclusive, precision
from eigengame.estimator.fitted import FittedPCA, attributes_of
from eigengame.estimator.genotypes import joined_ids, sample_ids
from eigengame.estimator.inputs import (
    SMALL,
    checked_source,
    checked_weights,
    in_precision,
    refuse_prepared,
)
from eigengame.estimator.resume import open_checkpoint
from eigengame.estimator.uncertified import warn_uncertified
from eigengame.preparation import preparation_of
from eigengame.progress import watchers_of
from eigengame.sharding.placement import ONE_DEVICE
from eigengame.solver.certificates.certificate import Certificate
from eigengame.solver.certify import certify_model
from eigengame.solver.continue_stream import continue_stream
from eigengame.solver.fit import Executor, LocalExecutor, fit_all, fit_components, fit_share
from eigengame.solver.passes.events import Watcher, call
from eigengame.solver.passes.forgetting import certified_weights
from eigengame.solver.passes.limits import limits
from eigengame.solver.planning import parameters
from eigengame.solver.planning.options import Options
from eigengame.solver.planning.problem import Problem
from eigengame.solver.results.half_precision import warn_if_mean_dominates, with_rounding
from eigengame.solver.results.result import Result
from eigengame.solver.rows.row_counts import refuse_unless_counted
from eigengame.sources import Source
from eigengame.sources._folders import folders_of


class EigenGamePCA(CallbackSupport, FittedPCA):
    r"""Principal component analysis by the remembered game: few passes, no step size, with a certificate.

    Without further arguments every component is within 0.05 rad of the exact one by its certificate, or a warning
    names it.

    Parameters
    ----------
    n_components : int, float or None
        Number of components; or the share of the variance to explain, in (0, 1); or None for
        ``min(n_samples, n_features)``. Components beyond the rank of the data are
        orthonormal to the others, and their variance is 0 up to rounding.
    algorithm : str
        "remembered", the game; "exact", which solves the eigenproblem of the covariance matrix (few features)
        or of the inner products of all rows (few rows, which must fit into memory) in float64; "auto" (the
        default), which takes the exact route if that is cheaper, or if the game does not certify every component,
        and Lanczos' method for other rows in memory, as `outcome_` shows; or any name of
        `eigengame.algorithms.REGISTRY`.
    batch_size : int or "auto"
        Rows of a batch. "auto" is up to 4096 for dense rows on a CPU, fewer for wide ones.
    extra : int or "auto"
        Number of players beyond `n_components`, which make components and bounds more accurate. "auto" is 1.5
        times `n_components`, at least 8; fewer if the data is one batch.
    rounds : int or "auto"
        Least number of rounds for each batch. "auto" is one; a batch that outweighs all rows before it gets four,
        and long batches on a GPU get two if further passes follow.
    probes : int or "auto"
        Number of random probes, which are multiplied with the data in every pass and certify the components. With
        more probes more components are certified after one pass; 0 saves their time. "auto" is 48 for one pass
        and 32 for several, but from 16 to 32 for dense arrays in memory (three quarters of the components), and
        16 for Lanczos' method. Refinement (`tol`, `passes`) and `certify` use 32 if the first pass had none.
    passes : int or "auto"
        Largest number of passes over the data. With more than one, components are refined and measured on all rows,
        unless the first pass already certifies all of them within `tol`.
        "auto" is 16 with ``tol="auto"``, 30 with a number for `tol`, and 1 with ``tol=None``; one more pass is made
        where an exact solution is needed and possible. Data that can be read once takes one pass.
    tol : float, "auto" or None
        Stop when every component is within this angle (radians) by its certificate, or after `passes`; a warning
        (`UncertifiedWarning`) names components that are not. "auto" is 0.05. None makes all `passes`, and never
        warns.
    center : bool
        Whether to subtract the mean. Must be False for `eigengame.gradients`.
    whiten : bool
        Whether `transform` scales every component to unit variance.
    forget : float
        Forgetting factor in (0, 1]: each new row multiplies the weight of earlier rows by this value. With `tol` or
        `passes`, the weighted rows are refined; this needs dense rows of a known number.
    step_size : float, optional
        Step size of the algorithms that have one, in units of one over the largest eigenvalue of a batch.
    dtype : {"float32", "float64"}
        Precision of the updates. `fit` uses float64 for data of up to 262,144 numbers.
    mesh : dict, str, Mesh or None
        Devices of the fit: how many share the rows of a batch, the players and the features, such as
        ``{"data": 2, "features": 4}``; or "auto", which uses all devices in the layout that moves the fewest bytes.
        By default the default device of JAX.
    random_state : int, RandomState or None
        Seed of the initial players and the random probes.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features_in_)
        Sorted by variance; each has its largest entry positive.
    explained_variance_, explained_variance_ratio_, singular_values_ : arrays of shape (n_components_,)
    mean_, var_ : arrays of shape (n_features_in_,)
    noise_variance_ : float
        Mean variance of the directions without a component. It is a difference: after a game in float32 all of
        these together are known to about 1e-7 of the total variance, and within 1 % of their own if the first pass
        certified the components within `tol`.
    n_samples_seen_, n_components_, n_features_in_, n_passes_, n_players_ : int
        Features are counted after preparation, where there is one.
    certificate_ : Certificate
        Bound on the error of each component.
    outcome_ : Outcome
        How the fit ended: `.status`, `.route`, `.passes`, and `.advice` on what to change.
    tol_ : float or None
        Angle in radians by which the fit was judged; None for ``tol=None``, and after `partial_fit` or `merge`.
    snps_ : Snps or None
        For genotypes: `ids`, `alleles` ("A/G": the counted and the other one) and `positions` ("1:828418").
    sample_ids_ : array of shape (n_samples_seen_, 2) or None
        For genotypes: FID and IID of the individuals. Model files contain them; set it to None before you save a
        model that must not.
    layers_ : Layers or None
        Layers of a fit on `eigengame.activations`, or parameters of one on `eigengame.gradients`:
        ``layers_.cut(components_)`` splits components by layer.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> pca = EigenGamePCA(8, random_state=0).fit(load_digits().data)
    >>> pca.transform(load_digits().data).shape
    (1797, 8)
    """

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        algorithm: str = "auto",
        batch_size: int | Literal["auto"] = "auto",
        extra: int | str = "auto",
        rounds: int | str = "auto",
        probes: int | str = "auto",
        passes: int | Literal["auto"] = "auto",
        tol: float | Literal["auto"] | None = "auto",
        center: bool = True,
        whiten: bool = False,
        forget: float = 1.0,
        step_size: float | None = None,
        dtype: str = "float32",
        mesh: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.batch_size = batch_size
        self.extra = extra
        self.rounds = rounds
        self.probes = probes
        self.passes = passes
        self.tol = tol
        self.center = center
        self.whiten = whiten
        self.forget = forget
        self.step_size = step_size
        self.dtype = dtype
        self.mesh = mesh
        self.random_state = random_state

    # ------------------------------------------------------------------ learning

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        checkpoint: Any = None,
        progress: Any = False,
        engine: Any = None,
    ) -> EigenGamePCA:
        """Find the components of X.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path, list of paths, Source, or iterable of arrays
            Shape (n_samples, n_features): NumPy, a memory map, SciPy sparse, pandas, polars, JAX, torch or Dask;
            an xarray field, see `eigengame.xarray`; or anything that `eigengame.as_source` opens. Data from
            `eigengame.prepare` is prepared while it is read, and the model prepares later data in the same way.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Weights: a row of weight 2 counts as two rows, one of weight 0 is left out. Weights with a mean below 1
            are relative: variances are those of the weights scaled to a mean of 1.
        checkpoint : path or Checkpoint, optional
            Folder in which the run is saved. The same call with the same folder resumes it.
        progress : bool, Watcher or sequence of Watcher
            True shows a progress bar. Watchers are called after each batch; on Dask after each pass.
        engine : distributed.Client, "dask" or None
            Dask cluster, or the default Dask scheduler. By default the fit runs in this process; Dask collections
            are fitted on Dask.
        """
        with exclusive(self, "fit") as change:
            given = self.get_params(deep=False)
            parameters.check_values(given)
            parameters.refuse_unused(given)
            with interrupts.immediate():
                source = checked_source(self, X, reset=True, streamed=True, least=2)
            cluster = engine_for(source, engine, checkpoint)
            weights = checked_weights(source, sample_weight)
            n, d = source.shape
            small = n is not None and n * d <= SMALL
            options = self._read_options("float64" if small else self.dtype, again=source.again)
            # A fit that fails must not leave the stream of an earlier one with these parameters.
            if self._result is not None:
                self._result = replace(self._result, stream=None)
            self._began = parameters.accumulated(given)
            source = in_precision(source, options.dtype)
            watchers = [*watchers_of(progress), *callback_watchers(self, n)]
            store = open_checkpoint(checkpoint, given, options, source, weights)
            if store is not None:
                options = replace(options, seed=store.seed)
            executor: Executor = LocalExecutor(store) if cluster is None else cluster
            problem = Problem(source, options, weights, self.algorithm, self.batch_size, self.mesh)
            try:
                call(watchers, "begin", {"source": source.name, "shape": source.shape})
                with precision(options.dtype):
                    result = with_rounding(self._fit(problem, executor, watchers), source)
                about = {
                    "_source": source.fingerprint(),
                    "_folders": folders_of(source),
                    "_preparation": preparation_of(source),
                    "layers_": source.layers,
                    "sample_ids_": sample_ids(source),
                }
                change.commit(attributes_of(result) | about)
                call(watchers, "end", self.outcome_)
            finally:
                if store is not None:
                    store.close()
                call(watchers, "close")
        warn_if_mean_dominates(source.name, self.outcome_.rounding, self.mean_, self.var_)
        warn_uncertified(self)
        return self

    def _fit(self, problem: Problem, executor: Executor, watchers: Sequence[Watcher]) -> Result:
        """Fit the number of components that `n_components` stands for."""
        source, weights, wanted = problem.source, problem.weights, self.n_components
        n, d = source.shape
        if n is None and not isinstance(wanted, Integral):
            raise ValueError(
                f"n_components={wanted!r}: the number of rows of {source.name} is unknown, so give an integer."
            )
        rows = d if n is None else n
        if weights is not None:
            # A row of weight 3 is three rows: weighted and repeated data must have the same number of components.
            # Weights that add up to less than the number of rows are relative.
            counted, total = int(np.count_nonzero(weights)), float(weights.sum())
            refuse_unless_counted(source.name, counted, total, 2)
            rows = max(counted, int(np.ceil(total)))
        if wanted is not None and not isinstance(wanted, Integral):
            return fit_share(problem, float(wanted), min(rows, d), executor, watchers)
        fit = fit_all if wanted is None else fit_components
        return fit(problem, self._count((rows, d)), executor, watchers)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the components with a batch of any size, from one row up.

        Plays the remembered game, each row once: `tol` and `passes` are not used. After `fit` it continues from the
        memory of the first pass of the fit, in the same precision. Without `mesh` it runs on one device of this
        process.

        If the first batch comes from `eigengame.prepare`, its learnt parameters (such as the standard deviations of
        a reference period) are kept: later batches are given unprepared, and the model prepares them in this way.

        The parameters that determine what is accumulated (`n_components`, `algorithm`, `extra`, `rounds`, `probes`,
        `center`, `forget` and `dtype`) must not change between calls; the others may.
        """
        with exclusive(self, "partial_fit") as change:
            change.commit(self._continued(X, sample_weight))
        return self

    def _continued(self, X: Any, sample_weight: Any) -> dict[str, Any]:
        """Return the attributes after one more batch."""
        given = self.get_params(deep=False)  # once: it takes as long as a small batch
        parameters.check_values(given)
        before = None if self._result is None or self._result.stream is None else self._result
        first = before is None
        if before is not None:
            self._refuse_changes(given)
        if self.algorithm in parameters.SOLVER:  # otherwise `_begin` refuses the algorithm
            parameters.refuse_unused(given)
        with interrupts.immediate():
            source = checked_source(self, X, reset=first)
        if not first:
            refuse_prepared(self, source)
        weights = checked_weights(source, sample_weight)
        options, k = self._begin(source) if before is None else before.stream_size()
        source = in_precision(source, options.dtype)
        problem = Problem(source, options, weights, "remembered", self.batch_size, self.mesh)
        with precision(options.dtype):
            attributes = attributes_of(continue_stream(problem, k, before))
        ids = sample_ids(source)
        attributes["sample_ids_"] = ids if first else joined_ids(self.sample_ids_, ids)
        if first:
            attributes |= {
                "_began": parameters.accumulated(given),
                "_preparation": preparation_of(source),
                "layers_": source.layers,
            }
        return attributes

    def _begin(self, source: Source) -> tuple[Options, int]:
        """Return options and number of components of a new stream."""
        if hasattr(self, "components_"):
            raise ValueError(
                f"this fit ({self.outcome_}) left no memory to continue from: fit with algorithm='remembered', or "
                "clone the estimator to begin a stream."
            )
        if self.algorithm not in parameters.SOLVER or self.algorithm == "exact":
            raise ValueError(
                f"algorithm={self.algorithm!r} cannot be continued batch by batch: use 'remembered', or "
                "eigengame.play_stream."
            )
        if isinstance(self.n_components, Real) and not isinstance(self.n_components, Integral):
            raise ValueError(f"n_components={self.n_components!r}: a stream needs an integer.")
        n, d = source.shape
        k = min(n or d, d) if self.n_components is None else self._count((d, d))
        return self._read_options(self.dtype), k

    def merge(self, other: EigenGamePCA) -> Self:
        """Return an estimator of the rows of both.

        Merges the memories of one pass over each part. To refine the result, call `fit` on all rows.

        Parameters
        ----------
        other : EigenGamePCA
            Fitted with the same `n_components`, `center` and `forget`, on the same features prepared in
            the same way. If both have feature names, the features of `other` are put in the order of this
            estimator; different names are refused. If only one has names, the order is assumed to be the same,
            with a warning.

        Returns
        -------
        EigenGamePCA
            With the class and the parameters of this estimator, and the larger number of players of both. It has
            bounds if both have the same `random_state`. If one part was fitted in float32 and the other in
            float64, it is in float64. With `forget` below 1 both streams end at the same time: the rows of one do
            not fade those of the other.
        """
        mine, theirs = self._mergeable("self"), other._mergeable("other")
        self._refuse_changes()
        other._refuse_changes()
        merging.refuse_other_options(mine.options, theirs.options)
        merging.refuse_other_sizes(mine, theirs)
        merging.refuse_other_preparation(self._preparation, other._preparation)
        names, order = merging.common_features(self, other)
        merged = type(self)(**self.get_params(deep=False))
        for name in merging.KEPT:
            if hasattr(self, name):
                setattr(merged, name, getattr(self, name))
        if names is not None:
            merged.feature_names_in_ = names
        merged.sample_ids_ = joined_ids(self.sample_ids_, other.sample_ids_)
        merged.layers_ = self.layers_ if self.layers_ is not None else other.layers_
        with precision(np.promote_types(mine.options.dtype, theirs.options.dtype)):
            merged._set_result(merging.merge_results(mine, theirs, order))
        return merged

    def _mergeable(self, name: str) -> Result:
        """Return the result of this estimator, if it has a stream."""
        if self._result is None or self._result.stream is None:
            raise ValueError(
                f"{name} has no memory to merge: fit it with algorithm='remembered', or by partial_fit."
            )
        return self._result

    def _refuse_changes(self, given: Mapping[str, Any] | None = None) -> None:
        """Raise ValueError if parameters have changed since the stream began; `given` are the present ones."""
        assert self._result is not None
        assert self._result.stream is not None
        given = self.get_params(deep=False) if given is None else given
        parameters.refuse_changes(self._began, given, self._result.stream.k)

    def certify(
        self, X: Any, sample_weight: Any = None, *, progress: Any = False, engine: Any = None
    ) -> Certificate:
        """Measure the components on X by at most five passes, and return their certificate.

        It is also stored as `certificate_`. It bounds how far the components of this model are from the principal
        components of X, about the mean of X, with these weights. `progress` and `engine` are as for `fit`.
        """
        check_is_fitted(self)
        assert self._result is not None
        with exclusive(self, "certify") as change:
            watchers = watchers_of(progress)
            with interrupts.immediate():
                source = checked_source(self, X, reset=False)
            options = self._result.options
            weights = checked_weights(source, sample_weight)
            weights = certified_weights(source, options.forget, weights)
            cluster = engine_for(source, engine)
            source = in_precision(source, options.dtype)
            problem = Problem(source, options, weights, "remembered", self.batch_size)
            executor: Executor = LocalExecutor(placement=ONE_DEVICE) if cluster is None else cluster
            try:
                with precision(options.dtype):
                    certificate = certify_model(problem, self._result, executor, watchers)
                change.commit({"certificate_": certificate})
            finally:
                call(watchers, "close")
        return self.certificate_

    # ------------------------------------------------------------------ options and result

    def _read_options(self, dtype: str, *, again: bool = False) -> Options:
        """Return the parameters as options, with a seed drawn from `random_state`.

        `again` is whether the data can be read again.
        """
        seed = self.random_state
        if not isinstance(seed, Integral):
            if jax.process_count() > 1:
                raise ValueError(
                    f"random_state={seed!r}: several processes must start from the same players; give an integer."
                )
            seed = check_random_state(seed).randint(2**31 - 8)
        solver = self.algorithm in parameters.SOLVER
        passes, tol = limits(self.passes, self.tol, again=again, certified=solver)
        return Options(
            extra="auto" if isinstance(self.extra, str) else int(self.extra),
            rounds=1 if isinstance(self.rounds, str) else int(self.rounds),
            probes="auto" if isinstance(self.probes, str) else int(self.probes),
            passes=passes,
            tol=tol,
            automatic=isinstance(self.passes, str),
            center=bool(self.center),
            forget=float(self.forget),
            step_size=self.step_size,
            dtype=np.dtype(dtype),
            seed=int(seed),
        )

    def _count(self, shape: tuple[int, int]) -> int:
        """Return the number of components for data of this shape."""
        k = min(shape) if self.n_components is None else int(self.n_components)
        if k > min(shape):
            raise ValueError(
                f"n_components={k} is more than {min(shape)}, the smaller of n_samples={shape[0]} and "
                f"n_features={shape[1]}: give a number from 1 to {min(shape)}."
            )
        return k

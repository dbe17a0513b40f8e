"""The scikit-learn face of fitting: it checks, calls a route, and names what came out. No maths lives here."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from eigengame.algorithms import REGISTRY
from eigengame.dask.engine import DaskEngine, DaskReading, DaskRun, engine_for
from eigengame.estimator import compatible as alike
from eigengame.estimator.callbacks import CallbackSupport, callback_watchers, with_callbacks
from eigengame.estimator.fitted import FittedPCA
from eigengame.estimator.inputs import SMALL, checked_source, checked_weights, in_precision
from eigengame.model import deterministic_signs
from eigengame.preparation import Preparation, preparation_of
from eigengame.progress import watchers_of
from eigengame.sharding.layout import parse_layout
from eigengame.solver import parameters, refine, routes
from eigengame.solver import streaming as stream
from eigengame.solver.batches import Feed, refuse_unless_finite
from eigengame.solver.certificate import Certificate
from eigengame.solver.checkpoint import Checkpoint, CheckpointError, Keeper
from eigengame.solver.events import call
from eigengame.solver.fit import Fit, Run, batch_rows
from eigengame.solver.forgetting import certified_weights
from eigengame.solver.frame import Frame, first_mean, frame_of, in_range
from eigengame.solver.outcome import Status
from eigengame.solver.passes import Passes, Reading
from eigengame.solver.rounding import Rounding
from eigengame.solver.row_counts import refuse_unless_counted, refuse_unless_enough
from eigengame.sources import Source
from eigengame.sources._alleles import refuse_other_alleles
from eigengame.sources._digest import digest_of_array


class EigenGamePCA(CallbackSupport, FittedPCA):
    r"""Principal components by the remembered game: one pass, no step size, with a certificate.

    Parameters
    ----------
    n_components : int, float or None
        How many components; or the share of the variance to reach, in (0, 1); or, by default, all that
        have any variance.
    algorithm : str
        "remembered" (the default), "auto" (takes the covariance where that is cheaper, and says so in
        `outcome_`), or any name of `eigengame.algorithms.REGISTRY`.
    batch_size : int or "auto"
        Rows for each update.
    extra : int or "auto"
        Players beyond those wanted.
    rounds : int or "auto"
        Rounds for each batch.
    passes : int
        Times to read the data. Beyond one, components are refined and measured on all of it.
    tol : float, optional
        Stop when every component is within this angle (radians) by its certificate. With
        ``passes=1`` it may take as many passes as it needs, up to 30; else at most `passes`.
    center : bool
        Whether to subtract the mean.
    whiten : bool
        Whether `transform` scales every component to unit variance.
    forget : float
        Forgetting factor in (0, 1]: each new row multiplies the weight of all earlier rows by this value. With
        `tol` or `passes`, the weighted rows are refined; this needs dense rows of a known number.
    step_size : float, optional
        For the algorithms that have one, in units of one over a batch's largest eigenvalue.
    dtype : {"float32", "float64"}
        Precision to play in. `fit` plays data of up to 262,144 numbers in float64 in any case.
    mesh : dict, str, Mesh or None
        The devices to fit on: how many share the rows of a batch, the players and the features, such as
        ``{"data": 2, "features": 4}``; or "auto", which takes all there are by what they would have to
        tell each other. By default the one device that JAX takes.
    random_state : int, RandomState or None
        Where players start, and where probes look.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features_in_)
        The first component first; each has its largest entry positive.
    explained_variance_, explained_variance_ratio_, singular_values_ : arrays of shape (n_components_,)
    mean_, var_ : arrays of shape (n_features_in_,)
    noise_variance_ : float
        Mean variance of what the components leave.
    n_samples_seen_, n_components_, n_features_in_, n_passes_, n_players_ : int
        Features are counted after preparation, where there is one.
    certificate_ : Certificate
        How far to trust each component: see `eigengame.solver.certificate`.
    outcome_ : Outcome
        How the fit ended, by which route, in how many passes; `.advice` says what to change.
    layers_ : Layers or None
        Of a fit on `eigengame.activations`: ``layers_.cut(components_)`` brings components back to layers.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> pca = EigenGamePCA(8, random_state=0).fit(load_digits().data)
    >>> pca.transform(load_digits().data).shape
    (1797, 8)
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's own convention
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            None,
        ],
        "algorithm": [StrOptions({"auto", *REGISTRY})],
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "extra": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "rounds": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "passes": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither"), None],
        "center": ["boolean"],
        "whiten": ["boolean"],
        "forget": [Interval(Real, 0, 1, closed="right")],
        "step_size": [Interval(Real, 0, None, closed="neither"), None],
        "dtype": [StrOptions({"float32", "float64"})],
        "mesh": [dict, str, Mesh, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        algorithm: str = "remembered",
        batch_size: int | Literal["auto"] = "auto",
        extra: int | str = "auto",
        rounds: int | str = "auto",
        passes: int = 1,
        tol: float | None = None,
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
        self.passes = passes
        self.tol = tol
        self.center = center
        self.whiten = whiten
        self.forget = forget
        self.step_size = step_size
        self.dtype = dtype
        self.mesh = mesh
        self.random_state = random_state

    _preparation: Preparation | None = None
    _alleles: list[str] | None = None
    _stream: stream.Stream | None
    _began: dict[str, Any]
    _stream_shape: tuple[int, int]
    _players: np.ndarray
    _frame: Frame

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
            Shape (n_samples, n_features): NumPy, a memory map, SciPy sparse, pandas, polars, JAX, torch
            or Dask, or anything that `eigengame.as_source` opens. Data from `eigengame.prepare` is
            prepared as it is read, and the model prepares in the same way what it is given later.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            How often each row counts: a row of weight 2 counts as two rows, one of weight 0 is left out.
            Weights with a mean below 1 are relative: variances are those of the weights scaled to a mean
            of 1.
        checkpoint : path or Checkpoint, optional
            Folder to keep the run in. The same call with the same folder goes on where it stopped.
        progress : bool, Watcher or sequence of Watcher
            True shows a progress bar; watchers are told after every batch, on Dask after every pass.
        engine : distributed.Client, "dask" or None
            Where blocks of rows are played side by side, to be merged in a tree: a cluster, or whichever
            Dask scheduler is there. By default here, and for data of Dask on Dask.
        """
        self._validate_params()
        parameters.refuse_unused(self.get_params(deep=False))
        source = checked_source(self, X, reset=True, streamed=True, least=2)
        on = engine_for(source, engine, checkpoint)
        weights = checked_weights(source, sample_weight)
        n, d = source.shape
        small = n is not None and n * d <= SMALL
        # A fit that fails must not leave the memory of another one with these options.
        self._stream, self._began = None, parameters.accumulated(self.get_params(deep=False))
        self._options = self._read_options("float64" if small else self.dtype)
        source = in_precision(source, self._options.dtype)
        size = batch_rows(self.batch_size, source.shape, 1, self._options.dtype, source.block_rows)
        batches = None if n is None else -(-n // size)
        watchers = [*watchers_of(progress), *callback_watchers(self, batches)]
        keeper = self._keeper(checkpoint, source, weights)
        made = Run if on is None else partial(DaskRun, engine=on)
        run = made(
            source,
            weights,
            self._options,
            self.algorithm,
            self.batch_size,
            keeper,
            watchers,
            self.mesh,
        )
        try:
            call(watchers, "begin", {"source": source.name, "shape": source.shape})
            with _precision(self._options.dtype):
                found = self._fit(run)
            self._stream, self._frame = found.fitted.stream, found.frame
            self._stream_shape = (found.k, d)
            self._name(found.fitted)
            call(watchers, "end", self.outcome_)
        finally:
            if keeper is not None:
                keeper.close()
            call(watchers, "close")
        self._source = source.fingerprint()
        self._preparation = preparation_of(source)
        self.layers_ = source.layers
        return self

    def _fit(self, run: Run) -> Fit:
        """Fit as many components as were asked for."""
        n, d = run.source.shape
        if n is None and not isinstance(self.n_components, Integral):
            raise ValueError(
                f"n_components={self.n_components!r}: {run.source.name} does not know its number of "
                "rows, so give a whole number."
            )
        rows = d if n is None else n
        if run.weights is not None:
            # A row of weight 3 is three rows: weighted and repeated data must agree on "all". Weights that
            # add up to less than the number of rows are relative.
            counted, total = int(np.count_nonzero(run.weights)), float(run.weights.sum())
            refuse_unless_counted(run.source.name, counted, total, 2)
            rows = max(counted, int(np.ceil(total)))
        if self.n_components is None:
            return run.all_components(min(rows, d))
        if isinstance(self.n_components, Integral):
            found = run.components(self._count((rows, d)))
            seen = found.fitted
            if seen.found.outcome.status is not Status.STOPPED:
                refuse_unless_enough(run.source.name, found.k, seen.rows, seen.moments.weight)
            return found
        return run.share(min(n or d, d), float(self.n_components))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the components with a batch of any size, from one row up.

        Plays the remembered game on one device, each row once: `tol` and `passes` are not used, and `mesh` is
        refused. After `fit` it continues from the memory of the fit's first pass, in the same precision.

        The parameters that determine what is accumulated (`n_components`, `algorithm`, `extra`, `rounds`, `center`,
        `forget` and `dtype`) must not change between calls; the others may.
        """
        self._validate_params()
        parameters.refuse_mesh(self.mesh)
        first = getattr(self, "_stream", None) is None
        if not first:
            self._refuse_changes()
        if self.algorithm in parameters.SOLVER:  # else `_begin` refuses the algorithm itself
            parameters.refuse_unused(self.get_params(deep=False))
        source = checked_source(self, X, reset=first)
        weights = checked_weights(source, sample_weight)
        seen = self._begin(source) if first else self._stream
        assert seen is not None
        source = in_precision(source, self._options.dtype)
        n, d, game = source.shape[0] or 1024, source.shape[1], self._options.game()
        with _precision(self._options.dtype):
            players = self._options.players(*self._stream_shape)
            # Not by the number of rows of this batch: each would have a shape, and a compilation, of its own.
            size = batch_rows(
                self.batch_size, (None, d), players, self._options.dtype, source.block_rows
            )
            # Always with weights, so that ragged batches share their compilations.
            weights = np.ones(n) if weights is None and source.shape[0] else weights
            feed = self._feed(source, weights, min(size, _room_for(n)), self._frame)
            seen = stream.one_pass(game, Reading(feed), seen)
            refuse_unless_finite(feed, seen.moments.scatter)
            refuse_unless_counted(source.name, seen.rows, seen.moments.weight)
            self._name(routes.from_stream(seen, self._options))
            self._stream = seen
        if first:
            self._preparation = preparation_of(source)
            self.layers_ = source.layers
        return self

    def merge(self, other: EigenGamePCA) -> Self:
        """Return an estimator that has seen the rows of both.

        Merges the memories of one pass over each part: to refine the result, call `fit` on all rows.

        Parameters
        ----------
        other : EigenGamePCA
            Fitted with the same `n_components`, `extra`, `center` and `forget`, on the same features prepared in
            the same way. Where both have feature names, the features of `other` are put in the order of this
            estimator; different names are refused. Where only one has names, the order cannot be checked: it
            is taken to be the same, with a warning.

        Returns
        -------
        EigenGamePCA
            Of the class and with the parameters of this estimator. If one part was played in float32 and the other
            in float64, it is in float64. With `forget` below 1 both streams end at the same time: the rows
            of one do not fade those of the other.
        """
        mine, theirs = self._own_stream("self"), other._own_stream("other")
        self._refuse_changes()
        other._refuse_changes()
        alike.refuse_other_options(self._options, other._options)
        alike.refuse_other_sizes(mine.state.memory.players.shape, theirs.state.memory.players.shape)
        alike.refuse_other_preparation(self._preparation, other._preparation)
        alike.refuse_other_layers(self.layers_, other.layers_)
        if self._alleles is not None and other._alleles is not None:
            refuse_other_alleles(
                "other",
                other.feature_names_in_,
                other._alleles,
                self.feature_names_in_,
                self._alleles,
                "of self",
            )
        names, order = self._names_with(other)
        merged = type(self)(**self.get_params(deep=False))
        kept = ("_frame", "_stream_shape", "_began", "_preparation", "_sklearn_output_config")
        for name in ("n_features_in_", "_alleles", *kept):
            if hasattr(self, name):
                setattr(merged, name, getattr(self, name))
        if names is not None:
            merged.feature_names_in_ = names
        merged.layers_ = self.layers_ if self.layers_ is not None else other.layers_
        dtype = np.promote_types(self._options.dtype, other._options.dtype)
        merged._options = replace(self._options, dtype=dtype)
        with _precision(dtype):
            mine, theirs = (stream.in_precision(one, dtype) for one in (mine, theirs))
            frame = other._frame
            if order is not None:
                theirs, frame = stream.reordered(theirs, order), frame.reordered(order)
            theirs = stream.reframed(theirs, frame, self._frame)
            seen = stream.merge(merged._options.game(), mine, theirs)
            merged._name(routes.from_stream(seen, merged._options))
            merged._stream = seen
        return merged

    def _names_with(self, other: EigenGamePCA) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the feature names of a merge with another, and the order of its features, if not the same."""
        mine, theirs = (getattr(one, "feature_names_in_", None) for one in (self, other))
        if mine is not None and theirs is not None:
            return mine, alike.feature_order(mine, theirs)
        if mine is not None or theirs is not None:
            which = "other" if theirs is None else "self"
            warnings.warn(
                f"{which} was fitted without feature names, so the order of features cannot be checked: it is "
                "taken to be the same in both.",
                UserWarning,
                stacklevel=3,
            )
        return theirs if mine is None else mine, None

    def _refuse_changes(self) -> None:
        """Raise if parameters are no longer those that the stream began with."""
        parameters.refuse_changes(self._began, self.get_params(deep=False), self._stream_shape[0])

    def _own_stream(self, name: str) -> stream.Stream:
        """Return the game so far, if this estimator holds one to go on with."""
        if getattr(self, "_stream", None) is None:
            raise ValueError(
                f"{name} has no memory to merge: fit it with algorithm='remembered', or by partial_fit."
            )
        assert self._stream is not None
        return self._stream

    def certify(
        self, X: Any, sample_weight: Any = None, *, progress: Any = False, engine: Any = None
    ) -> Certificate:
        """Measure the components on X, by at most five passes over it, and return their certificate.

        It is also kept as `certificate_`. What is certified is how far the components of this model are from
        the principal components of X, about the mean of X, with these weights. `progress` and `engine` are as
        for `fit`.
        """
        check_is_fitted(self)
        watchers = watchers_of(progress)
        source = checked_source(self, X, reset=False)
        forget = self._options.forget
        weights = certified_weights(source, forget, checked_weights(source, sample_weight))
        on = engine_for(source, engine)
        source = in_precision(source, self._options.dtype)
        with _precision(self._options.dtype):
            dtype, rows = self._options.dtype, source.shape[0] or self.n_samples_seen_
            if weights is not None:
                rows = int(np.count_nonzero(weights))
            frame, mean = self._frame, self._frame.inner(self.mean_)
            if on is None and source.again and not source.on_device:
                # What is far from zero, or very large or small, may be so in X alone.
                frame = frame_of(source, dtype, center=self._options.center)
                mean = first_mean(source, frame)
            total = float(rows) if weights is None else float(weights.sum())
            goal = refine.Goal(
                source=self._reading(source, weights, frame, watchers, on),
                mean=jnp.asarray(mean, dtype) if self._options.center else None,
                k=self.n_components_,
                scale=routes.divisor(total, rows, fading=forget < 1) / frame.unit**2,
                passes=5,
                tol=None,
                seed=self._options.seed + 3,
                rounding=self._rounding(rows),
                in_float64=not source.on_device,
            )
            try:
                self.certificate_ = refine.certify(goal, self._players)
            finally:
                call(watchers, "close")
        return self.certificate_

    def _rounding(self, rows: int) -> Rounding:
        """Return the rounding of products with data like that of the fit, in the precision of play."""
        squares = (float(self.var_.sum()) + float(np.sum(self.mean_**2))) * rows
        dtype, d = self._options.dtype, self.n_features_in_
        size = batch_rows(self.batch_size, (rows, d), self.n_players_, dtype)
        return Rounding.probable(dtype, d, size, rows / size, squares / self._frame.unit**2)

    def _begin(self, source: Source) -> stream.Stream:
        """Return a stream about to see its first batch."""
        if hasattr(self, "components_"):
            raise ValueError(
                f"this fit ({self.outcome_}) left no memory to go on from: fit with "
                "algorithm='remembered', or clone the estimator to begin a stream."
            )
        if self.algorithm not in ("remembered", "auto"):
            raise ValueError(
                f"algorithm={self.algorithm!r} cannot go on batch by batch here: use 'remembered', "
                "or eigengame.play_stream."
            )
        if isinstance(self.n_components, Real) and not isinstance(self.n_components, Integral):
            raise ValueError(f"n_components={self.n_components!r}: a stream needs a whole number.")
        self._began = parameters.accumulated(self.get_params(deep=False))
        self._options, (n, d) = self._read_options(self.dtype), source.shape
        k = min(n or d, d) if self.n_components is None else self._count((d, d))
        with _precision(self._options.dtype):
            self._frame = frame_of(source, self._options.dtype, center=self._options.center)
            self._stream_shape = (k, d)
            return stream.begin(self._options.game(), k, d, self._options.dtype, self._options.seed)

    # ------------------------------------------------------------------ choosing

    def _read_options(self, dtype: str) -> routes.Options:
        seed = self.random_state
        if not isinstance(seed, Integral):
            if jax.process_count() > 1:
                raise ValueError(
                    f"random_state={seed!r}: several processes must begin alike; give a whole number."
                )
            seed = check_random_state(seed).randint(2**31 - 8)
        return routes.Options(
            extra="auto" if isinstance(self.extra, str) else int(self.extra),
            rounds=1 if isinstance(self.rounds, str) else int(self.rounds),
            passes=int(self.passes),
            tol=self.tol,
            center=bool(self.center),
            forget=float(self.forget),
            step_size=self.step_size,
            dtype=np.dtype(dtype),
            seed=int(seed),
        )

    def _keeper(self, checkpoint: Any, source: Source, weights: Any) -> Keeper | None:
        """Return who keeps the run, where asked; the seed of a run that goes on is the one it had."""
        if checkpoint is None:
            return None
        asked = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
        configuration = {name: _recorded(name, one) for name, one in self.get_params().items()}
        configuration["played"] = str(self._options.dtype)
        configuration["sample_weight"] = None if weights is None else digest_of_array(weights)
        content = None if asked.trust_source else source.digest()
        if content is None and not asked.trust_source:
            raise CheckpointError(
                f"checkpoint={str(asked.folder)!r}: {source.name} has no digest that would tell it from other "
                "data, so a checkpoint could belong to other rows: give an array, a list of arrays or a "
                "path; or Checkpoint(folder, trust_source=True) (--trust-source), if the same rows come again."
            )
        keeper = Keeper(
            asked.folder,
            configuration,
            source.fingerprint() | {"content": content},
            asked.every,
            seed=self._options.seed,
            trust_source=asked.trust_source,
        )
        self._options = replace(self._options, seed=keeper.seed)
        return keeper

    def _count(self, shape: tuple[int, int]) -> int:
        k = min(shape) if self.n_components is None else int(self.n_components)
        if k > min(shape):
            raise ValueError(
                f"n_components={k} is more than {min(shape)}, the smaller of n_samples={shape[0]} and "
                f"n_features={shape[1]}: give a number from 1 to {min(shape)}."
            )
        return k

    def _feed(self, source: Source, weights: Any, size: int, frame: Frame) -> Feed:
        return Feed(source, size, self._options.dtype, weights, frame)

    def _reading(
        self, source: Source, weights: Any, frame: Frame, watchers: Any, engine: DaskEngine | None
    ) -> Passes:
        """Return passes over other data than that of the fit."""
        dtype, players, forget = self._options.dtype, self.n_players_, self._options.forget
        if engine is None:
            size = batch_rows(self.batch_size, source.shape, players, dtype, source.block_rows)
            return Reading(self._feed(source, weights, size, frame), watchers)
        if forget < 1:
            raise ValueError(
                f"forget={forget} weights rows by their order, and Dask reads blocks side by side: certify "
                "without engine, on data that is not a Dask collection."
            )
        return DaskReading(
            engine,
            source,
            self._options.game(),
            dtype,
            batch_size=self.batch_size,
            players=players,
            weights=weights,
            frame=frame,
            watchers=watchers,
        )

    # ------------------------------------------------------------------ naming

    def _name(self, fitted: routes.Fitted) -> None:
        """Name what a route found."""
        found, moments, rows = fitted.found, fitted.moments, fitted.rows
        unit, scale = self._frame.unit, fitted.scale(self._options)
        strengths, total = np.maximum(found.strengths, 0), fitted.total(self._options)
        ratios = fitted.ratios(self._options)
        centre = self._frame.outer(np.asarray(moments.mean))
        weight, scatter = float(moments.weight), np.asarray(moments.scatter, np.float64)
        left = min(rows, self.n_features_in_) - len(strengths)

        self.components_ = deterministic_signs(found.components)
        self.explained_variance_ = in_range(strengths / scale, unit)
        self.explained_variance_ratio_ = ratios
        self.singular_values_ = np.sqrt(strengths) * unit
        self.mean_ = centre if self._options.center else np.zeros_like(centre)
        self.var_ = (scatter / weight if weight > 0 else scatter) * unit**2
        rest = max(total - strengths.sum(), 0) / scale / left if left > 0 else 0.0
        self.noise_variance_ = rest * unit**2
        self.n_components_ = len(strengths)
        self.n_samples_seen_ = rows
        self.n_players_ = len(found.players)
        self.n_passes_ = found.outcome.passes
        self.certificate_ = found.certificate.scaled(unit**2)
        self.outcome_ = found.outcome
        self._players = found.players
        self._provenance = None  # that of a file, where the model is as it was read


@contextlib.contextmanager
def _precision(dtype: Any) -> Iterator[None]:
    """Play in this precision; small LAPACK problems on one thread, where they are fastest."""
    with jax.enable_x64(dtype == np.float64), threadpool_limits(1, user_api="blas"):
        yield


def _room_for(rows: int) -> int:
    """Return a batch shape for a ragged stream: few shapes, so few compilations."""
    return max(8, 1 << (rows - 1).bit_length())


def _recorded(name: str, value: Any) -> Any:
    """Return a parameter as JSON that is equal where the parameter means the same."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if name == "mesh":
        # What "auto" chooses depends on how many devices there are.
        return (
            f"auto, {jax.device_count()} devices" if value == "auto" else str(parse_layout(value))
        )
    if name == "random_state":
        return None  # a generator: the run has the seed that was drawn from it
    return value if isinstance(value, str) else repr(value)

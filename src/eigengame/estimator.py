"""The scikit-learn face: it checks, calls a route, and names what came out. No maths lives here."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from eigengame import refine, routes, stream
from eigengame.algorithms import REGISTRY
from eigengame.certificate import Certificate
from eigengame.model import Model, deterministic_signs
from eigengame.sources import ArraySource, SparseSource, as_source, far_origin

SMALL = 2**18
"""Up to so many numbers a fit is played in float64, which costs nothing there."""


class EigenGamePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Principal components by the remembered game: one pass, no step size, with a certificate.

    Parameters
    ----------
    n_components : int, float or None
        How many components; or the share of the variance to reach, in (0, 1); or, by default, all that
        have any variance.
    algorithm : str
        "remembered" (the default), "auto" (takes the covariance where that is cheaper, and says so in
        `outcome_`), or any name of `eigengame.REGISTRY`.
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
        Weight that a row keeps for every row after it, in (0, 1]; 1 remembers all.
    step_size : float, optional
        For the algorithms that have one, in units of one over a batch's largest eigenvalue.
    dtype : {"float32", "float64"}
        Precision to play in. `fit` plays data of up to 262,144 numbers in float64 in any case.
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
    certificate_ : Certificate
        How far to trust each component: see `eigengame.certificate`.
    outcome_ : Ending
        How the fit ended, by which route, in how many passes; `.advice` says what to change.

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
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        algorithm: str = "remembered",
        batch_size: int | str = "auto",
        extra: int | str = "auto",
        rounds: int | str = "auto",
        passes: int = 1,
        tol: float | None = None,
        center: bool = True,
        whiten: bool = False,
        forget: float = 1.0,
        step_size: float | None = None,
        dtype: str = "float32",
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
        self.random_state = random_state

    _stream: stream.Stream | None
    _stream_shape: tuple[int, int]
    _players: np.ndarray

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> EigenGamePCA:
        """Find the components of X.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            NumPy, a memory map, SciPy sparse, pandas, polars, JAX or torch.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            How often each row counts.
        """
        X, weights = self._checked(
            X, sample_weight, reset=True, streamed=True, ensure_min_samples=2
        )
        self._options = self._read_options(
            "float64" if X.shape[0] * X.shape[1] <= SMALL else self.dtype
        )
        with _precision(self._options.dtype):
            if isinstance(self.n_components, Real) and not isinstance(self.n_components, Integral):
                self._fit_share(X, weights, float(self.n_components))
            else:
                # A row of weight 3 is three rows: weighted and repeated data must agree on "all".
                n = X.shape[0] if weights is None else int(np.ceil(weights.sum()))
                self._fit_count(X, weights, self._count((n, X.shape[1])))
                if self.n_components is None:
                    self._drop_empty(X, weights)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> EigenGamePCA:
        """Go on with a batch of any size from one row up: the remembered game, batch by batch.

        After `fit` it goes on from the memory of the fit's first pass.
        """
        first = getattr(self, "_stream", None) is None
        X, weights = self._checked(X, sample_weight, reset=first)
        seen = self._begin(X) if first else self._stream
        assert seen is not None
        with _precision(self._options.dtype):
            size = self._batch(X.shape, self._options.players(*self._stream_shape))
            size = min(size, _room_for(len_of(X)))
            # Always with weights, so that ragged batches share their compilations.
            source = self._source(X, np.ones(len_of(X)) if weights is None else weights, size)
            for begin in range(0, len_of(X), size):
                count = min(size, len_of(X) - begin)
                seen = stream.take(self._options.game(), seen, source.batch(begin), count)
            self._stream = seen
            self._name(routes.from_stream(seen, self._options))
        return self

    def merge(self, other: EigenGamePCA) -> EigenGamePCA:
        """Return an estimator that has seen what both have: two streams in one.

        Both must hold a remembered game of the same size. What is merged are the memories of the one
        pass: refine what comes out by `fit` where more passes are to be had.
        """
        mine, theirs = self._own_stream("self"), other._own_stream("other")
        shapes = [one.state.memory.players.shape for one in (mine, theirs)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"players have shapes {shapes[0]} and {shapes[1]}: give both the same n_components, "
                "extra and features."
            )
        merged = EigenGamePCA(**self.get_params())
        for name in ("n_features_in_", "feature_names_in_", "_options", "_origin", "_stream_shape"):
            if hasattr(self, name):
                setattr(merged, name, getattr(self, name))
        with _precision(self._options.dtype):
            shift = np.broadcast_to(other._shift() - self._shift(), other.mean_.shape)
            theirs = stream.moved(theirs, jnp.asarray(shift, self._options.dtype))
            merged._stream = stream.merge(self._options.game(), mine, theirs)
            merged._name(routes.from_stream(merged._stream, self._options))
        return merged

    def _own_stream(self, name: str) -> stream.Stream:
        """Return the game so far, if this estimator holds one to go on with."""
        if getattr(self, "_stream", None) is None:
            raise ValueError(
                f"{name} has no memory to merge: fit it with algorithm='remembered', or by partial_fit."
            )
        assert self._stream is not None
        return self._stream

    def certify(self, X: Any) -> Certificate:
        """Measure the components on X, by five passes over it, and return their certificate.

        It is also kept as `certificate_`. The mean is that of the fit.
        """
        check_is_fitted(self)
        X, _ = self._checked(X, None, reset=False)
        with _precision(self._options.dtype):
            dtype = self._options.dtype
            goal = refine.Goal(
                source=self._source(X, None, self._batch(X.shape, self.n_players_)),
                mean=jnp.asarray(self.mean_ - self._shift(), dtype) if self.center else None,
                k=self.n_components_,
                scale=max(len_of(X) - 1, 1),
                passes=5,
                tol=None,
                seed=self._options.seed + 3,
            )
            self.certificate_ = refine.certify(goal, jnp.asarray(self._players, dtype))
        return self.certificate_

    def _fit_count(self, X: Any, weights: Any, k: int) -> None:
        """Fit k components by the route asked for."""
        batch = self._batch(X.shape, self._options.players(k, X.shape[1]))
        self._origin = far_origin(X, batch, self._options.dtype) if self.center else None
        source = self._source(X, weights, batch)
        fitted = routes.fit_by(self._route(source, k), source, k, self._options)
        self._stream, self._stream_shape = fitted.stream, (k, X.shape[1])
        self._name(fitted)

    def _drop_empty(self, X: Any, weights: Any) -> None:
        """Fit again without components that have no variance, where all that have some are wanted."""
        least = 1e3 * np.finfo(self._options.dtype).eps * self.explained_variance_[0]
        rank = int(np.sum(self.explained_variance_ > least))
        if 0 < rank < self.n_components_:
            self._fit_count(X, weights, rank)

    def _fit_share(self, X: Any, weights: Any, share: float) -> None:
        """Fit more and more components until they explain the share asked for."""
        most = min(X.shape)
        k = min(16, most)
        self._fit_count(X, weights, k)
        while k < most and self.explained_variance_ratio_.sum() < share:
            k = min(2 * k, most)
            self._fit_count(X, weights, k)
        needed = int(np.searchsorted(np.cumsum(self.explained_variance_ratio_), share)) + 1
        if needed < k:
            self._fit_count(X, weights, needed)

    def _begin(self, X: Any) -> stream.Stream:
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
        self._options, d = self._read_options(self.dtype), X.shape[1]
        k = min(X.shape) if self.n_components is None else self._count((d, d))
        with _precision(self._options.dtype):
            self._origin = far_origin(X, len_of(X), self._options.dtype) if self.center else None
            self._stream_shape = (k, d)
            return stream.begin(self._options.game(), k, d, self._options.dtype, self._options.seed)

    # ------------------------------------------------------------------ choosing

    def _read_options(self, dtype: str) -> routes.Options:
        seed = self.random_state
        if not isinstance(seed, Integral):
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

    def _route(self, source: ArraySource | SparseSource, k: int) -> str:
        dense = isinstance(source, ArraySource)
        if self.algorithm == "auto":
            # Multiplications: M takes n d^2 once, the remembered game about 3 n K d a pass.
            few = source.shape[1] <= 3 * self._options.players(k, source.shape[1])
            return routes.COVARIANCE if dense and few and self.forget == 1 else "remembered"
        if self.algorithm != "remembered" and not dense:
            raise ValueError(
                f"algorithm={self.algorithm!r} needs dense rows: use 'remembered' for sparse ones."
            )
        return self.algorithm

    def _batch(self, shape: tuple[int, int], players: int) -> int:
        """Return the rows for each batch: enough to keep products busy, at most 1 GiB of them.

        Batches as even as can be, in eights: little padding.
        """
        if not isinstance(self.batch_size, str):
            return min(int(self.batch_size), shape[0])
        fits = max(1, 2**30 // (shape[1] * self._options.dtype.itemsize))
        most = max(2 * players, min(1024, fits))
        even = -(-shape[0] // -(-shape[0] // most))
        return min(shape[0], -(-even // 8) * 8)

    def _count(self, shape: tuple[int, int]) -> int:
        k = min(shape) if self.n_components is None else int(self.n_components)
        if k > min(shape):
            raise ValueError(
                f"n_components={k} is more than {min(shape)}, the smaller of n_samples={shape[0]} and "
                f"n_features={shape[1]}: give a number from 1 to {min(shape)}."
            )
        return k

    def _source(self, X: Any, weights: Any, size: int) -> ArraySource | SparseSource:
        return as_source(X, size, dtype=self._options.dtype, weights=weights, origin=self._origin)

    def _checked(
        self,
        X: Any,
        sample_weight: Any,
        *,
        reset: bool,
        streamed: bool = False,
        ensure_min_samples: int = 1,
    ) -> tuple[Any, Any]:
        """Return rows and weights as scikit-learn checks them."""
        self._validate_params()
        X = _to_numpy(X)
        X = validate_data(
            self,
            X,
            reset=reset,
            # Much data is not read once more to be checked: the first pass finds what is not finite.
            ensure_all_finite=not (streamed and math.prod(getattr(X, "shape", ())) > SMALL),
            accept_sparse="csr",
            dtype=[np.float64, np.float32, np.float16, np.uint8, np.int8, np.int16],
            ensure_min_samples=ensure_min_samples,
        )
        if sample_weight is None:
            return X, None
        return X, _check_sample_weight(sample_weight, X, ensure_non_negative=True)

    # ------------------------------------------------------------------ naming

    def _name(self, fitted: routes.Fitted) -> None:
        """Name what a route found."""
        found, moments, rows = fitted.found, fitted.moments, fitted.rows
        scale = routes.scale_of(moments, rows, fading=self.forget < 1)
        strengths = np.maximum(found.strengths, 0)
        centre = np.asarray(moments.mean, np.float64) + self._shift()
        weight, scatter = float(moments.weight), np.asarray(moments.scatter, np.float64)
        total = float(scatter.sum()) + (0 if self.center else weight * float(np.sum(centre**2)))
        left = min(rows, self.n_features_in_) - len(strengths)

        self.components_ = deterministic_signs(found.components)
        self.explained_variance_ = strengths / scale
        self.explained_variance_ratio_ = strengths / (total if total > 0 else 1)
        self.singular_values_ = np.sqrt(strengths)
        self.mean_ = centre if self.center else np.zeros_like(centre)
        self.var_ = scatter / weight if weight > 0 else scatter
        self.noise_variance_ = max(total - strengths.sum(), 0) / scale / left if left > 0 else 0.0
        self.n_components_ = len(strengths)
        self.n_samples_seen_ = rows
        self.n_players_ = len(found.players)
        self.n_passes_ = found.ending.passes
        self.certificate_ = found.certificate
        self.outcome_ = found.ending
        self._players = found.players

    def _shift(self) -> Any:
        return np.zeros(()) if self._origin is None else self._origin

    # ------------------------------------------------------------------ using

    def transform(self, X: Any) -> np.ndarray:
        """Return the scores of X on the components, shape (n_samples, n_components_)."""
        check_is_fitted(self)
        return self._model().project(self._checked(X, None, reset=False)[0], whiten=self.whiten)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return rows from scores, shape (n_samples, n_features_in_)."""
        check_is_fitted(self)
        return self._model().restore(np.asarray(_to_numpy(X)), whiten=self.whiten)

    def get_covariance(self) -> np.ndarray:
        """Return the model's covariance: components, and noise in every other direction."""
        check_is_fitted(self)
        return self._model().covariance()

    def get_precision(self) -> np.ndarray:
        """Return the inverse of the model's covariance."""
        check_is_fitted(self)
        return self._model().precision()

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-likelihood of each row under the probabilistic model, shape (n_samples,)."""
        check_is_fitted(self)
        return self._model().log_likelihood(self._checked(X, None, reset=False)[0])

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of the rows."""
        return float(np.mean(self.score_samples(X)))

    def _model(self) -> Model:
        return Model(self.components_, self.explained_variance_, self.mean_, self.noise_variance_)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@contextlib.contextmanager
def _precision(dtype: Any) -> Iterator[None]:
    """Play in this precision; small LAPACK problems on one thread, where they are fastest."""
    with jax.enable_x64(dtype == np.float64), threadpool_limits(1, user_api="blas"):
        yield


def _to_numpy(X: Any) -> Any:
    """Return JAX arrays and torch tensors as NumPy arrays; leave everything else to scikit-learn."""
    if isinstance(X, jax.Array):
        return np.asarray(X)
    if type(X).__module__.split(".")[0] == "torch":
        return X.detach().cpu().numpy()
    if sparse.issparse(X) and X.format != "csr":
        return X.tocsr()
    return X


def _room_for(rows: int) -> int:
    """Return a batch shape for a ragged stream: few shapes, so few compilations."""
    return max(8, 1 << (rows - 1).bit_length())


def len_of(X: Any) -> int:
    """Return the number of rows (sparse matrices have no length)."""
    return int(X.shape[0])

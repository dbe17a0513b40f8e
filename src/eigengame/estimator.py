"""The scikit-learn face: it checks, calls `fit`, and names what came out. No maths lives here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from eigengame import fit as fitting
from eigengame.algorithms import REGISTRY, Remembered, make
from eigengame.algorithms.remembered import default_extra
from eigengame.outcome import Ending, Outcome
from eigengame.sources import as_source


class EigenGamePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Principal components by the remembered game: one pass, no step size, with a certificate.

    Parameters
    ----------
    n_components : int, float or None
        How many components; or the share of the variance to reach, in (0, 1); or all there are.
    algorithm : str
        "remembered" (the default), "auto" (takes a cheaper exact route where there is one, and says so
        in `outcome_`), or any name of `eigengame.REGISTRY`.
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
        Precision to play in.
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

    # ------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> EigenGamePCA:
        """Find the components of X, array or sparse matrix of shape (n_samples, n_features)."""
        self._validate_params()
        X = self._checked_rows(X, reset=True, ensure_min_samples=2)
        weights = (
            None
            if sample_weight is None
            else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        )
        self._forget_everything()
        with _precision(self.dtype):
            if isinstance(self.n_components, Real) and not isinstance(self.n_components, Integral):
                self._fit_share(X, weights, float(self.n_components))
            else:
                k = min(X.shape) if self.n_components is None else int(self.n_components)
                self._fit_count(X, weights, self._possible(k, X.shape))
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> EigenGamePCA:
        """Go on with a batch of any size, at least one row; the remembered game only."""
        first = not hasattr(self, "_memory")
        self._validate_params()
        X = self._checked_rows(X, reset=first)
        weights = (
            None
            if sample_weight is None
            else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        )
        with _precision(self.dtype):
            if first:
                self._begin_stream(X)
            self._take_stream(X, weights)
        return self

    def merge(self, other: EigenGamePCA) -> EigenGamePCA:
        """Return an estimator that has seen what both have: two streams in one.

        Both must have been fitted by the remembered game, with one pass or by `partial_fit`, with the
        same parameters.
        """
        for name, one in (("self", self), ("other", other)):
            if not hasattr(one, "_memory"):
                raise ValueError(
                    f"{name} has no memory to merge: fit it by partial_fit, or with passes=1."
                )
        if self._memory.state.memory.players.shape != other._memory.state.memory.players.shape:
            raise ValueError(
                f"players have shapes {self._memory.state.memory.players.shape} and "
                f"{other._memory.state.memory.players.shape}: give both the same n_components and extra."
            )
        merged = EigenGamePCA(**self.get_params())
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(merged, name, getattr(self, name))
        with _precision(self.dtype):
            merged._memory, merged._game, merged._origin = _merged(self, other)
            merged._name_memory()
        return merged

    def certify(self, X: Any) -> Any:
        """Measure the components on X (five passes over it) and return their certificate.

        It is also kept as `certificate_`. The mean is that of the fit.
        """
        check_is_fitted(self)
        X = self._checked_rows(X, reset=False)
        with _precision(self.dtype):
            source = self._source(X, None, self._batch(X.shape, self.n_players_))
            players = getattr(self, "_players", self.components_)
            mean = jnp.asarray(self.mean_ - self._shift(), self.dtype) if self.center else None
            self.certificate_ = fitting.certify(
                source,
                jnp.asarray(players, self.dtype),
                mean,
                self.n_components_,
                scale=max(X.shape[0] - 1, 1),
                seed=self._seed() + 1,
            )
        return self.certificate_

    def _fit_share(self, X: Any, weights: Any, share: float) -> None:
        """Fit more and more components until they explain the share asked for."""
        k = min(16, *X.shape)
        while True:
            self._fit_count(X, weights, k)
            reached = np.cumsum(self.explained_variance_ratio_)
            if reached[-1] >= share or k == min(X.shape):
                break
            k = min(2 * k, *X.shape)
        keep = int(np.searchsorted(reached, share) + 1)
        self._fit_count(X, weights, min(keep, k))

    def _fit_count(self, X: Any, weights: Any, k: int) -> None:
        """Fit k components by the route asked for."""
        route = self._route(X, k)
        if route == "remembered":
            self._fit_remembered(X, weights, k)
        elif route == "covariance":
            self._fit_covariance(X, weights, k)
        else:
            self._fit_steps(X, weights, k, route)

    def _fit_remembered(self, X: Any, weights: Any, k: int) -> None:
        game, seed = self._make_game(), self._seed()
        players = self._players_for(k, X.shape[1])
        batch = self._batch(X.shape, players)
        self._origin = _far_origin(X, batch, self.center, self.dtype)
        source = self._source(X, weights, batch)
        memory = fitting.one_pass(game, source, k, self.dtype, seed, None)
        self._memory, self._game = memory, game
        if self._allowed_passes() == 1:
            self._name_memory()
            return
        known = memory.state.memory
        found = fitting.refined(
            source,
            known.players,
            memory.moments.mean if self.center else None,
            k,
            route="remembered",
            used=1,
            passes=self._allowed_passes(),
            tol=self.tol,
            scale=self._scale(memory.moments, memory.rows),
            seed=seed + 1,
        )
        del self._memory  # refined players are no memory: merge and partial_fit would not be exact
        self._name(found, memory.moments, memory.rows, known.players.shape[0])

    def _fit_covariance(self, X: Any, weights: Any, k: int) -> None:
        players = self._players_for(k, X.shape[1])
        batch = self._batch(X.shape, players)
        self._origin = _far_origin(X, batch, self.center, self.dtype)
        source = self._source(X, weights, batch)
        rows, moments = fitting.by_covariance(source, k, 0, self.dtype, self._seed(), self.center)
        start = Remembered(extra=players - k).init(
            fitting.random_players(self._seed(), k, X.shape[1], self.dtype)
        )
        found = fitting.refined(
            lambda: [rows],
            start.memory.players,
            None,
            k,
            route="covariance accumulated in one pass, played on by best responses",
            used=0,
            passes=200,
            tol=self.tol or 1e-3,
            scale=self._scale(moments, X.shape[0]),
            seed=self._seed() + 1,
        )
        found = found._replace(ending=Ending(found.ending.outcome, found.ending.route, 1))
        self._name(found, moments, X.shape[0], players)

    def _fit_steps(self, X: Any, weights: Any, k: int, route: str) -> None:
        batch = self._batch(X.shape, k)
        self._origin = _far_origin(X, batch, self.center, self.dtype)
        source = self._source(X, weights, batch)
        moments = fitting.no_moments(X.shape[1], jnp.dtype(self.dtype))
        for rows in source():
            moments = fitting.merge_moments(moments, fitting.batch_moments(rows))
        mean = moments.mean if self.center else None
        unit = max(
            fitting.first_scale(source.batch(0), mean), float(jnp.finfo(self.dtype).tiny) ** 0.5
        )
        algorithm = self._make_steps(route, source, k, mean, unit)
        passes = self._allowed_passes()
        players = fitting.by_steps(
            algorithm, source, k, self.dtype, self._seed(), passes, mean, unit
        )
        found = fitting.certificate(
            *fitting.settled(source, players, mean, k).players,
            k,
            scale=self._scale(moments, X.shape[0]),
        )
        finite = bool(np.isfinite(np.asarray(players)).all())
        outcome = Outcome.STREAM_ENDED if finite else Outcome.DIVERGED
        strengths = found.rayleigh * self._scale(moments, X.shape[0])
        self._name(
            fitting.Found(
                np.asarray(players), strengths, found, Ending(outcome, route, passes + 2)
            ),
            moments,
            X.shape[0],
            k,
        )

    def _make_steps(self, route: str, source: Any, k: int, mean: Any, unit: float) -> Any:
        """Return the algorithm of that name with a step size that suits batches of unit size."""
        options: dict[str, Any] = {}
        fields = getattr(REGISTRY[route], "__dataclass_fields__", {})
        if "step_size" in fields:
            options["step_size"] = 0.25 if self.step_size is None else self.step_size
        if route == "sequential":
            game = Remembered(center=False)
            memory = fitting.begin(game, k, source.shape[1], self.dtype, self._seed())
            for rows in source():
                memory = fitting.take(game, memory, rows, 0)
            values = np.asarray(memory.state.memory.strengths, np.float64) / unit**2
            options["eigenvalues"] = tuple(
                np.append(values, 0.0)[: k + 1] / max(1, -(-source.shape[0] // source.size))
            )
        return make(route, **options)

    # ------------------------------------------------------------------ streams

    def _begin_stream(self, X: Any) -> None:
        if self.algorithm not in ("remembered", "auto"):
            raise ValueError(
                f"algorithm={self.algorithm!r} cannot go on batch by batch here: use 'remembered', "
                "or eigengame.play_stream."
            )
        if isinstance(self.n_components, Real) and not isinstance(self.n_components, Integral):
            raise ValueError(f"n_components={self.n_components}: a stream needs a whole number.")
        d = X.shape[1]
        k = min(X.shape) if self.n_components is None else int(self.n_components)
        self._game = self._make_game()
        self._origin = _far_origin(X, len_of(X), self.center, self.dtype)
        self._memory = fitting.begin(
            self._game, self._possible(k, (k, d)), d, self.dtype, self._seed()
        )

    def _take_stream(self, X: Any, weights: Any) -> None:
        size = self._batch(X.shape, self._memory.state.memory.players.shape[0])
        size = min(size, _room_for(X.shape[0]))
        source = self._source(X, np.ones(X.shape[0]) if weights is None else weights, size)
        for begin in range(0, X.shape[0], size):
            count = min(size, X.shape[0] - begin)
            self._memory = fitting.take(self._game, self._memory, source.batch(begin), count)
        self._name_memory()

    # ------------------------------------------------------------------ choices

    def _route(self, X: Any, k: int) -> str:
        if self.algorithm != "auto":
            if self.algorithm not in ("remembered",) and sparse.issparse(X):
                raise TypeError(
                    f"algorithm={self.algorithm!r} needs dense rows: use 'remembered' for sparse ones."
                )
            return self.algorithm
        # Multiplications: accumulating M takes n d^2, the remembered game 3 n K d and more passes.
        few = X.shape[1] <= 4 * self._players_for(k, X.shape[1]) and not sparse.issparse(X)
        return "covariance" if few and self.forget == 1 else "remembered"

    def _make_game(self) -> Remembered:
        return Remembered(
            extra=self.extra if self.extra == "auto" else int(self.extra),  # type: ignore[arg-type]
            rounds=1 if self.rounds == "auto" else int(self.rounds),
            center=self.center,
            forget=float(self.forget),
            seed=self._seed() + 7,
        )

    def _players_for(self, k: int, d: int) -> int:
        return min(d, k + (default_extra(k) if self.extra == "auto" else int(self.extra)))

    def _batch(self, shape: tuple[int, int], players: int) -> int:
        """Return the rows for each batch: enough to keep products busy, at most 64 MiB of them."""
        if self.batch_size != "auto":
            return min(int(self.batch_size), shape[0])
        fits = max(1, 2**26 // (shape[1] * np.dtype(self.dtype).itemsize))
        return int(min(shape[0], max(2 * players, min(1024, fits))))

    def _allowed_passes(self) -> int:
        return (
            fitting.MOST_PASSES if self.tol is not None and self.passes == 1 else int(self.passes)
        )

    def _possible(self, k: int, shape: tuple[int, int]) -> int:
        if k > min(shape):
            raise ValueError(
                f"n_components={k} is more than {min(shape)}, the smaller of n_samples={shape[0]} and "
                f"n_features={shape[1]}: give a number from 1 to {min(shape)}."
            )
        return k

    def _seed(self) -> int:
        if not hasattr(self, "_drawn"):
            drawn = check_random_state(self.random_state).randint(2**31 - 64)
            self._drawn = (
                int(self.random_state) if isinstance(self.random_state, Integral) else int(drawn)
            )
        return self._drawn

    def _source(self, X: Any, weights: Any, size: int) -> Any:
        return as_source(X, size, dtype=np.dtype(self.dtype), weights=weights, origin=self._origin)

    def _checked_rows(self, X: Any, *, reset: bool, ensure_min_samples: int = 1) -> Any:
        return validate_data(
            self,
            _to_numpy(X),
            reset=reset,
            accept_sparse=["csr"],
            dtype=[np.float64, np.float32, np.uint8, np.int8, np.int16, np.float16],
            ensure_min_samples=ensure_min_samples,
        )

    # ------------------------------------------------------------------ naming

    def _forget_everything(self) -> None:
        for name in ("_memory", "_game", "_players", "_drawn"):
            if hasattr(self, name):
                delattr(self, name)

    def _scale(self, moments: Any, rows: int) -> float:
        """Return what M is divided by to be a covariance."""
        weight = float(moments.weight)
        return max(weight - 1, 1e-12) if self.forget < 1 or weight != rows else max(rows - 1, 1)

    def _shift(self) -> Any:
        return 0.0 if self._origin is None else self._origin

    def _name_memory(self) -> None:
        """Name what a memory holds: a fit of one pass, or a stream so far."""
        memory = self._memory
        known = memory.state.memory
        k = memory.state.like.shape[0]
        scale = self._scale(memory.moments, memory.rows)
        found = fitting.Found(
            np.asarray(known.players[:k]),
            np.asarray(known.strengths[:k], np.float64),
            fitting.estimated(memory, k, scale),
            Ending(Outcome.STREAM_ENDED, "remembered", 1),
        )
        self._players = np.asarray(known.players)
        self._name(found, memory.moments, memory.rows, known.players.shape[0])

    def _name(self, found: Any, moments: Any, rows: int, players: int) -> None:
        scale = self._scale(moments, rows)
        strengths = np.maximum(np.asarray(found.strengths, np.float64), 0)
        signs = np.sign(
            found.components[
                np.arange(len(found.components)), np.abs(found.components).argmax(axis=1)
            ]
        )
        self.components_ = found.components * np.where(signs == 0, 1, signs)[:, None].astype(
            self.dtype
        )
        self.explained_variance_ = strengths / scale
        self.singular_values_ = np.sqrt(strengths)
        shift = np.asarray(self._shift(), np.float64)
        centre = np.asarray(moments.mean, np.float64) + shift
        self.var_ = np.asarray(moments.scatter, np.float64) / max(float(moments.weight), 1e-300)
        self.mean_ = centre if self.center else np.zeros_like(centre)
        total = float(np.sum(np.asarray(moments.scatter, np.float64)))
        if not self.center:
            total += float(moments.weight) * float(np.sum(np.square(centre)))
        self.explained_variance_ratio_ = (
            strengths / total if total > 0 else np.zeros_like(strengths)
        )
        left = min(rows, self.n_features_in_) - len(strengths)
        self.noise_variance_ = max(total - strengths.sum(), 0) / scale / left if left > 0 else 0.0
        self.n_components_ = len(strengths)
        self.n_samples_seen_ = rows
        self.n_players_ = players
        self.certificate_ = found.certificate
        self.outcome_ = found.ending
        self.n_passes_ = found.ending.passes

    # ------------------------------------------------------------------ using

    def transform(self, X: Any) -> np.ndarray:
        """Return the scores of X on the components, shape (n_samples, n_components_)."""
        check_is_fitted(self)
        X = self._checked_rows(X, reset=False)
        components = self.components_.astype(_result_dtype(X))
        # The projected mean is subtracted from the scores: the data is never copied.
        scores = X @ components.T - (self.mean_ @ self.components_.T.astype(np.float64)).astype(
            components.dtype
        )
        if self.whiten:
            scores /= _spread(self.explained_variance_).astype(components.dtype)
        return scores

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return rows from scores, shape (n_samples, n_features_in_)."""
        check_is_fitted(self)
        X = np.asarray(X)
        dtype = _result_dtype(X)
        if self.whiten:
            X = X * _spread(self.explained_variance_).astype(dtype)
        return X @ self.components_.astype(dtype) + self.mean_.astype(dtype)

    def get_covariance(self) -> np.ndarray:
        """Return the model's covariance: components, and noise in every other direction."""
        check_is_fitted(self)
        components = self.components_.astype(np.float64)
        excess = np.maximum(self.explained_variance_ - self.noise_variance_, 0)
        covariance = (components.T * excess) @ components
        covariance[np.diag_indices_from(covariance)] += self.noise_variance_
        return covariance

    def get_precision(self) -> np.ndarray:
        """Return the inverse of the model's covariance."""
        check_is_fitted(self)
        if self.noise_variance_ <= 0:
            return linalg.pinvh(self.get_covariance())
        components = self.components_.astype(np.float64)
        excess = np.maximum(self.explained_variance_ - self.noise_variance_, 0)
        share = excess / (self.noise_variance_ * (self.noise_variance_ + excess))
        precision = -(components.T * share) @ components
        precision[np.diag_indices_from(precision)] += 1 / self.noise_variance_
        return precision

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-likelihood of each row under the probabilistic model, shape (n_samples,)."""
        check_is_fitted(self)
        X = self._checked_rows(X, reset=False)
        precision = self.get_precision()
        away = (X.toarray() if sparse.issparse(X) else X) - self.mean_
        _, log_det = np.linalg.slogdet(precision)
        norm = log_det - self.n_features_in_ * np.log(2 * np.pi)
        return 0.5 * (norm - np.sum(away * (away @ precision), axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of the rows."""
        return float(np.mean(self.score_samples(X)))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@contextlib.contextmanager
def _precision(dtype: str) -> Iterator[None]:
    """Play in this precision; small LAPACK problems on one thread, where they are fastest."""
    with jax.enable_x64(dtype == "float64"), threadpool_limits(1, user_api="blas"):
        yield


def _merged(one: EigenGamePCA, other: EigenGamePCA) -> tuple[Any, Any, Any]:
    """Return the memory of both, the game, and the origin it is told from."""
    game, theirs = one._game, other._memory
    shift = np.asarray(other._shift(), np.float64) - np.asarray(one._shift(), np.float64)
    if np.any(shift != 0):
        moved = jnp.asarray(shift, one.dtype)
        state = theirs.state
        state = state._replace(memory=state.memory._replace(mean=state.memory.mean + moved))
        theirs = theirs._replace(
            state=state, moments=theirs.moments._replace(mean=theirs.moments.mean + moved)
        )
    state = game.merge(one._memory.state, theirs.state)
    moments = fitting.merge_moments(one._memory.moments, theirs.moments)
    rows = one._memory.rows + theirs.rows
    larger = one._memory if one._memory.rows >= theirs.rows else theirs
    earlier = game.components(larger.state)
    return fitting.Memory(state, moments, earlier, rows, 2 * rows), game, one._origin


def _to_numpy(X: Any) -> Any:
    """Return JAX arrays and torch tensors as NumPy arrays; leave everything else to scikit-learn."""
    if isinstance(X, jax.Array):
        return np.asarray(X)
    if type(X).__module__.split(".")[0] == "torch":
        return X.detach().cpu().numpy()
    return X


def _result_dtype(X: Any) -> Any:
    """Return float32 for float32 rows, else float64."""
    return np.float32 if X.dtype == np.float32 else np.float64


def _spread(variance: np.ndarray) -> np.ndarray:
    """Return standard deviations to divide by, none of them zero."""
    spread = np.sqrt(variance)
    return np.where(spread > np.finfo(np.float64).tiny, spread, 1)


def _room_for(rows: int) -> int:
    """Return a batch shape for a ragged stream: few shapes, so few compilations."""
    return max(8, 1 << (rows - 1).bit_length())


def len_of(X: Any) -> int:
    """Return the number of rows."""
    return int(X.shape[0])


def _far_origin(X: Any, rows: int, center: bool, dtype: str) -> np.ndarray | None:
    """Return the mean of the first rows where it is far from zero, to be subtracted on reading.

    Where means are within some thirty standard deviations, float32 scores lose nothing that matters.
    """
    if not center or sparse.issparse(X):
        return None
    block = np.asarray(X[: min(rows, 1024)], np.float64)
    mean, spread = block.mean(axis=0), block.var(axis=0).sum()
    if np.sum(mean**2) <= 30**2 * spread:
        return None
    return mean.astype(dtype).astype(np.float64)

"""Methods of a fitted estimator that give its components to other libraries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sklearn.utils.validation import check_is_fitted

from eigengame.export import files, lora, scikit_learn, torch_modules
from eigengame.model import Model
from eigengame.preparation import Preparation

if TYPE_CHECKING:
    from sklearn.decomposition import PCA


class Exports:
    """Components as torch modules, adapters, a scikit-learn estimator, and files."""

    whiten: bool
    _preparation: Preparation | None

    def _model(self) -> Model:
        raise NotImplementedError

    def projector(self, *, dtype: Any = None, device: Any = None, prepared: bool = False) -> Any:
        """Return a torch module that computes scores (..., k) of rows (..., d), as `transform` without whitening.

        Parameters
        ----------
        dtype : torch dtype or str, optional
            Dtype of the module, which must be that of its input. Default: float32.
        device : torch device, optional
        prepared : bool
            Whether rows are prepared before the module is called. Required for a model of prepared data, because
            the module does not contain the preparation.

        Returns
        -------
        torch Module
            Its buffers are `weight` (k, d) and `bias` (k,): scores are ``x @ weight.T + bias``. They are not
            trained. The state dict also fits ``torch.nn.Linear(d, k)``.
        """
        model = self._exported(prepared)
        return torch_modules.affine_module(model, whiten=False, dtype=dtype, device=device)

    def whitener(self, *, dtype: Any = None, device: Any = None, prepared: bool = False) -> Any:
        """Return a torch module that computes scores of unit variance, as `transform` with ``whiten=True``.

        Scores of components without variance are not scaled. Parameters and result are those of `projector`.
        """
        model = self._exported(prepared)
        return torch_modules.affine_module(model, whiten=True, dtype=dtype, device=device)

    def lora_init(
        self,
        rank: int,
        d_out: int | None = None,
        *,
        scale: Literal["orthonormal", "uniform", "whiten"] | float = "orthonormal",
        prepared: bool = False,
    ) -> lora.LoraInit:
        r"""Return initial values of a low-rank adapter of a layer, from a fit on the layer's inputs.

        The adapter adds $\frac{\alpha}{r} B A x$ to the output of the layer. $B = 0$, so that the output does not
        change at first. The rows of $A$ are the first components of the inputs, as in PEFT's EVA. Fit
        ``activations(model, loader, "fc", side="inputs")`` for a layer `fc` of a torch network, with
        ``rows="tokens"`` if its inputs have positions, or ``fit_layers(..., side="inputs")`` for several layers.

        Parameters
        ----------
        rank : int
            At most the number of components.
        d_out : int, optional
            Number of outputs of the layer. Default: that of its inputs.
        scale : {"orthonormal", "uniform", "whiten"} or float
            Length of the rows of A: 1; $1/\sqrt3$, the root mean square length of the usual random values, which
            are uniform in $\pm 1/\sqrt d$; such that each entry of $A (x - \mu)$ has unit variance over the inputs;
            or a number.
        prepared : bool
            As in `projector`.

        Returns
        -------
        LoraInit
            `a` (rank, d_in) and `b` (d_out, rank), in float32.
        """
        return lora.lora_init(self._exported(prepared), rank, d_out, scale=scale)

    def to_sklearn(self, *, prepared: bool = False) -> PCA:
        """Return a fitted `sklearn.decomposition.PCA`, whose scores agree with those of `transform`."""
        self._exported(prepared)
        return scikit_learn.to_sklearn(self)

    def export(self, path: Any, *, prepared: bool = False) -> Path:
        """Write the components to a file for other libraries, and return its path.

        The ending selects the format. An existing file is replaced atomically. To load a model in eigengame, use
        `save`: exported files lack the certificate and the state of the stream.

        Parameters
        ----------
        path : path
            `.npz`: the attributes of the estimator as arrays, and `weight` and `bias`, with which scores are
            ``x @ weight.T + bias``. `.pt`: the state dict of `projector`, or of `whitener` if this estimator
            whitens. `.joblib`: the estimator of `to_sklearn`, which is a pickle.
        prepared : bool
            As in `projector`.
        """
        return files.export(self, self._exported(prepared), path)

    def _exported(self, prepared: bool) -> Model:
        """Return the model; raise ValueError if its preparation would be lost."""
        check_is_fitted(self)
        if self._preparation is not None and not prepared:
            steps = ", ".join(step.kind for step in self._preparation.steps)
            raise ValueError(
                f"this model prepares its rows ({steps}), which other libraries do not: prepare them yourself and "
                "give prepared=True (--prepared), or fit rows that are prepared already."
            )
        return self._model()

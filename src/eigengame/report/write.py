"""`write_report`: write the HTML report of a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eigengame._system.atomic_write import atomic_write
from eigengame.estimator.inputs import is_other, with_columns_of_fit
from eigengame.report import facts
from eigengame.report.arguments import (
    ReportError,
    check_image_shape,
    check_model,
    check_most,
    check_names,
    check_path,
)
from eigengame.report.label_encoding import check_labels
from eigengame.report.page import render_page
from eigengame.report.scatter import scatter
from eigengame.report.views import layers, loadings, pictures
from eigengame.sources import as_source


def write_report(
    model: Any,
    path: Any,
    *,
    data: Any = None,
    labels: Any = None,
    feature_names: Any = None,
    image_shape: Any = None,
    most: int = 5000,
    title: str | None = None,
) -> Path:
    """Write a report on a fitted model as one HTML file, and return its path.

    The page works offline, in light and dark mode, on phones and on wide screens.

    Parameters
    ----------
    model : EigenGamePCA
        Fitted or loaded.
    path : path
        File to write; ends in `.html`. An existing file is replaced atomically.
    data : any input of `EigenGamePCA.transform_blocks`, optional
        Rows for the scatter plot of scores. Read once, block by block.
    labels : sequence of length n_samples, optional
        Colours of the rows: strings and few whole numbers are classes, other numbers are a colour scale.
    feature_names : sequence of str, optional
        Default: the feature names of the fit.
    image_shape : tuple of (height, width) or (height, width, channels), or "guess", optional
        Shape of a row, if rows are images. Default: the `image_shape` of the data's source. "guess" stands for a
        square image.
    most : int
        Maximum number of rows to draw: an even, reproducible sample.
    title : str, optional
        Default: the name of the data that the model was fitted to.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> digits = load_digits()
    >>> pca = EigenGamePCA(8, tol=1e-3, random_state=0).fit(digits.data)  # doctest: +SKIP
    >>> write_report(pca, "digits.html", data=digits.data, labels=digits.target,
    ...              image_shape=(8, 8))  # doctest: +SKIP
    """
    check_model(model)
    target, most = check_path(path), check_most(most)
    if labels is not None and data is None:
        raise ReportError("labels were given without data: give the rows that they belong to.")
    names = check_names(
        getattr(model, "feature_names_in_", None) if feature_names is None else feature_names,
        model.n_features_in_,
    )
    checked_labels = check_labels(labels)
    if data is not None and is_other(data):
        data = as_source(with_columns_of_fit(model, data))
    shape = (
        _image_shape(model, data)
        if image_shape is None
        else check_image_shape(image_shape, model.n_features_in_)
    )
    scores = None
    if data is not None:
        rows = data.shape[0] if hasattr(data, "shape") else len(data)
        scores = scatter(model, data, rows, checked_labels, most, getattr(labels, "name", None))
    page = render_page(
        title or _default_title(model),
        {
            "rows": int(model.n_samples_seen_),
            "features": int(model.n_features_in_),
            "passes": int(model.n_passes_),
            "route": model.outcome_.route,
            "source": facts.source_name(model),
            "outcome": facts.outcome(model),
            "certificate": facts.certificate(model.certificate_, model.tol_),
            "components": facts.components(model),
            "run": facts.run(model),
            "scores": scores,
            "pictures": None if shape is None else pictures(model, shape),
            "loadings": loadings(model, names) if shape is None else None,
            "layers": layers(model),
        },
    )
    with atomic_write(target) as draft:
        draft.write_text(page, encoding="utf-8")
    return target


def _image_shape(model: Any, data: Any) -> tuple[int, int, int] | None:
    """Return the image shape declared by the data, or else by the source of the fit."""
    fitted = facts.fingerprint(model) or {}
    declared = getattr(data, "image_shape", None) or fitted.get("image_shape")
    try:
        return check_image_shape(declared, model.n_features_in_)
    except ReportError:  # images were not requested explicitly
        return None


def _default_title(model: Any) -> str:
    """Return a title with the name of the data, if known."""
    name = facts.source_name(model)
    return "Principal components" if name is None else f"Principal components of {Path(name).name}"

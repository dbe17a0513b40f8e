"""From a fitted model, and data where there is some, to a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eigengame._system.files import written_whole
from eigengame.estimator.inputs import is_other, with_columns_of_fit
from eigengame.report import facts
from eigengame.report._check import (
    ReportError,
    check_model,
    checked_image_shape,
    checked_most,
    checked_names,
    checked_path,
)
from eigengame.report.labels import checked_labels
from eigengame.report.page import filled
from eigengame.report.scores import scatter
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
    """Write one HTML file that shows a fitted model, and return its path.

    It works offline, in light and dark, on a phone and on a wide screen.

    Parameters
    ----------
    model : EigenGamePCA
        Fitted or loaded.
    path : path
        Where to write; ends in `.html`. A file that is there is replaced only by a whole one.
    data : anything that `EigenGamePCA.transform_blocks` takes, optional
        Rows to place by their scores; it is read once, block by block.
    labels : sequence of length n_samples, optional
        What to colour the rows by: texts or few whole numbers as classes, other numbers as a scale.
    feature_names : sequence of str, optional
        By default those that the model was fitted with.
    image_shape : tuple of (height, width) or (height, width, channels), or "guess", optional
        Where rows are images. By default what the data's source says of itself; "guess" takes a square.
    most : int
        Rows to draw at most, chosen evenly and always the same.
    title : str, optional

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> digits = load_digits()
    >>> pca = EigenGamePCA(8, tol=1e-3, random_state=0).fit(digits.data)  # doctest: +SKIP
    >>> write_report(pca, "digits.html", data=digits.data, labels=digits.target,
    ...              image_shape=(8, 8))  # doctest: +SKIP
    """
    check_model(model)
    target, most = checked_path(path), checked_most(most)
    if labels is not None and data is None:
        raise ReportError("labels were given without data: give the data that they belong to.")
    names = checked_names(
        getattr(model, "feature_names_in_", None) if feature_names is None else feature_names,
        model.n_features_in_,
    )
    kinds, called = checked_labels(labels), getattr(labels, "name", None)
    if data is not None and is_other(data):
        data = as_source(with_columns_of_fit(model, data))
    shape = (
        _image_shape(model, data)
        if image_shape is None
        else checked_image_shape(image_shape, model.n_features_in_)
    )
    heading = title or _title(model)
    placed = None
    if data is not None:
        rows = data.shape[0] if hasattr(data, "shape") else len(data)
        placed = scatter(model, data, rows, kinds, most, called)
    page = filled(
        heading,
        {
            "rows": int(model.n_samples_seen_),
            "features": int(model.n_features_in_),
            "passes": int(model.n_passes_),
            "route": model.outcome_.route,
            "source": facts.source_name(model),
            "outcome": facts.outcome(model),
            "certificate": facts.certificate(model.certificate_),
            "components": facts.components(model),
            "run": facts.run(model),
            "scores": placed,
            "pictures": None if shape is None else pictures(model, shape),
            "loadings": loadings(model, names) if shape is None else None,
            "layers": layers(model),
        },
    )
    with written_whole(target) as draft:
        draft.write_text(page, encoding="utf-8")
    return target


def _image_shape(model: Any, data: Any) -> tuple[int, int, int] | None:
    """Return the shape that the data, or else the source of the fit, says its rows have as images."""
    said = getattr(data, "image_shape", None) or (facts.fingerprint(model) or {}).get("image_shape")
    try:
        return checked_image_shape(said, model.n_features_in_)
    except ReportError:  # nobody asked for pictures of it
        return None


def _title(model: Any) -> str:
    """Return what the page is called where nobody says: the source's name."""
    name = facts.source_name(model)
    return "Principal components" if name is None else f"Principal components of {Path(name).name}"

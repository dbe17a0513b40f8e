"""Models that look fitted, and readers of the data in a page."""

import base64
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from eigengame import Certificate, EigenGamePCA, Status
from eigengame.solver.results.outcome import Outcome
from eigengame.sources import Layers

HOSTILE = "</script><script>alert('x')</script><b>&amp;"


def make_model(k=3, d=12, kind="certified", seed=0, route="remembered"):
    """Return an estimator with the attributes of a fit: k components of d features."""
    random = np.random.default_rng(seed)
    variance = 1 / np.arange(1, k + 1)
    unknown = np.full(k, np.nan)
    measured = kind != "estimate"
    model = EigenGamePCA(k, random_state=0)
    directions = random.normal(size=(k, d))
    model.components_ = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    model.explained_variance_ = variance
    model.explained_variance_ratio_ = variance / (variance.sum() + 1)
    model.singular_values_ = np.sqrt(variance)
    model.mean_ = random.normal(size=d)
    model.var_ = np.ones(d)
    model.noise_variance_ = 0.01
    model.n_components_, model.n_features_in_, model.n_players_ = k, d, k + 2
    model.n_samples_seen_, model.n_passes_ = 1234, 7 if measured else 1
    angle = np.geomspace(1e-4, math.pi / 2, k) if k > 1 else np.array([1e-3])
    model.tol_ = None
    model.certificate_ = Certificate(
        kind=kind,
        rayleigh=variance,
        residual=variance / 100 if measured else unknown,
        gap=variance / 10,
        angle=angle,
        level=0.02,
        confidence=0.999 if kind == "certified" else 0.0,
        gradient_angle=3 * angle if measured else unknown,
        penalty_ratio=np.append(0, np.full(k - 1, 1e-6)) if measured else unknown,
    )
    outcome = Status.CONVERGED if measured else Status.STREAM_ENDED
    model.outcome_ = Outcome(outcome, route, model.n_passes_)
    return model


def make_partly_certified_model():
    """Return a model after one pass: bounds for four of six components, estimates for all."""
    model = make_model(k=6)
    angle = np.array([0.01, 0.2, 0.6, 1e-3, math.pi / 2, math.pi / 2])
    model.certificate_ = replace(
        model.certificate_,
        angle=angle,
        level=0.18,
        estimate=np.array([1e-3, 0.01, 0.02, 1e-4, 0.03, 0.04]),
    )
    return model


def make_layered_model(k=3):
    """Return a model of activations: 12 features in two layers, one with channels last."""
    model = make_model(k)
    model.layers_ = Layers.of([("conv1", (2, 2, 2), True), (HOSTILE, (4,), False)])
    return model


def read_page(path):
    """Return the data in a page."""
    page = Path(path).read_text(encoding="utf-8")
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(found)


def dequantize(column):
    """Return the numbers that `quantize_range` encoded."""
    codes = np.frombuffer(base64.b64decode(column["codes"]), "<u2")
    values = column["low"] + codes / 65534 * (column["high"] - column["low"])
    return np.where(codes == 65535, np.nan, values)

"""Networks by what people type: a library's name, a function in a file, a file of torch; and their weights."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILES = (".pt", ".pth")
NESTED = ("state_dict", "model")
"""Where training scripts keep the weights in what they save."""


def opened_network(text: str, weights: Path | None, trust: bool) -> Any:
    """Return the module that MODEL means, with weights where given.

    Parameters
    ----------
    text : str
        `torchvision:NAME`, `timm:NAME`, `file.py:function` or the path of a saved module.
    weights : path, optional
    trust : bool
        Whether a pickled module may be read, which can run any code.
    """
    import torch

    where, _, name = text.partition(":")
    if where in ("torchvision", "timm") and name:
        model = _from_library(where, name)
    elif Path(where).suffix == ".py" and name:
        model = _from_code(Path(where), name)
    elif Path(text).suffix in FILES:
        model = _from_pickle(Path(text), trust)
    else:
        raise ValueError(
            f"MODEL {text!r}: give torchvision:resnet50, timm:NAME, file.py:function, or a file that ends in "
            f"{' or '.join(FILES)}."
        )
    if not isinstance(model, torch.nn.Module):
        raise ValueError(f"{text} gives a {type(model).__name__}: a torch.nn.Module is needed.")
    if weights is not None:
        load_weights(model, weights)
    return model


def _from_library(library: str, name: str) -> Any:
    """Return a network of torchvision or timm, with random weights."""
    if library == "timm":
        timm = importlib.import_module("timm")
        known, make = timm.list_models, lambda: timm.create_model(name, pretrained=False)
    else:
        models = importlib.import_module("torchvision.models")
        known, make = models.list_models, lambda: models.get_model(name, weights=None)
    names = list(known())
    if name not in names:
        near = difflib.get_close_matches(name, names, n=5, cutoff=0.4)
        raise ValueError(f"{library} has no {name!r}; near it are {', '.join(near) or 'none'}.")
    return make()


def _from_code(path: Path, name: str) -> Any:
    """Return what a function of a Python file returns."""
    if not path.is_file():
        raise ValueError(f"{path} does not exist: check the path (from {Path.cwd()}).")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = getattr(module, name, None)
    if not callable(made):
        there = [one for one in vars(module) if callable(getattr(module, one)) and one[0] != "_"]
        raise ValueError(f"{path} has no function {name!r}: it has {', '.join(there) or 'none'}.")
    return made()


def _from_pickle(path: Path, trust: bool) -> Any:
    """Return a module that torch.save wrote whole."""
    import torch

    found = _read(
        path,
        lambda: torch.load(path, map_location="cpu", weights_only=not trust),
        "holds a whole module, and reading one may run any code: give --trust if you know where it comes from, or "
        "the network by file.py:function and its weights by --weights.",
    )
    if isinstance(found, dict):
        raise ValueError(
            f"{path} holds weights and no network: give it by --weights, and the network by file.py:function."
        )
    return found


def load_weights(model: Any, path: Path) -> None:
    """Put the weights of a file into a network; all must be there, and no others."""
    weights = _weights_of(path)
    try:
        missing, unexpected = model.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        said = " ".join(str(error).split())
        raise ValueError(f"{path} does not fit the network: {said[:300]}.") from None
    # A count of batches says nothing about a network that is not trained further.
    missing = [name for name in missing if not name.endswith("num_batches_tracked")]
    if missing or unexpected:
        lacks = f"lacks {', '.join(missing[:3])}" if missing else ""
        has = f"has {', '.join(unexpected[:3])} beside" if unexpected else ""
        raise ValueError(
            f"{path} {' and '.join(filter(None, (lacks, has)))}: give the weights of this network."
        )


def _weights_of(path: Path) -> dict[str, Any]:
    """Return the arrays of a file, by name, as tensors."""
    if path.suffix not in (".safetensors", ".npz", *FILES):
        raise ValueError(f"{path}: give weights as .safetensors, .npz, {' or '.join(FILES)}.")
    found = _read(
        path,
        lambda: _tensors_of(path),
        "holds more than weights, which may run any code when it is read: save model.state_dict().",
    )
    for name in NESTED:
        found = (
            found[name] if isinstance(found, dict) and isinstance(found.get(name), dict) else found
        )
    return dict(found)


def _tensors_of(path: Path) -> Any:
    """Return what a file of weights holds, by its ending."""
    import numpy as np
    import torch

    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    if path.suffix == ".npz":
        with path.open("rb") as file, np.load(file) as arrays:
            return {name: torch.from_numpy(np.asarray(arrays[name])) for name in arrays.files}
    return torch.load(path, map_location="cpu", weights_only=True)


def _read(path: Path, read: Callable[[], Any], more: str) -> Any:
    """Return what is read of a file; `more` says what to do about one with more in it than numbers."""
    if not path.is_file():
        raise ValueError(f"{path} does not exist: check the path (from {Path.cwd()}).")
    try:
        return read()
    # Every format has errors of its own for a file that is cut off.
    except Exception as error:
        said = str(error).split("\n")[0].split(". ")[0]
        if isinstance(error, pickle.UnpicklingError) and _of_torch(path):
            raise ValueError(f"{path} {more}") from None
        raise ValueError(
            f"{path} cannot be read ({said or type(error).__name__}): if it was cut off, fetch it again."
        ) from None


def _of_torch(path: Path) -> bool:
    """Say whether a file begins as torch writes it today, a zip archive, or once did, a pickle."""
    with path.open("rb") as file:
        return file.read(2) in (b"PK", b"\x80\x02")

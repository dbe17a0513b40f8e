"""Networks by what people type: a library's name, a function in a file, a file of torch; and their weights."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pickle
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

    if not path.is_file():
        raise ValueError(f"{path} does not exist: check the path (from {Path.cwd()}).")
    try:
        found = torch.load(path, map_location="cpu", weights_only=not trust)
    except pickle.UnpicklingError:
        raise ValueError(
            f"{path} holds a whole module, and reading one may run any code: give --trust if you know where it "
            "comes from, or the network by file.py:function and its weights by --weights."
        ) from None
    if isinstance(found, dict):
        raise ValueError(
            f"{path} holds weights and no network: give it by --weights, and the network by file.py:function."
        )
    return found


def load_weights(model: Any, path: Path) -> None:
    """Put the weights of a file into a network; all must be there, and no others."""
    if not path.is_file():
        raise ValueError(f"{path} does not exist: check the path (from {Path.cwd()}).")
    try:
        missing, unexpected = model.load_state_dict(_weights_of(path), strict=False)
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
    import numpy as np
    import torch

    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return dict(load_file(path))
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: torch.from_numpy(np.asarray(arrays[name])) for name in arrays.files}
    if path.suffix not in FILES:
        raise ValueError(f"{path}: give weights as .safetensors, .npz, {' or '.join(FILES)}.")
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise ValueError(
            f"{path} holds more than weights, which may run any code when it is read: save model.state_dict()."
        ) from None
    for name in NESTED:
        found = (
            found[name] if isinstance(found, dict) and isinstance(found.get(name), dict) else found
        )
    return dict(found)

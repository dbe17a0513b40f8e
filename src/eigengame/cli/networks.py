"""Load the network of MODEL (from a library, a Python file or a saved module) and its weights."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILES = (".pt", ".pth")
WRAPPER_KEYS = ("state_dict", "model")
"""Keys under which training scripts often store the weights in a saved dict."""


def open_network(text: str, weights: Path | None, trust: bool) -> Any:
    """Return the network that MODEL names, with the weights of a file if one is given.

    Parameters
    ----------
    text : str
        `torchvision:NAME`, `timm:NAME`, `file.py:function`, or the path of a saved module.
    weights : path, optional
    trust : bool
        Whether to load a pickled module, which can run arbitrary code.
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
        raise ValueError(
            f"MODEL {text!r} is a {type(model).__name__}: give a function that returns a torch.nn.Module."
        )
    if weights is not None:
        load_weights(model, weights)
    return model


def check_arguments(model: Any, names: tuple[str, ...]) -> None:
    """Refuse a network that does not take the arguments that padded tokens are passed by."""
    parameters = inspect.signature(model.forward).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return
    missing = [name for name in names if name not in parameters]
    if missing:
        raise ValueError(
            f"{type(model).__name__}.forward({', '.join(parameters)}) has no argument {' and '.join(missing)}: "
            f"with --padding the network is called with the arguments {' and '.join(names)} (0 for padding). "
            "Give a network that takes them, or leave out --padding: padding is then a row too."
        )


def _from_library(library: str, name: str) -> Any:
    """Create a network of torchvision or timm, with random weights."""
    if library == "timm":
        timm = importlib.import_module("timm")
        known, make = timm.list_models, lambda: timm.create_model(name, pretrained=False)
    else:
        models = importlib.import_module("torchvision.models")
        known, make = models.list_models, lambda: models.get_model(name, weights=None)
    names = list(known())
    if name not in names:
        near = difflib.get_close_matches(name, names, n=5, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}?" if near else f"see {library}'s list of models."
        raise ValueError(f"{library} has no model {name!r}: {hint}")
    return make()


def _from_code(path: Path, name: str) -> Any:
    """Call a function of a Python file."""
    if not path.is_file():
        raise ValueError(f"{path} does not exist: check the path (from {Path.cwd()}).")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        known = [one for one in vars(module) if callable(getattr(module, one)) and one[0] != "_"]
        raise ValueError(f"{path} has no function {name!r}: it has {', '.join(known) or 'none'}.")
    return function()


def _from_pickle(path: Path, trust: bool) -> Any:
    """Load a module that was saved as a whole by torch.save."""
    import torch

    loaded = _load(
        path,
        lambda: torch.load(path, map_location="cpu", weights_only=not trust),
        "contains a pickled module, and loading it can run arbitrary code: give --trust if you trust its origin, "
        "or give the network as file.py:function and its weights with --weights.",
    )
    if isinstance(loaded, dict):
        raise ValueError(
            f"{path} contains weights but no network: give it with --weights, and the network as file.py:function."
        )
    return loaded


def load_weights(model: Any, path: Path) -> None:
    """Load the weights of a file into a network; missing or unexpected weights are an error."""
    weights = _read_weights(path)
    try:
        missing, unexpected = model.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} does not match the network: {reason[:300]}.") from None
    # The number of batches matters only for further training.
    missing = [name for name in missing if not name.endswith("num_batches_tracked")]
    if missing or unexpected:
        problems = [f"lacks {', '.join(missing[:3])}"] if missing else []
        problems += [f"has unexpected {', '.join(unexpected[:3])}"] if unexpected else []
        raise ValueError(f"{path} {' and '.join(problems)}: give the weights of this network.")


def _read_weights(path: Path) -> dict[str, Any]:
    """Return the tensors of a file by name."""
    if path.suffix not in (".safetensors", ".npz", *FILES):
        raise ValueError(f"{path}: give weights as .safetensors, .npz, {' or '.join(FILES)}.")
    found = _load(
        path,
        lambda: _read_tensors(path),
        "contains more than weights, and loading it can run arbitrary code: save model.state_dict() instead.",
    )
    for name in WRAPPER_KEYS:
        found = (
            found[name] if isinstance(found, dict) and isinstance(found.get(name), dict) else found
        )
    return dict(found)


def _read_tensors(path: Path) -> Any:
    """Read a file of weights by its extension."""
    import numpy as np
    import torch

    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    if path.suffix == ".npz":
        with path.open("rb") as file, np.load(file) as arrays:
            return {name: torch.from_numpy(np.asarray(arrays[name])) for name in arrays.files}
    return torch.load(path, map_location="cpu", weights_only=True)


def _load(path: Path, load: Callable[[], Any], if_pickled: str) -> Any:
    """Call `load` and convert its errors; `if_pickled` is the message for a file with other objects."""
    if not path.is_file():
        raise ValueError(f"{path} does not exist: check the path (from {Path.cwd()}).")
    try:
        return load()
    # Each format raises other exceptions for a truncated file.
    except Exception as error:
        reason = str(error).split("\n")[0].split(". ")[0]
        if isinstance(error, pickle.UnpicklingError) and _is_torch_file(path):
            raise ValueError(f"{path} {if_pickled}") from None
        raise ValueError(
            f"{path} cannot be read ({reason or type(error).__name__}): if it is truncated, download it again."
        ) from None


def _is_torch_file(path: Path) -> bool:
    """Return whether a file begins like those of torch.save: a zip archive, or a pickle in old versions."""
    with path.open("rb") as file:
        return file.read(2) in (b"PK", b"\x80\x02")

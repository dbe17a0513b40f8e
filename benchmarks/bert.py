"""A BERT encoder in torch, with weights from the files of a Hugging Face checkpoint.

The names of modules are those of the checkpoint (`config.json` and `model.safetensors`), so that its arrays are the
state dict of the module. Only the encoder is here: embeddings, attention, layer norms and feed-forward layers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from eigengame._system.array_file import read_arrays


class Embeddings(nn.Module):
    """Sum of the embeddings of token, position and the first segment, normalised."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        d = config["hidden_size"]
        self.word_embeddings = nn.Embedding(config["vocab_size"], d)
        self.position_embeddings = nn.Embedding(config["max_position_embeddings"], d)
        self.token_type_embeddings = nn.Embedding(config["type_vocab_size"], d)
        self.LayerNorm = nn.LayerNorm(d, config["layer_norm_eps"])

    def forward(self, ids: Tensor) -> Tensor:
        """Return hidden states (texts, positions, d) of token ids (texts, positions)."""
        places = torch.arange(ids.shape[1], device=ids.device)
        found = self.word_embeddings(ids) + self.position_embeddings(places)
        return self.LayerNorm(found + self.token_type_embeddings.weight[0])


class Heads(nn.Module):
    """Attention of several heads."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        d = config["hidden_size"]
        self.heads = config["num_attention_heads"]
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the mixed values (texts, positions, d); mask (texts, positions) is False for padding."""
        query, key, value = (
            part(x)
            .unflatten(-1, (self.heads, -1))
            .transpose(1, 2)  # (texts, heads, positions, d / heads)
            for part in (self.query, self.key, self.value)
        )
        scores = query @ key.mT / query.shape[-1] ** 0.5
        scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
        return (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)


class Sublayer(nn.Module):
    """A linear layer, added to the input of the sublayer and normalised."""

    def __init__(self, width: int, config: dict[str, Any]) -> None:
        super().__init__()
        self.dense = nn.Linear(width, config["hidden_size"])
        self.LayerNorm = nn.LayerNorm(config["hidden_size"], config["layer_norm_eps"])

    def forward(self, inner: Tensor, x: Tensor) -> Tensor:
        """Return hidden states of the shape of x."""
        return self.LayerNorm(self.dense(inner) + x)


class Layer(nn.Module):
    """Attention and feed-forward layer."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        d, width = config["hidden_size"], config["intermediate_size"]
        self.attention = nn.ModuleDict({"self": Heads(config), "output": Sublayer(d, config)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(d, width)})
        self.output = Sublayer(width, config)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return hidden states of the shape of x."""
        x = self.attention["output"](self.attention["self"](x, mask), x)
        return self.output(nn.functional.gelu(self.intermediate["dense"](x)), x)


class Bert(nn.Module):
    """Token ids to hidden states.

    Parameters
    ----------
    config : dict
        Content of `config.json`.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.embeddings = Embeddings(config)
        layers = [Layer(config) for _ in range(config["num_hidden_layers"])]
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(layers)})

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the hidden states (texts, positions, d) of the last layer; masks are 0 for padding."""
        x, mask = self.embeddings(input_ids), attention_mask > 0
        for layer in self.encoder["layer"]:
            x = layer(x, mask)
        return x


def load_bert(folder: str | Path) -> Bert:
    """Return the encoder of a checkpoint with `config.json` and `model.safetensors`, in evaluation mode."""
    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    kind = config.get("position_embedding_type", "absolute"), config["hidden_act"]
    if kind != ("absolute", "gelu"):
        raise ValueError(
            f"{folder}: position_embedding_type and hidden_act are {kind}; give a model with 'absolute' and 'gelu'."
        )
    model = Bert(config)
    arrays = read_arrays(Path(folder) / "model.safetensors")[0]
    known = {name: torch.from_numpy(arrays[name]) for name in model.state_dict() if name in arrays}
    model.load_state_dict(known)
    return model.eval()


def difference_to_transformers(folder: str | Path, batch: dict[str, Any]) -> tuple[float, float]:
    """Return the largest difference to the hidden states of Hugging Face's BertModel, and the largest of these.

    Parameters
    ----------
    folder : path
        Checkpoint.
    batch : dict
        `input_ids` and `attention_mask`; padding is not compared.
    """
    from transformers import BertModel

    own, other = load_bert(folder), BertModel.from_pretrained(folder).eval()
    seen: list[Tensor] = []
    for module in (own.embeddings, *own.encoder["layer"]):
        module.register_forward_hook(lambda m, g, output: seen.append(output))
    with torch.inference_mode():
        own(**batch)
        expected = other(**batch, output_hidden_states=True).hidden_states
    used = batch["attention_mask"] > 0
    pairs = [(one[used], two[used]) for one, two in zip(seen, expected, strict=True)]
    return (
        max(float((one - two).abs().max()) for one, two in pairs),
        max(float(two.abs().max()) for _, two in pairs),
    )

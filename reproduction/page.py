"""The Markdown page of all experiments, computed from stored results.

    python -m reproduction.page docs/reproduction docs/reproduction.md

writes the page of the documentation from the output of `python -m reproduction all --out docs/reproduction`.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import reproduction
from reproduction.base import Claim, Verdict
from reproduction.record import RESULTS, read_results

TITLE = "The paper reproduced"
OPENING = (
    "Experiments on *EigenGame: PCA as a Nash Equilibrium* (ICLR 2021), each by one command in a checkout of the "
    "repository: `python -m reproduction NAME`. Every claim of the paper that an experiment measures has one of "
    "three verdicts. *Holds* and *does not hold* are by the criterion that stands beside the numbers. *Not "
    "comparable* means other data or another network than the paper's, a choice that the paper does not state, "
    "or a run that is too short for a verdict. A verdict depends on how the paper is read; the reading is stated "
    "with it, and where two readings disagree both are shown."
)
PROTOCOL = (
    "Where the paper leaves a choice, it is read as follows. The gradient has the factor 2 of Alg. 2 (the "
    "vectorised listing omits it, which would double every step size). M is the sum over the rows of a batch, "
    "not the mean. Step sizes come from 1e-3, 1e-4, 1e-5 and 1e-6 in that convention; the best one has the "
    "largest mean streak over the whole run. Each section adds its own choices under *Reading of the paper*. In "
    "figures of streaks, solid lines show the step size that did best on held-out runs, dotted lines ten times "
    "it, dashed lines a tenth of it; shading is the standard error of the mean over trials. Runtimes are for one "
    "compiled trial: the trials run vmapped, and their time is divided by their number. Errors in the text of "
    "the paper are listed on the [errata page](errata.md)."
)
DEPENDS = "depends on the reading"
"""Verdict on a sentence for which two readings disagree."""


def page(folder: Path, links: str = "") -> str:
    """Return the page for all experiments that have results in `folder`; `links` is the prefix of its links."""
    found = [name for name in reproduction.EXPERIMENTS if (folder / name / RESULTS).exists()]
    if not found:
        raise ValueError(f"{folder} has no results: run python -m reproduction all --out {folder}.")
    judged: dict[str, list[Claim]] = {}
    sections = []
    for name in found:
        module, results = reproduction.experiment(name), read_results(folder / name)
        judged[name] = module.claims(results)
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
            claims_table(judged[name]),
            f"*Reading of the paper.* {module.reading(results)}",
            " ".join([run, *(f"Interactive: [{file}]({links}{name}/{file})." for file in files)]),
        ]
    overview = [f"# {TITLE}", OPENING, *_overview(judged), PROTOCOL]
    return "\n\n".join([*overview, *sections]) + "\n"


def verdicts(claims: Sequence[Claim]) -> dict[str, str]:
    """Return the verdict on each claim of the paper, or that it depends on the reading."""
    found: dict[str, str] = {}
    for claim in claims:
        if not claim.ours:
            known = found.setdefault(claim.claim, claim.verdict.value)
            found[claim.claim] = known if known == claim.verdict.value else DEPENDS
    return found


def verdict_table(judged: Mapping[str, Sequence[Claim]], link: str = "[{0}](#{0})") -> str:
    """Return a Markdown table of the number of each verdict, by experiment."""
    kinds = (*(one.value for one in Verdict), DEPENDS)
    lines = [f"| experiment | {' | '.join(kinds)} |", f"|---{'|---' * len(kinds)}|"]
    total = Counter[str]()
    for name, claims in judged.items():
        counts = Counter(verdicts(claims).values())
        total += counts
        lines.append(_row(link.format(name), *(str(counts[kind] or "") for kind in kinds)))
    lines.append(_row("all", *(str(total[kind]) for kind in kinds)))
    return "\n".join(lines)


def claims_table(claims: Sequence[Claim]) -> str:
    """Return a Markdown table of claims."""
    lines = ["| claim | reading | measured | verdict |", "|---|---|---|---|"]
    for claim in claims:
        verdict = claim.verdict.value if claim.holds else f"**{claim.verdict.value}**"
        said = f"{claim.claim} (Our own claim.)" if claim.ours else claim.claim
        lines.append(_row(said, claim.reading, claim.measured, verdict))
    return "\n".join(lines)


def _overview(judged: Mapping[str, Sequence[Claim]]) -> list[str]:
    """Return the opening lists: claims by verdict, and the table of numbers."""
    parts = ["## What is reproduced, and what is not", verdict_table(judged)]
    headings = {
        Verdict.HOLDS.value: "**Reproduced:**",
        DEPENDS: "**Depends on the reading of the paper:**",
        Verdict.DOES_NOT_HOLD.value: "**Not reproduced:**",
        Verdict.NOT_COMPARABLE.value: "**Not comparable:**",
    }
    for kind, heading in headings.items():
        lines = [
            f"- {claim} ([{name}](#{name}))"
            for name, claims in judged.items()
            for claim, verdict in verdicts(claims).items()
            if verdict == kind
        ]
        if lines:
            parts.append("\n".join([heading, "", *lines]))
    return parts


def _row(*cells: str) -> str:
    """Return a row of a Markdown table."""
    clean = (text.replace("|", r"\|").replace("\n", " ") for text in cells)
    return f"| {' | '.join(clean)} |"


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

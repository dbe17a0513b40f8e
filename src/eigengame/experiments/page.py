"""The page of all experiments that were run, made of their results alone.

    python -m eigengame.experiments.page docs/reproduction docs/reproduction.md

writes the documentation's page from the folders of `eigengame reproduce all --out docs/reproduction`.
"""

from __future__ import annotations

import argparse
import html
import os
import re
from pathlib import Path
from typing import NamedTuple

from eigengame.experiments import EXPERIMENTS, experiment
from eigengame.experiments._base import Claim, Results
from eigengame.experiments._record import RESULTS, read_results

TITLE = "The paper reproduced"
OPENING = (
    "Every figure and every claim of *EigenGame: PCA as a Nash Equilibrium* (ICLR 2021) that can be played "
    "on one machine, by one command each: `eigengame reproduce NAME`. Solid lines are the step size that did "
    "best on held-out runs, dotted lines ten times it, dashed lines a tenth; shading is the standard error of "
    "the mean over the trials. A claim that did not come out says so."
)
PROTOCOL = (
    "Read one way where the paper leaves it open: the gradient has the factor 2 of Alg. 2 (the vectorised "
    "listing drops it, which would move every step size by 2); M is summed over the rows of a batch, not "
    "averaged; step sizes come from 1e-3, 1e-4, 1e-5 and 1e-6 in that convention; the best of them has the "
    "largest mean streak over the whole run. Runtimes are of one trial, compiled: the trials "
    "run vmapped, and their time is divided by their number. What is wrong or unclear in the paper's text is "
    "on the errata page."
)
STYLE = """body{font:16px/1.55 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}
h1,h2{line-height:1.2}h2{margin-top:3rem;border-top:1px solid #ddd;padding-top:1.5rem}img{max-width:100%}
table{border-collapse:collapse;width:100%;font-size:.92rem}td,th{text-align:left;vertical-align:top;
padding:.4rem .6rem;border-bottom:1px solid #e4e4e4}code{background:#f3f3f3;padding:.1em .3em;border-radius:3px}
.yes{color:#1d6b2f;font-weight:600}.no{color:#a02019;font-weight:600}.small{color:#666;font-size:.88rem}"""


class Section(NamedTuple):
    """An experiment on the page."""

    name: str
    title: str
    paper: str
    figure: str
    words: str
    claims: list[Claim]
    run: str
    more: list[str]


def sections(folder: Path, links: str = "") -> list[Section]:
    """Return a section for each experiment that has results in `folder`, in the registry's order."""
    found = [name for name in EXPERIMENTS if (folder / name / RESULTS).exists()]
    if not found:
        raise ValueError(f"{folder} holds no results: run eigengame reproduce all --out {folder}.")
    return [_section(name, read_results(folder / name), folder, links) for name in found]


def _section(name: str, results: Results, folder: Path, links: str) -> Section:
    one = experiment(name)
    kind = "a quick run, too small to judge by" if results["quick"] else "a full run"
    versions = results["versions"]
    run = (
        f"`eigengame reproduce {name}`, {kind}: {results['took']:.0f} s on {results['machine']}, "
        f"{results['date']}, eigengame {versions['eigengame']}, JAX {versions['jax']}."
    )
    more = sorted(path.name for path in (folder / name).glob("*.html"))
    return Section(
        name=name,
        title=one.TITLE,
        paper=one.PAPER,
        figure=f"{links}{name}/figure",
        words=one.words(results),
        claims=one.claims(results),
        run=run,
        more=[f"{links}{name}/{file}" for file in more],
    )


def markdown(found: list[Section]) -> str:
    """Return the page in Markdown."""
    parts = [f"# {TITLE}", OPENING, PROTOCOL.replace("errata page", "[errata page](errata.md)")]
    parts.append(
        "\n".join(
            ["| experiment | where the paper has it | claims that hold |", "|---|---|---|"]
            + [
                f"| [{one.name}](#{one.name}) | {one.paper} | {_count(one.claims)} |"
                for one in found
            ]
        )
    )
    for one in found:
        table = ["| the paper's claim | measured | holds |", "|---|---|---|"]
        table += [
            f"| {_cell(claim.claim)} | {_cell(claim.measured)} | {'yes' if claim.holds else '**no**'} |"
            for claim in one.claims
        ]
        parts += [
            f"## {one.name}",
            f"**{one.title}** ({one.paper})",
            f"[![{one.title}]({one.figure}.png)]({one.figure}.svg)",
            one.words,
            "\n".join(table),
            " ".join(
                [one.run, *(f"To play with: [{Path(path).name}]({path})." for path in one.more)]
            ),
        ]
    return "\n\n".join(parts) + "\n"


def webpage(found: list[Section]) -> str:
    """Return the page as one HTML file beside the folders of the experiments."""
    body = [f"<h1>{TITLE}</h1>", f"<p>{_inline(OPENING)}</p>", f"<p>{_inline(PROTOCOL)}</p>"]
    rows = "".join(
        f'<tr><td><a href="#{one.name}">{one.name}</a></td><td>{html.escape(one.paper)}</td>'
        f"<td>{_count(one.claims)}</td></tr>"
        for one in found
    )
    body.append(
        "<table><tr><th>experiment</th><th>where the paper has it</th><th>claims that hold</th></tr>"
        f"{rows}</table>"
    )
    for one in found:
        claims = "".join(
            f"<tr><td>{_inline(claim.claim)}</td><td>{_inline(claim.measured)}</td>"
            f'<td class="{"yes" if claim.holds else "no"}">{"yes" if claim.holds else "no"}</td></tr>'
            for claim in one.claims
        )
        body += [
            f'<h2 id="{one.name}">{html.escape(one.title)}</h2>',
            f'<p class="small">{html.escape(one.paper)}</p>',
            f'<a href="{one.figure}.svg"><img src="{one.figure}.png" alt="{html.escape(one.title)}"></a>',
            f"<p>{_inline(one.words)}</p>",
            f"<table><tr><th>the paper's claim</th><th>measured</th><th>holds</th></tr>{claims}</table>",
            f'<p class="small">{_inline(one.run)}</p>',
            *(f'<p>To play with: <a href="{path}">{Path(path).name}</a></p>' for path in one.more),
        ]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{TITLE}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style>\n" + "\n".join(body) + "\n</html>\n"
    )


def write_webpage(folder: Path) -> Path:
    """Write `index.html` over all that is in `folder`, and return its path."""
    path = folder / "index.html"
    path.write_text(webpage(sections(folder)))
    return path


def _count(claims: list[Claim]) -> str:
    return f"{sum(claim.holds for claim in claims)} of {len(claims)}"


def _cell(text: str) -> str:
    """Return a sentence as a cell of a table."""
    return text.replace("|", r"\|").replace("\n", " ")


def _inline(text: str) -> str:
    """Return the little Markdown that words use as HTML: code, bold, emphasis and links."""
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)
    text = re.sub(r"(?<!\w)\*([^*]+)\*", r"<i>\1</i>", text)
    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>', text)


def main() -> None:
    """Write the documentation's page."""
    parser = argparse.ArgumentParser(description="Write the page of all experiments that were run.")
    parser.add_argument("folder", type=Path, help="with a folder of results for each experiment")
    parser.add_argument("page", type=Path, help="the Markdown file to write")
    asked = parser.parse_args()
    folder, page = asked.folder, asked.page
    links = os.path.relpath(folder, page.parent).replace(os.sep, "/")
    page.write_text(markdown(sections(folder, "" if links == "." else f"{links}/")))


if __name__ == "__main__":
    main()

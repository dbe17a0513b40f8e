"""What an experiment is, and what a claim is."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Results = dict[str, Any]
"""What was measured: numbers, strings, lists and dictionaries, as JSON holds them."""


class Run(NamedTuple):
    """How an experiment is run.

    Attributes
    ----------
    quick : bool
        Whether to play as little as a test needs, or the paper's protocol.
    say : function
        Takes a line on how far the run is.
    data : path, optional
        A folder: see `eigengame.experiments._mnist` and `eigengame.experiments._photographs`.
    """

    quick: bool = False
    say: Callable[[str], None] = print
    data: str | PathLike[str] | None = None


class Claim(NamedTuple):
    """One sentence of the paper's, and what became of it.

    Attributes
    ----------
    claim : str
        The claim, in a sentence.
    measured : str
        What was seen here, with its numbers.
    holds : bool
        Whether what was seen is what is claimed.
    """

    claim: str
    measured: str
    holds: bool


class Experiment(Protocol):
    """What each file of `eigengame.experiments` offers.

    Attributes
    ----------
    TITLE : str
        The heading of its section.
    PAPER : str
        Where the paper has it: the label of a figure, or a section.
    """

    TITLE: str
    PAPER: str

    def measure(self, run: Run) -> Results:
        """Play, and return what was seen."""
        ...

    def claims(self, results: Results) -> list[Claim]:
        """Return the paper's claims, each held against the results."""
        ...

    def draw(self, results: Results) -> Figure:
        """Return the figure."""
        ...

    def words(self, results: Results) -> str:
        """Return a paragraph on what came out: Markdown, with every number from the results."""
        ...

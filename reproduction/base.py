"""Interfaces: how an experiment is run, what it offers, and what a claim is."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Results = dict[str, Any]
"""Measurements as JSON stores them: numbers, strings, lists and dictionaries."""


class Run(NamedTuple):
    """Options of one run.

    Attributes
    ----------
    quick : bool
        Run the small version of the protocol, as a smoke test.
    progress : function
        Called with one line of text per step of the experiment.
    data : path, optional
        Folder of data: see `reproduction.mnist_images` and `reproduction.experiments.resnet.photographs`.
    """

    quick: bool = False
    progress: Callable[[str], None] = print
    data: str | PathLike[str] | None = None


class Claim(NamedTuple):
    """A claim of the paper, compared with the measurements.

    Attributes
    ----------
    claim : str
        The claim, in one sentence.
    measured : str
        The measurement, with its numbers and the criterion.
    holds : bool
        Whether the measurement meets the criterion.
    """

    claim: str
    measured: str
    holds: bool


class Experiment(Protocol):
    """Contents of a module of `reproduction.experiments`.

    A module may also define `extras(results, folder)`, which writes additional files.

    Attributes
    ----------
    TITLE : str
        Heading of its section.
    PAPER : str
        Label of the figure, or the section of the paper.
    """

    TITLE: str
    PAPER: str

    def measure(self, run: Run) -> Results:
        """Run the experiment and return its measurements."""
        ...

    def claims(self, results: Results) -> list[Claim]:
        """Compare the paper's claims with the results."""
        ...

    def draw(self, results: Results) -> Figure:
        """Draw the figure."""
        ...

    def summary(self, results: Results) -> str:
        """Describe the outcome in Markdown. Every conclusion is chosen by the numbers."""
        ...

    def reading(self, results: Results) -> str:
        """Describe how the paper was read where it leaves a choice; the verdicts depend on it."""
        ...

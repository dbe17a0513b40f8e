"""Interfaces: how an experiment is run, what it offers, and what a claim is."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
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


class Verdict(StrEnum):
    """What a measurement says about a claim."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    NOT_COMPARABLE = "not comparable"
    """Other data or another network, a choice that the paper does not state, or a run that is too short."""


def holds_if(met: bool) -> Verdict:
    """Return the verdict for a measurement that meets the criterion, or does not."""
    return Verdict.HOLDS if met else Verdict.DOES_NOT_HOLD


class Claim(NamedTuple):
    """A claim, compared with the measurements.

    Where the paper can be read in two ways, there is one claim for each reading, with the same sentence.

    Attributes
    ----------
    claim : str
        The claim, in one sentence.
    measured : str
        The measurement, with its numbers and the criterion.
    verdict : Verdict
        Whether the measurement meets the criterion.
    reading : str
        The reading of the paper that the verdict depends on, in a few words.
    ours : bool
        Whether the claim is ours and not the paper's.
    """

    claim: str
    measured: str
    verdict: Verdict
    reading: str
    ours: bool = False

    @property
    def holds(self) -> bool:
        """Whether the verdict is that the claim holds."""
        return self.verdict is Verdict.HOLDS


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

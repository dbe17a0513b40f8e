"""Watching a run: a bar on a terminal, plain lines elsewhere, JSON lines or TensorBoard for later."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import IO, Any

from eigengame.solver.events import Progress, Watcher


def progress_watcher(stream: IO[str] | None = None) -> Watcher:
    """Return a bar where there is a terminal and rich; else a line every few seconds."""
    out = sys.stderr if stream is None else stream
    pretty = out.isatty() and importlib.util.find_spec("rich") is not None
    return ProgressBar(out) if pretty else PlainLines(out)


class Seldom:
    """A watcher that looks only every so often, and at the end of each pass.

    Parameters
    ----------
    every : float
        Seconds between two looks.
    """

    def __init__(self, every: float) -> None:
        self.every = every
        self._last = -float("inf")
        self._pass, self._began, self._heard = 0, 0.0, time.monotonic()

    def batch(self, at: Progress) -> None:
        """Look, if it is time."""
        now = time.monotonic()
        if at.number != self._pass:
            # It began when the last was over, or the run was.
            self._pass, self._began = at.number, self._heard
        self._heard = now
        last = at.rows == at.total and not at.ended  # the end, which follows, says the same
        if at.ended or (now - self._last >= self.every and not last):
            self._last = now
            self.look(at, (at.rows - at.start) / max(now - self._began, 1e-9))

    def look(self, at: Progress, rate: float) -> None:
        """Say where the pass is; `rate` is in rows a second."""
        raise TypeError(f"{type(self).__name__} must say what it shows.")


class PlainLines(Seldom):
    """One line every few seconds.

    Parameters
    ----------
    stream : text stream
    every : float
        Seconds between two lines.
    """

    def __init__(self, stream: IO[str], every: float = 5.0) -> None:
        super().__init__(every)
        self.stream = stream

    def plan(self, planned: Any) -> None:
        """Print the memory that will be taken."""
        print(f"plan: {planned}", file=self.stream, flush=True)

    def look(self, at: Progress, rate: float) -> None:
        """Print one line."""
        share = f" ({at.rows / at.total:.0%})" if at.total else ""
        left = "" if at.ended else remaining(at, rate)
        figures = "".join(f", {name} {text}" for name, text in described(at).items())
        line = f"pass {at.number}, {at.task}: {at.rows:,} rows{share}, {rate:,.0f} rows/s{left}{figures}"
        print(line, file=self.stream, flush=True)

    def end(self, outcome: Any) -> None:
        """Print how the run ended."""
        print(outcome, file=self.stream, flush=True)


class ProgressBar(Seldom):
    """A bar for each pass, by rich.

    Parameters
    ----------
    stream : text stream
    """

    def __init__(self, stream: IO[str]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        super().__init__(0.2)
        self.bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[figures]}"),
            console=Console(file=stream),
        )
        self.current: Any = None
        self.bars.start()

    def plan(self, planned: Any) -> None:
        """Say the memory that will be taken, above the bars."""
        self.bars.console.print(f"plan: {planned}")

    def look(self, at: Progress, rate: float) -> None:
        """Move the bar."""
        if self.current is None:
            name = f"pass {at.number}, {at.task}"
            self.current = self.bars.add_task(name, total=at.total, figures="")
        figures = [
            f"{rate:,.0f} rows/s",
            *(f"{name} {text}" for name, text in described(at).items()),
        ]
        self.bars.update(
            self.current, completed=at.rows, total=at.total, figures="  ".join(figures)
        )
        if at.ended:
            self.current = None

    def end(self, outcome: Any) -> None:
        """Say how the run ended, below the bars."""
        self.bars.console.print(str(outcome))

    def close(self) -> None:
        """Give the terminal back."""
        self.bars.stop()


def _is_log(path: Path) -> bool:
    """Return whether a file is empty, or begins with a line that is a JSON object."""
    with path.open("rb") as file:
        first = file.readline(2**16)
    try:
        return not first or isinstance(json.loads(first), dict)
    except ValueError:
        return False


class JsonLines(Seldom):
    """One JSON object a line, to be read by a program later.

    Parameters
    ----------
    path : path
        Appended to, so that a run that goes on has one log.
    every : float
        Seconds between two lines.
    """

    def __init__(self, path: Any, every: float = 1.0) -> None:
        super().__init__(every)
        self.path = Path(path)
        if self.path.exists() and not _is_log(self.path):
            raise ValueError(
                f"{self.path} exists and is not a log of JSON lines: give another name, for example run.jsonl."
            )
        self.path.open("a").close()  # a place that cannot be written is said now

    def look(self, at: Progress, rate: float) -> None:
        """Write one line."""
        facts = {"time": time.time(), "pass": at.number, "task": at.task, "rows": at.rows}
        self._write(facts | {"total": at.total, "rows_per_second": rate} | at.tell())

    def end(self, outcome: Any) -> None:
        """Write how the run ended."""
        self._write({"time": time.time(), "outcome": str(outcome)})

    def _write(self, facts: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            print(json.dumps(facts), file=file)


class TensorBoard(Seldom):
    """Scalars for TensorBoard, by tensorboardX or torch, whichever is there.

    Parameters
    ----------
    folder : path
    every : float
        Seconds between two points.
    """

    def __init__(self, folder: Any, every: float = 1.0) -> None:
        super().__init__(every)
        try:
            from tensorboardX import SummaryWriter
        except ModuleNotFoundError:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ModuleNotFoundError:
                raise ModuleNotFoundError(
                    "TensorBoard logs need tensorboardX: pip install tensorboardX."
                ) from None
        self.writer = SummaryWriter(str(folder))

    def look(self, at: Progress, rate: float) -> None:
        """Write the figures of now."""
        step = (at.number - 1) * (at.total or 0) + at.rows
        for name, value in ({"rows_per_second": rate} | at.tell()).items():
            self.writer.add_scalar(f"eigengame/{name}", value, step)

    def close(self) -> None:
        """Close the log."""
        self.writer.close()


def described(at: Progress) -> dict[str, str]:
    """Return the figures of a pass as short texts."""
    told = at.tell()
    texts = {}
    if "variance" in told:
        texts["variance"] = f"{told['variance']:.1%}"
    if "streak" in told:
        texts["streak"] = f"~{told['streak']:.0f}"
    return texts


def remaining(at: Progress, rate: float) -> str:
    """Return the time left in this pass, where it can be told."""
    if not at.total or rate <= 0:
        return ""
    seconds = int((at.total - at.rows) / rate)
    return f", {seconds // 60}:{seconds % 60:02d} left"


def watchers_of(progress: Any) -> list[Watcher]:
    """Return the watchers that a `progress` argument stands for: none, a bar, or those given."""
    if progress is None or progress is False:
        return []
    if progress is True:
        return [progress_watcher()]
    if isinstance(progress, (list, tuple)):
        return [one for part in progress for one in watchers_of(part)]
    if not callable(getattr(progress, "batch", None)):
        raise TypeError(
            f"progress={progress!r}: give True, False, or watchers with a method batch(at)."
        )
    return [progress]

"""Progress of a fit: a bar on a terminal, plain lines elsewhere, logs as JSON lines or for TensorBoard."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import IO, Any

from eigengame.solver.passes.events import Progress, Watcher


def progress_watcher(stream: IO[str] | None = None) -> Watcher:
    """Return a progress bar if the stream is a terminal and rich is installed, else `PlainLines`."""
    out = sys.stderr if stream is None else stream
    bar = out.isatty() and importlib.util.find_spec("rich") is not None
    return ProgressBar(out) if bar else PlainLines(out)


LOGGED = {"task", "outcome"}
"""Each line of a log has one of these entries, and the time."""


class ThrottledWatcher:
    """Watcher that reports at most once per time interval, and at the end of each pass.

    Parameters
    ----------
    every : float
        Minimum number of seconds between two reports.
    """

    def __init__(self, every: float) -> None:
        self.every = every
        self._last = -float("inf")
        self._pass, self._pass_start, self._last_batch = 0, 0.0, time.monotonic()

    def batch(self, at: Progress) -> None:
        """Report the progress if the time interval has passed."""
        now = time.monotonic()
        if at.number != self._pass:
            # A pass starts at the end of the previous one.
            self._pass, self._pass_start = at.number, self._last_batch
        self._last_batch = now
        # The event of the end follows the last batch and has the same numbers.
        last = at.rows == at.total and not at.ended
        if at.ended or (now - self._last >= self.every and not last):
            self._last = now
            self.report(at, (at.rows - at.start) / max(now - self._pass_start, 1e-9))

    def report(self, at: Progress, rate: float) -> None:
        """Show or record the progress; `rate` is in rows per second."""
        raise NotImplementedError(f"{type(self).__name__} must define report(at, rate).")


class PlainLines(ThrottledWatcher):
    """Print one line every few seconds.

    Parameters
    ----------
    stream : text stream
    every : float
        Seconds between two lines.
    """

    def __init__(self, stream: IO[str], every: float = 5.0) -> None:
        super().__init__(every)
        self.stream = stream

    def plan(self, plan: Any) -> None:
        """Print the plan."""
        print(f"plan: {plan}", file=self.stream, flush=True)

    def report(self, at: Progress, rate: float) -> None:
        """Print one line."""
        share = f" ({at.rows / at.total:.0%})" if at.total else ""
        left = "" if at.ended else _time_left(at, rate)
        figures = "".join(f", {name} {text}" for name, text in _format_figures(at).items())
        line = f"pass {at.number}, {at.task}: {at.rows:,} rows{share}, {rate:,.0f} rows/s{left}{figures}"
        print(line, file=self.stream, flush=True)

    def end(self, outcome: Any) -> None:
        """Print the outcome of the run."""
        print(outcome, file=self.stream, flush=True)


class ProgressBar(ThrottledWatcher):
    """Show one progress bar per pass, with rich.

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

    def plan(self, plan: Any) -> None:
        """Print the plan above the bars."""
        self.bars.console.print(f"plan: {plan}")

    def report(self, at: Progress, rate: float) -> None:
        """Update the bar."""
        if self.current is None:
            name = f"pass {at.number}, {at.task}"
            self.current = self.bars.add_task(name, total=at.total, figures="")
        figures = [
            f"{rate:,.0f} rows/s",
            *(f"{name} {text}" for name, text in _format_figures(at).items()),
        ]
        self.bars.update(
            self.current, completed=at.rows, total=at.total, figures="  ".join(figures)
        )
        if at.ended:
            self.current = None

    def end(self, outcome: Any) -> None:
        """Print the outcome of the run below the bars."""
        self.bars.console.print(str(outcome))

    def close(self) -> None:
        """Stop the bars and release the terminal."""
        self.bars.stop()


def _is_log(path: Path) -> bool:
    """Return whether a file is empty, or begins with a line that `JsonLines` has written."""
    with path.open("rb") as file:
        first = file.readline(2**16)
    try:
        facts = json.loads(first) if first else {"time": 0, "outcome": ""}
    except ValueError:
        return False
    return isinstance(facts, dict) and facts.keys() >= {"time"} and len(facts.keys() & LOGGED) > 0


class JsonLines(ThrottledWatcher):
    """Append one JSON object per line to a log file.

    Parameters
    ----------
    path : path
        An existing log is extended, so that a resumed run has one log.
    every : float
        Seconds between two lines.
    """

    def __init__(self, path: Any, every: float = 1.0) -> None:
        super().__init__(every)
        self.path = Path(path)
        if self.path.is_file():  # a device or a pipe has no earlier lines
            if not _is_log(self.path):
                raise ValueError(
                    f"{self.path} exists and is not a log of a fit: give another name, for example run.jsonl."
                )
            self._end_line()
        self.path.open("a").close()  # fails early if the file cannot be written

    def _end_line(self) -> None:
        """Complete the last line, which may be half written after a crash."""
        with self.path.open("rb+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            if size and file.read(1) != b"\n":
                file.write(b"\n")

    def report(self, at: Progress, rate: float) -> None:
        """Write one line."""
        facts = {"time": time.time(), "pass": at.number, "task": at.task, "rows": at.rows}
        self._write(facts | {"total": at.total, "rows_per_second": rate} | at.tell())

    def end(self, outcome: Any) -> None:
        """Write the outcome of the run."""
        self._write({"time": time.time(), "outcome": str(outcome)})

    def _write(self, facts: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            print(json.dumps(facts), file=file)


class TensorBoard(ThrottledWatcher):
    """Write scalars for TensorBoard, with tensorboardX or torch, whichever is installed.

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

    def report(self, at: Progress, rate: float) -> None:
        """Write the current figures."""
        step = (at.number - 1) * (at.total or 0) + at.rows
        for name, value in ({"rows_per_second": rate} | at.tell()).items():
            self.writer.add_scalar(f"eigengame/{name}", value, step)

    def close(self) -> None:
        """Close the log."""
        self.writer.close()


def _format_figures(at: Progress) -> dict[str, str]:
    """Return the figures of a pass as short texts."""
    formats = {"variance": "{:.1%}", "streak": "about {:.0f} (estimate)"}
    figures = at.tell()
    return {name: formats[name].format(figures[name]) for name in formats if name in figures}


def _time_left(at: Progress, rate: float) -> str:
    """Return the estimated time left in this pass, or an empty text if unknown."""
    if not at.total or rate <= 0:
        return ""
    seconds = int((at.total - at.rows) / rate)
    return f", {seconds // 60}:{seconds % 60:02d} left"


def watchers_of(progress: Any) -> list[Watcher]:
    """Return the watchers for a `progress` argument: none, the default watcher, or the given ones."""
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

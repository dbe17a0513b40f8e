"""A file that is read in pieces, with a checkpoint: interrupted, and resumed to the same bits.

A fit reads a file batch by batch, so the file may be larger than memory. A long run should also survive an
interruption. With `checkpoint=`, the state of the run is saved, and the same call continues it. This
program interrupts a fit on purpose, resumes it, and compares the result with that of a run without an
interruption.

The data is generated: sums of smooth waves with noise. The environment variable `EIGENGAME_ROWS` sets the
number of rows. The default is small, so that the program ends soon; 20,000,000 rows are a file of 32 GB.
"""

# %%
# The file is written in pieces as well. At no time does the program hold all rows.
import os
import signal
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from eigengame import EigenGamePCA, Interrupted

ROWS, FEATURES, PIECE = int(os.environ.get("EIGENGAME_ROWS", 40_000)), 400, 1000
temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
path = folder / "waves.npy"
rng = np.random.default_rng(0)
position = np.linspace(0, 1, FEATURES)
waves = np.sin(np.pi * np.arange(1, 31)[:, None] * position) / np.arange(1, 31)[:, None]
file = np.lib.format.open_memmap(path, "w+", np.float32, (ROWS, FEATURES))
for begin in range(0, ROWS, PIECE):
    size = min(PIECE, ROWS - begin)
    noise = 0.1 * rng.standard_normal((size, FEATURES))
    file[begin : begin + size] = rng.standard_normal((size, 30)) @ waves + noise
file.flush()
del file
print(f"data: generated, {ROWS} x {FEATURES} numbers, a file of {path.stat().st_size / 1e6:.0f} MB")


# %%
# A watcher is called after each batch. This one notes how far the run has come, and can press Ctrl-C: the
# signal that it raises is the one that the keyboard sends.
class Watch:
    """Note the rows that were read, and interrupt the run after some batches."""

    def __init__(self, interrupt_after=None):
        self.rows, self.interrupt_after = [], interrupt_after

    def plan(self, plan):
        """Keep the plan of the run as text."""
        self.text = str(plan)

    def batch(self, at):
        """Note the progress after a batch."""
        if at.ended:  # called once more at the end of a pass
            return
        self.rows.append((at.number - 1) * ROWS + at.rows)
        if len(self.rows) == self.interrupt_after:
            signal.raise_signal(signal.SIGINT)


def fit(watch, checkpoint=None):
    """Fit the file, from the beginning or from where the checkpoint is."""
    pca = EigenGamePCA(4, algorithm="remembered", batch_size=PIECE, tol=1e-3, random_state=0)
    return pca.fit(path, checkpoint=checkpoint, progress=watch)


# %%
# First a run without interruption. The plan states in advance how much memory the run takes.
whole = Watch()
expected = fit(whole)
print(whole.text)
print(f"without interruption: {expected.outcome_}")

# %%
# Then a run that is interrupted in its second pass. It saves its state and raises `Interrupted`, which is a
# `KeyboardInterrupt`.
run = folder / "run"
first = Watch(interrupt_after=int(1.4 * ROWS / PIECE))
try:
    fit(first, checkpoint=run)
except Interrupted as stopped:
    print(str(stopped).replace(str(folder), "..."))

# %%
# The same call again, as after a restart of the machine: the run goes on where it was interrupted.
second = Watch()
resumed = fit(second, checkpoint=run)
same = np.array_equal(resumed.components_, expected.components_)
same = same and np.array_equal(resumed.explained_variance_, expected.explained_variance_)
same = same and np.array_equal(resumed.certificate_.angle, expected.certificate_.angle)
print(f"resumed: {resumed.outcome_}")
print(f"batches: {len(first.rows)} + {len(second.rows)}, without interruption {len(whole.rows)}")
print(f"components, variances and bounds are identical to the last bit: {same}")

# %%
# The resumed run computes none of the earlier batches again.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
begin = len(first.rows)
left.plot(np.array(whole.rows) / 1000, color="0.8", lw=6, label="without interruption")
left.plot(np.array(first.rows) / 1000, color="#0072B2", lw=2, label="interrupted")
numbers = np.arange(begin, begin + len(second.rows))
left.plot(numbers, np.array(second.rows) / 1000, color="#D55E00", lw=2, label="resumed")
left.plot(begin - 1, first.rows[-1] / 1000, "o", color="#0072B2")
left.set(xlabel="batches", ylabel="rows read (thousand)", title="progress of the runs")
left.axhline(ROWS / 1000, color="0.3", lw=0.8, ls=":")
left.text(len(whole.rows), ROWS / 1000, "end of the first pass ", ha="right", va="top", fontsize=9)
left.legend(frameon=False)
for i in range(3):
    labels = {} if i else {"label": "without interruption"}, {} if i else {"label": "resumed"}
    right.plot(position, expected.components_[i], color="0.8", lw=6, **labels[0])
    right.plot(position, resumed.components_[i], color="#D55E00", lw=1.5, **labels[1])
right.set(xlabel="position along a row", ylabel="loading", title="the first three components")
right.set(ylim=(-0.11, 0.09))
right.legend(frameon=False, loc="lower center", ncols=2)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("larger_than_memory.png", dpi=100)
temporary.cleanup()

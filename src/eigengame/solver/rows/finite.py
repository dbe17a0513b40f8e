"""The check that data has no NaN and no infinity, and is not too small or too large for its precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigengame import _check
from eigengame._system import interrupts
from eigengame.sharding.gather import gather
from eigengame.solver.rows.batches import Batches
from eigengame.solver.rows.device_rows import refuse_nonfinite_rows
from eigengame.solver.rows.frame import refuse_too_small


def refuse_unless_finite(batches: Batches, scatter: Any) -> None:
    """Raise ValueError if the data contains NaN or infinity, with the place of the first one, or is too small.

    One such number makes the scatter (d,) of its column NaN or infinite, so valid data is not read again for this
    check.
    """
    # The host waits for the pass here, and models store the fingerprint.
    batches.source.begin_fingerprint()
    scatter = gather(scatter)
    if np.isfinite(scatter).all():
        refuse_too_small(batches.source.name, scatter)
        return
    source, begin = batches.source, 0
    for block in interrupts.drawn(source.blocks(0, batches.size) if source.again else ()):
        if source.on_device:
            refuse_nonfinite_rows(source, block.values, begin)
            begin += len(block)
            continue
        if source.sparse:
            _check.finite_entries(source.name, block.values, first=begin)
        else:
            places = range(begin, begin + max(len(block), 1))
            _check.finite(source.name, np.asarray(block.values), places=places)
        begin += len(block)
    largest = np.finfo(scatter.dtype).max
    raise ValueError(
        f"{source.name} has NaN or infinite numbers, or numbers whose squares add up to more than {largest:.2g}: "
        "give prepare(data, missing='mean') or missing='skip' (--missing) for NaN, remove infinite numbers, or "
        "divide the data by its largest number."
    )

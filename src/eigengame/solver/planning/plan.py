"""The plan of a fit: the value that holds every decision. `make_plan.py` decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from eigengame.algorithms import Remembered
from eigengame.sharding.placement import Placement
from eigengame.solver.planning.memory import MemoryUse
from eigengame.solver.planning.options import Options
from eigengame.solver.planning.routes import EXACT_ROUTES
from eigengame.solver.rows.frame import Frame

MOST_PRECISE = 2**27
"""Largest size of players that are kept in float64 on the host: 1 GiB."""

COARSE = 1e-3
"""Least tolerance for which products in float32 are tried."""

MOST_COARSE = 64
"""Largest number of components for which float32 is tried on a CPU: gaps between later ones are small."""

REFINED_ROUNDS = 2
"""Rounds on long batches if further passes follow: the second one costs less than a pass, and often saves one."""

Space = Literal["score", "sampled score", "gram", "gram with overlaps", "gram on the host", "host"]
"""Space in which the remembered game plays a batch.

"sampled score" is for long batches on a GPU: players begin at a sample of the first one, and their products are in
two parts of bfloat16. In "gram with overlaps", for kernels on one device, each update receives the inner products
of players from the one before; so it does in "gram on the host", with players in host memory, one block of features
at a time. In the other spaces each update measures them. "host" is for little dense data on a CPU: NumPy makes the
updates, in score space or by singular vectors, and nothing is compiled.
"""

CARRIED: Space = "gram with overlaps"

ON_HOST: Space = "host"


@dataclass(frozen=True)
class Plan:
    """Every decision of a fit of k components.

    Attributes
    ----------
    components : int
        Number of components k.
    players : int
        Number of players K.
    batch : int
        Rows of a batch.
    route : str
        "remembered", "covariance", "row gram", or another name of the registry.
    space : str
        Space in which the remembered game plays a batch: see `Space`.
    placement : Placement
        Devices of the fit.
    frame : Frame or None
        Origin and unit of the rows; None if the first pass of a cluster decides it.
    memory : MemoryUse
        Bytes of the fit beyond its data.
    options : Options
        With the number of extra players decided.
    probes : int
        Number of random probes of the first pass.
    fallback : str or None
        Exact route for components that the refinement does not certify.
    growing : bool
        Whether the batches of the game begin small, and grow up to `batch` rows.
    """

    components: int
    players: int
    batch: int
    route: str
    space: Space
    placement: Placement
    frame: Frame | None
    memory: MemoryUse
    options: Options
    probes: int = 0
    fallback: str | None = None
    growing: bool = False

    def game(self) -> Remembered:
        """Return the remembered game of this plan."""
        if self.space == ON_HOST:
            return self.options.game()  # the space is chosen for each batch: nothing is compiled
        game = self.options.game("score" if "score" in self.space else "gram")
        if self.space == "sampled score" and self.options.passes > 1:
            return replace(game, rounds=max(game.rounds, REFINED_ROUNDS))
        return game

    def with_components(self, k: int, d: int) -> Plan:
        """Return the plan for another number of components of d features, with the same batches."""
        return replace(self, components=k, players=self.options.players(k, d))

    def __str__(self) -> str:
        options, layout = self.options, self.placement.layout
        once = options.passes == 1 or self.route in EXACT_ROUTES
        passes = "1 pass" if once else f"up to {options.passes} passes"
        where = "one device" if layout.devices == 1 else f"a mesh of {layout}"
        where_played = " in NumPy" if self.space == ON_HOST else f" in {self.space} space"
        space = where_played if self.route == "remembered" else ""
        return (
            f"{self.components} components by {self.players} players, {self.route}{space}: {passes} of batches of "
            f"{self.batch} rows in {np.dtype(options.dtype)} on {where}; {self.memory}"
        )


def tries_float32(plan: Plan) -> bool:
    """Return whether float32 is likely to be accurate enough for an exact route on a CPU."""
    options = plan.options
    narrow = np.dtype(options.dtype) == np.float32 and options.tol is not None
    return narrow and (options.tol or 0) >= COARSE and plan.components <= MOST_COARSE

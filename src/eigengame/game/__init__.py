"""The game of the paper: rows, utilities, the sphere, best responses, memory, theory."""

from eigengame.game.batching import batches as batches
from eigengame.game.rayleigh_ritz import settle as settle
from eigengame.game.rows import DenseRows as DenseRows
from eigengame.game.rows import Rows as Rows
from eigengame.game.rows import SampleRows as SampleRows
from eigengame.game.rows import SymmetricRows as SymmetricRows
from eigengame.game.rows import as_rows as as_rows
from eigengame.game.rows import as_symmetric_rows as as_symmetric_rows
from eigengame.game.sphere import random_players as random_players
from eigengame.game.utilities import Rules as Rules

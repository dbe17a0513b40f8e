"""Principal components as the Nash equilibrium of a game."""

from eigengame import general as general
from eigengame import metrics as metrics
from eigengame import testing as testing
from eigengame.algorithms import GHA as GHA
from eigengame.algorithms import REGISTRY as REGISTRY
from eigengame.algorithms import Algorithm as Algorithm
from eigengame.algorithms import Alpha as Alpha
from eigengame.algorithms import BestResponse as BestResponse
from eigengame.algorithms import FrequentDirections as FrequentDirections
from eigengame.algorithms import HebbDeflation as HebbDeflation
from eigengame.algorithms import Info as Info
from eigengame.algorithms import Krasulina as Krasulina
from eigengame.algorithms import Mu as Mu
from eigengame.algorithms import Oja as Oja
from eigengame.algorithms import Remembered as Remembered
from eigengame.algorithms import Sequential as Sequential
from eigengame.algorithms import make as make
from eigengame.algorithms import recover_components as recover_components
from eigengame.batches import batches as batches
from eigengame.cache import keep_compilations as keep_compilations
from eigengame.certificate import Certificate as Certificate
from eigengame.estimator import EigenGamePCA as EigenGamePCA
from eigengame.game.rows import DenseRows as DenseRows
from eigengame.game.rows import Rows as Rows
from eigengame.game.rows import SymmetricRows as SymmetricRows
from eigengame.game.rows import as_rows as as_rows
from eigengame.game.rows import as_symmetric_rows as as_symmetric_rows
from eigengame.game.settle import settle as settle
from eigengame.game.sphere import random_players as random_players
from eigengame.game.utilities import Rules as Rules
from eigengame.outcome import Outcome as Outcome
from eigengame.play import Played as Played
from eigengame.play import play as play
from eigengame.play import play_stream as play_stream
from eigengame.smallest import smallest_components as smallest_components

__version__ = "0.1.0"

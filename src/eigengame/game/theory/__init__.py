"""Formulas of the paper's theorems: `error_propagation`, `bounds` and `convergence`."""

from eigengame.game.theory.bounds import a_bound as a_bound
from eigengame.game.theory.bounds import b_bound as b_bound
from eigengame.game.theory.bounds import gradient_bound as gradient_bound
from eigengame.game.theory.bounds import ratio_bound as ratio_bound
from eigengame.game.theory.bounds import tangent_bound as tangent_bound
from eigengame.game.theory.convergence import Thresholds as Thresholds
from eigengame.game.theory.convergence import angle_bound as angle_bound
from eigengame.game.theory.convergence import gaps as gaps
from eigengame.game.theory.convergence import lipschitz as lipschitz
from eigengame.game.theory.convergence import literal_iterations as literal_iterations
from eigengame.game.theory.convergence import player_lipschitz as player_lipschitz
from eigengame.game.theory.convergence import scale_free_iterations as scale_free_iterations
from eigengame.game.theory.convergence import start_probability as start_probability
from eigengame.game.theory.convergence import subspace_bound as subspace_bound
from eigengame.game.theory.convergence import thresholds as thresholds
from eigengame.game.theory.convergence import total_iterations as total_iterations
from eigengame.game.theory.convergence import trough_iterations as trough_iterations
from eigengame.game.theory.error_propagation import Sinusoid as Sinusoid
from eigengame.game.theory.error_propagation import error_propagation as error_propagation
from eigengame.game.theory.error_propagation import parent_tolerance as parent_tolerance
from eigengame.game.theory.error_propagation import soft_step as soft_step
from eigengame.game.theory.error_propagation import worked_example as worked_example
from eigengame.game.theory.error_propagation import (
    worked_example_corrected as worked_example_corrected,
)

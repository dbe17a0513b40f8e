"""Checks of the parameters of the estimator."""

import numpy as np
import pytest

from eigengame import EigenGamePCA
from eigengame.solver.planning.parameters import VALUES, InvalidParameterError, check_values

BOOLEAN = {"center", "whiten"}


@pytest.mark.parametrize("value", [True, False, np.True_])
@pytest.mark.parametrize("name", sorted(set(VALUES) - BOOLEAN))
def test_a_boolean_is_not_a_number(name, value):
    given = EigenGamePCA().get_params() | {name: value}
    with pytest.raises(InvalidParameterError, match=rf"^{name}=.*{bool(value)}.*: give "):
        check_values(given)


def test_a_fit_refuses_a_boolean_number_of_probes():
    with pytest.raises(ValueError, match="probes=True: give an integer from 0, or 'auto'"):
        EigenGamePCA(2, probes=True).fit(np.eye(6))


@pytest.mark.parametrize("value", [1, np.int64(1)])
@pytest.mark.parametrize(
    "name", ["n_components", "probes", "extra", "passes", "batch_size", "rounds", "random_state"]
)
def test_integers_of_python_and_numpy_are_numbers(name, value):
    check_values(EigenGamePCA().get_params() | {name: value})

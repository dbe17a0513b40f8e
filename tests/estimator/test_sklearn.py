"""The estimator checks of scikit-learn; the slow target also runs the defaults and float64."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from eigengame import EigenGamePCA

# scikit-learn fits unusual data on purpose, which causes warnings of NumPy.
pytestmark = pytest.mark.filterwarnings("default")


@parametrize_with_checks([EigenGamePCA(2, random_state=0)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([EigenGamePCA(), EigenGamePCA(2, dtype="float64", random_state=0)])
def test_scikit_learns_checks_of_other_parameters(estimator, check):
    check(estimator)

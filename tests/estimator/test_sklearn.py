"""scikit-learn's own checks, in full; in the other precision where slow tests are run too."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from eigengame import EigenGamePCA

# scikit-learn fits deliberately odd data; what it provokes in NumPy is not ours to silence elsewhere.
pytestmark = pytest.mark.filterwarnings("default")


@parametrize_with_checks([EigenGamePCA()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([EigenGamePCA(2, dtype="float64", random_state=0)])
def test_scikit_learns_checks_in_float64(estimator, check):
    check(estimator)

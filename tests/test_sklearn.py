"""scikit-learn's own checks, in full, in both precisions."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from eigengame import EigenGamePCA


@parametrize_with_checks([EigenGamePCA(), EigenGamePCA(2, dtype="float64", random_state=0)])
# scikit-learn fits deliberately odd data; what it provokes in NumPy is not ours to silence elsewhere.
@pytest.mark.filterwarnings("default")
def test_scikit_learns_checks(estimator, check):
    check(estimator)

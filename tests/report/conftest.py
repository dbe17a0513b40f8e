"""One fit for all reports on real data."""

import pytest
from sklearn.datasets import load_digits

from eigengame import EigenGamePCA


@pytest.fixture(scope="session")
def fitted():
    return EigenGamePCA(10, tol=1e-3, random_state=0).fit(load_digits().data)

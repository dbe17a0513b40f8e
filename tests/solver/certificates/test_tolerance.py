"""The tolerance by which components are judged."""

from types import SimpleNamespace

import numpy as np
import pytest

from eigengame import EigenGamePCA
from eigengame.solver.certificates.tolerance import judged_tolerance


@pytest.mark.parametrize("tol", [1e-3, np.float32(0.25), 1])
def test_the_requested_tolerance_is_used(tol):
    assert judged_tolerance(EigenGamePCA(2, tol=tol)) == (float(tol), True)


@pytest.mark.parametrize("tol", [None, "auto"])
def test_without_a_number_the_default_is_used_and_named(tol):
    found = judged_tolerance(EigenGamePCA(2, tol=tol))
    assert found == (0.05, False)
    assert "No tol was requested" in found.sentence()
    assert "0.05 rad" in found.sentence()


def test_a_tolerance_that_the_fit_stored_comes_first():
    model = SimpleNamespace(tol=None, tol_=0.02)
    assert judged_tolerance(model) == (0.02, True)

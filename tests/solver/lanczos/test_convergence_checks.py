"""When convergence is checked: seldom while residuals are large, and where they are foreseen to be small."""

import math
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

from eigengame import EigenGamePCA
from eigengame.solver.certificates.counted_eigenvalues import SPARE
from eigengame.solver.lanczos.convergence_checks import Checks
from eigengame.solver.planning.lanczos_basis import largest_basis


def sizes(residual, first=40, block=8, longest=1.25, most=4000):
    """Return the sizes at which a space with these residuals is checked, until they are below 1."""
    checks, found = Checks(first, longest), []
    for m in range(block, most, block):
        if m >= checks.following:
            found.append(m)
            if residual(m) <= 1:
                break
            checks = checks.after(m, residual(m))
    return found


@pytest.mark.parametrize("factor", [1.5, 2.2, 4.0])
@pytest.mark.parametrize("flat", [40, 160, 300])
def test_few_checks_find_the_end_without_many_products_in_vain(factor, flat):
    def residual(m):
        return 5e3 * factor ** (-(max(m - flat, 0)) / 8)

    end = next(m for m in range(8, 4000, 8) if residual(m) <= 1)
    found = sizes(residual)
    assert found[-1] <= 1.3 * end
    assert len(found) <= 2 + math.log(end / 40) / math.log(1.1)


def test_a_rate_foresees_the_next_check():
    checks = Checks(40, 2.0).after(40, 1e4).after(80, 1e2)
    # Ten times for 20 vectors, and a hundred times are left.
    assert checks.following == 121


def test_residuals_of_zero_are_a_size_like_any_other():
    assert Checks(40, 1.25).after(40, 100.0).after(48, 0.0).following == 51


def test_residuals_that_do_not_fall_or_are_not_known_wait_for_the_largest_growth_at_most():
    assert Checks(40, 1.25).after(100, math.inf).following == 126
    assert Checks(40, 1.25, 80, 10.0).after(100, 20.0).following == 107
    assert Checks(40, 1.0).after(100, 1e4).following == 101


def test_a_second_judgement_of_the_same_space_uses_the_rate_of_the_first():
    once = Checks(40, 2.0).after(40, 1e4).after(80, 0.1)
    again = once.after(80, 100.0)
    assert (again.size, again.rate) == (once.size, once.rate)
    assert again.following == pytest.approx(80 + math.log(100) / once.rate, abs=1)


def test_the_largest_basis_is_always_checked(monkeypatch):
    """Its products are made, so they must not be thrown away because the next check is beyond it."""
    sizes = []
    monkeypatch.setattr(
        Checks, "after", lambda own, m, _: sizes.append(m) or own._replace(following=1000)
    )
    rng = np.random.default_rng(0)
    values = rng.standard_normal((157, 107)) * np.arange(1, 108) ** -0.19
    rows = csr_array(values * (rng.uniform(size=values.shape) < 0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        EigenGamePCA(8, random_state=0).fit(rows)
    assert max(sizes) == largest_basis(107, 8 + SPARE)

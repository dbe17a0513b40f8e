"""When convergence is checked: seldom while residuals are large, and where they are foreseen to be small."""

import math

import pytest

from eigengame.solver.lanczos.convergence_checks import Checks


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

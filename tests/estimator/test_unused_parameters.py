"""Parameters that an algorithm makes no use of are refused where they are given."""

import numpy as np
import pytest

from eigengame import EigenGamePCA

X = np.random.default_rng(0).normal(size=(200, 6))


@pytest.mark.parametrize(
    ("algorithm", "given", "words"),
    [
        ("remembered", {"step_size": 0.1}, r"step_size=0\.1 .* algorithm='remembered'"),
        ("auto", {"step_size": 0.1}, r"step_size=0\.1 .* algorithm='auto'"),
        ("best_response", {"step_size": 0.1}, r"step_size=0\.1 .* algorithm='best_response'"),
        ("oja", {"tol": 0.01}, r"tol=0\.01 .* algorithm='oja'"),
        ("oja", {"forget": 0.9}, r"forget=0\.9 .* algorithm='oja'"),
        ("alpha", {"extra": 4}, "extra=4 .* algorithm='alpha'"),
        ("alpha", {"rounds": 2}, "rounds=2 .* algorithm='alpha'"),
    ],
)
def test_a_parameter_without_effect_is_refused(algorithm, given, words):
    with pytest.raises(ValueError, match=f"{words}.*leave"):
        EigenGamePCA(2, algorithm=algorithm, random_state=0, **given).fit(X)


def test_partial_fit_refuses_a_step_size():
    with pytest.raises(ValueError, match="step_size"):
        EigenGamePCA(2, step_size=0.1).partial_fit(X)


def test_a_step_size_is_taken_where_there_is_one():
    EigenGamePCA(2, algorithm="oja", step_size=0.1, passes=2, random_state=0).fit(X)

"""Benchmarks that call functions of the solver directly still do so correctly."""

from benchmarks.share import measure


def test_the_shares_of_an_update_are_measured():
    share, players = measure(d=24, m=32, k=2)
    assert players > 2
    assert share.seconds > 0
    assert 0 < share.products < 1
    assert 0 <= share.eigenproblems < 1

import numpy as np
import pytest

from reproduction.base import Verdict
from reproduction.experiments import dag

K = dag.K


@pytest.mark.slow
def test_the_measured_graph_is_the_strict_upper_triangle(results):
    seen = results("dag")
    for kind in dag.KINDS:
        for graph in dag.graphs_of(seen, "hierarchy", kind):
            np.testing.assert_array_equal(graph, np.triu(np.ones((K, K), bool), 1))
        for graph in dag.graphs_of(seen, "no hierarchy", kind):
            np.testing.assert_array_equal(graph, ~np.eye(K, dtype=bool))


@pytest.mark.slow
def test_only_children_of_a_silent_parent_lose_their_components(results):
    for name, angles in results("dag")["ends"].items():
        upto = K if name == "none" else int(name)
        assert np.max(np.asarray(angles)[:, :upto]) < 0.1
        if name != "none":
            assert (np.max(np.asarray(angles)[:, upto:], axis=1) > dag.FAR).all()


@pytest.mark.parametrize(
    ("edges", "path", "orders"),
    [
        ([], 1, 6),
        ([(0, 1), (1, 2)], 3, 1),
        ([(0, 1), (0, 2)], 2, 2),
        ([(0, 1), (1, 0)], None, 0),
        ([(0, 1), (1, 2), (2, 0)], None, 0),
    ],
)
def test_paths_and_orders_of_small_graphs(edges, path, orders):
    graph = np.zeros((3, 3), bool)
    for edge in edges:
        graph[edge] = True
    assert dag.longest_path(graph) == path
    assert dag.count_orders(graph) == orders


def verdicts(results):
    return [claim.verdict for claim in dag.claims(results)]


def test_a_dependence_on_a_later_player_or_a_missing_one_changes_the_verdict(stored):
    assert verdicts(stored("dag"))[:2] == [Verdict.HOLDS] * 2
    for place, value in (((4, 1), 1e-6), ((0, 3), 0.0)):
        results = stored("dag")
        for kind in dag.KINDS:
            for moment in results["changes"]["hierarchy"][kind]:
                moment[place[0]][place[1]] = value
        assert verdicts(results)[0] is Verdict.DOES_NOT_HOLD


def test_another_graph_at_a_later_moment_changes_the_verdict_on_the_order(stored):
    results = stored("dag")
    results["changes"]["hierarchy"]["gradient"][-1][0][1] = 0.0
    order = dag.claims(results)[1]
    assert order.verdict is Verdict.DOES_NOT_HOLD
    assert "are different" in order.measured
    results = stored("dag")
    for kind in dag.KINDS:
        for moment in results["changes"]["hierarchy"][kind]:
            moment[5][0] = 0.1
    order = dag.claims(results)[1]
    assert order.verdict is Verdict.DOES_NOT_HOLD
    assert "0 orders have every parent before its children, and there is a cycle" in order.measured


@pytest.mark.parametrize(
    ("silent", "player", "angle"), [("2", 0, 30.0), ("5", 5, 0.1), ("none", 3, 9.0)]
)
def test_a_lost_parent_or_a_child_that_is_found_changes_the_verdict(stored, silent, player, angle):
    results = stored("dag")
    assert verdicts(results)[2] is Verdict.HOLDS
    results["ends"][silent][0][player] = angle
    assert verdicts(results)[2] is Verdict.DOES_NOT_HOLD


def test_the_summary_counts_broadcasts_edges_and_lost_children(stored):
    results = stored("dag")
    said = dag.summary(results)
    assert "a broadcast from 5 players along 15 edges" in said
    for values in results["changes"]["hierarchy"]["gradient"]:
        values[4][5] = 0.0
    for name in results["ends"]:
        results["ends"][name] = [[50.0] * K for _ in results["ends"][name]]
    changed = dag.summary(results)
    assert "a broadcast from 4 players along 14 edges" in changed
    assert "Of all children of silent parents, all end" in changed

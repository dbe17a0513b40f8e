"""`eigengame reproduce`: the pointer to the experiments."""

import json


def test_it_points_to_the_repository_and_exits_with_an_error(run):
    ended = run("reproduce", "mnist", "scree")
    assert ended.code == 1
    assert "reproduction/" in ended.err
    assert "python -m reproduction mnist scree" in ended.err
    assert "python -m reproduction all" in run("reproduce").err


def test_json_has_the_command(run):
    ended = run("reproduce", "--json")
    assert json.loads(ended.out)["command"] == "python -m reproduction all"

"""The table of components: bounds, estimates and what follows from them."""

import json
import math
from types import SimpleNamespace

import numpy as np

from eigengame import Certificate, EigenGamePCA
from eigengame.cli.output import print_components

from .conftest import K


def model(angle, estimate=None, tol=None, kind="certified"):
    k = len(angle)
    nothing = np.full(k, np.nan)
    certificate = Certificate(
        kind, np.arange(k, 0, -1.0), np.full(k, 0.01), np.ones(k), np.array(angle), 0.5, 0.999,
        nothing, nothing, estimate=estimate,
    )  # fmt: skip
    share = np.full(k, 0.5 / k)
    return SimpleNamespace(
        certificate_=certificate,
        tol_=tol,
        explained_variance_=certificate.rayleigh,
        explained_variance_ratio_=share,
    )


def printed(capsys, *given, **options):
    print_components(model(*given, **options))
    return [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_every_component_has_a_kind_and_estimates_are_named(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = printed(capsys, [0.01, 0.2, math.pi / 2], np.array([0.001, 0.01, 0.02]))
    assert [line[4:] for line in lines[2:5]] == [
        ["≤", "0.01", "certified"],
        ["≤", "0.2", "certified"],
        ["~", "0.02", "estimate", "(gap)"],
    ]
    said = " ".join(" ".join(line) for line in lines[5:])
    assert "1 of 3 components within 0.05 rad, 1 within a larger angle, 1 without a bound" in said
    assert "~ is an estimate, which guarantees nothing" in said


def test_the_requested_tolerance_is_the_one_that_is_counted(capsys):
    lines = printed(capsys, [0.01, 0.2, 0.3], tol=0.25)
    assert "2 of 3 components within 0.25 rad" in " ".join(lines[-2])
    assert " ".join(lines[-1]) == "Components are judged by the tol of the fit, 0.25 rad."
    lines = printed(capsys, [0.01, 0.049, 0.051])
    assert "2 of 3 components within 0.05 rad" in " ".join(lines[-2])
    assert " ".join(lines[-1]) == "No tol was requested: components are judged by 0.05 rad."


def test_components_without_a_bound_are_in_long_tables(capsys):
    angle = np.full(60, 0.01)
    angle[45] = math.pi / 2
    lines = printed(capsys, angle)
    numbers = [line[0] for line in lines[2 : 2 + 34]]
    assert numbers == [*map(str, range(1, 33)), "...", "46"]
    assert lines[36][:4] == ["27", "components", "are", "not"]


def test_components_that_miss_the_tolerance_are_in_tables_of_any_length(capsys):
    angle = np.full(500, 0.01)
    angle[45] = 0.2
    angle[200:400] = math.pi / 2
    lines = printed(capsys, angle, tol=0.1)
    numbers = [line[0] for line in lines[2:]]
    expected = [*map(str, range(1, 33)), "...", "46", "...", *map(str, range(201, 401))]
    assert numbers[: len(expected)] == expected
    assert lines[2 + len(expected)][:4] == ["267", "components", "are", "not"]


def test_the_advice_is_about_missing_bounds_and_json_has_kinds_and_reasons(run, data):
    options = ("--probes", 0, "--algorithm", "remembered", "--batch-size", 100, "--tol", "none")
    done = run("fit", data, "-k", K, *options, "-q")
    assert "Next: Fit with probes=48" in done.out
    done = run("inspect", "data.safetensors", "--json")
    found = json.loads(done.out)["certificate"]
    assert found["kinds"] == ["estimate"] * K
    assert found["reasons"] == ["without probes, one pass measures no angle"] * K
    assert found["advice"] == EigenGamePCA.load("data.safetensors").certificate_.advice


def test_extra_players_are_an_option(run, data):
    done = run("fit", data, "-k", K, "--extra", 5, "--algorithm", "remembered", "-q")
    assert done.code == 0, done.err
    assert EigenGamePCA.load("data.safetensors").extra == 5
    assert run("fit", data, "-k", K, "--extra", "few", "-o", "m.safetensors").code == 2


def test_components_beyond_the_tolerance_are_in_long_tables_however_many(capsys):
    angle = np.full(300, 0.01)
    angle[100:250] = 0.3
    lines = printed(capsys, angle, tol=0.05)
    numbers = [line[0] for line in lines if line[0].isdigit() and len(line) > 4]
    assert numbers[32:182] == [*map(str, range(101, 251))]


def test_uncertified_components_are_named_on_stderr_once(run, data):
    options = ("--probes", 0, "--algorithm", "remembered", "--passes", 1)
    done = run("fit", data, "-k", K, *options, "-q")
    assert done.code == 0
    assert done.err.count("not certified within 0.05 rad") == 1
    assert done.err.startswith(f"Warning: components 1 to {K} of {K} are not certified")
    assert "Fit with probes=48" in done.err
    assert run("fit", data, "-k", K, *options, "--tol", "none", "--force", "-q").err == ""


def test_a_tolerance_that_is_not_an_angle_is_refused(run, data):
    assert "give an angle above 0" in run("fit", data, "--tol", "-1").err

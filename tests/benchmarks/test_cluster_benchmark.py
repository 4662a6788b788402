"""The benchmark on a real API server runs, and everybody in it has to know the same."""

import json
from contextlib import closing
from subprocess import CalledProcessError

import pytest
from click.testing import CliRunner

from benchmarks import cluster
from benchmarks.__main__ import main
from benchmarks.errands import Errand, Order, carry_out
from benchmarks.measuring import QUICK, Disagreement
from benchmarks.opponents import Keeper, Opponents
from benchmarks.surveys import Survey

READINGS = {
    "10,000 custom resources: start, until all are heard of: CPU time": (
        "ours: setpoint run",
        "ours, without the bare lists",
        "our client: the bare lists, nothing is kept",
        "our client: everything is kept as trees",
    ),
    "10,000 custom resources: start, until all are heard of: by the clock": (
        "ours: setpoint run",
        "our client: the bare lists, nothing is kept",
        "our client: everything is kept as trees",
    ),
    "10,000 custom resources: memory at rest, each, beyond that of a process without any": (
        "ours: setpoint run",
        "our client: everything is kept as trees",
    ),
    "10,000 custom resources: memory at rest, all of the process": (
        "ours: setpoint run",
        "our client: everything is kept as trees",
    ),
    "10,000 custom resources: a look at one in which nothing moved: CPU time": (
        "ours: the first look at each",
        "ours: a later look at each",
    ),
    "10,000 custom resources: requests to the cluster, besides watches": (
        "ours: the start",
        "ours: the first look at each",
        "ours: a later look at each",
    ),
    "10,000 custom resources: a fifth is edited at once, each until that is kept: CPU time": (
        "ours: setpoint run",
        "our client: the bare events, nothing is kept",
        "our client: everything is kept as trees",
    ),
}


@pytest.mark.usefixtures("cluster_assets")
def test_measures_a_fleet_in_a_cluster() -> None:
    result = CliRunner().invoke(main, ["--quick", "--alone", "-o", "json", "cluster"], catch_exceptions=False)

    report = json.loads(result.stdout)
    readings = [(one["subject"], one["name"]) for one in report["readings"]]
    requests = [one["value"] for one in report["readings"] if one["unit"] == "number"]
    assert readings == [(subject, name) for subject, names in READINGS.items() for name in names]
    assert requests == [3, 0, 0]
    assert [bar["bar"] for bar in report["bars"]] == ["< 0.5 s", "≤ 3 KB", "≤ 129 bytes"]


@pytest.mark.usefixtures("cluster_assets")
def test_one_who_misses_a_resource_or_an_event_stops_the_run() -> None:
    forgetful = Opponents((), (), keepers=(Keeper("orjson", "tests.benchmarks.forgetful"),))

    with closing(cluster.trials(forgetful, QUICK)) as trials:
        for found in ("forgetful:start knows of 59 resources, not of 60", "orjson heard of 9 edits, not of 10"):
            survey = next(trials)
            assert isinstance(survey, Survey)
            with pytest.raises(Disagreement, match=found):
                survey.take()


def test_a_process_that_fails_on_its_errand_fails_the_run() -> None:
    order = Order("tests.benchmarks.forgetful:nothing", "nowhere", (), 0)

    with pytest.raises(CalledProcessError, match="forgetful:nothing"):
        carry_out(order)
    with Errand(order) as errand, pytest.raises(CalledProcessError, match="forgetful:nothing"):
        errand.wait_until_ready()

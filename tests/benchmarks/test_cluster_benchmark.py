"""The benchmark on a real API server runs, and every measured process has to find all resources and events."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from subprocess import CalledProcessError

import pytest
from click.testing import CliRunner

from benchmarks import cluster, mixed_fleet
from benchmarks.__main__ import main
from benchmarks.cluster import ClusterScenarios, FleetInCluster, fleet_in_cluster
from benchmarks.cluster_work import BEFORE, BEFORE_VARIABLE, OURS, sources, writes_of
from benchmarks.comparison import QUICK, WrongResult
from benchmarks.measured_process import Job, MeasuredProcess, run_job
from benchmarks.peer_packages import CachingClient, Peers
from tests.cluster.assets import Assets

MEASUREMENTS = {
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
    "a step for an object in sync: the GET, on an API server: by the clock": (
        "as the process itself",
        "as the ServiceAccount of a tenant",
    ),
    "a step for an object that changed: the server-side apply, on an API server: by the clock": (
        "as the process itself",
        "as the ServiceAccount of a tenant",
    ),
}


@pytest.fixture(scope="module")
def fleet(cluster_assets: Assets) -> Iterator[FleetInCluster]:
    """The smallest fleet, on an API server for the tests of this module."""
    with fleet_in_cluster(cluster_assets, QUICK) as fleet:
        yield fleet


def test_measures_a_fleet_in_a_cluster(fleet: FleetInCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "fleet_in_cluster", lambda _assets, _settings: nullcontext(fleet))

    result = CliRunner().invoke(main, ["--quick", "--alone", "-o", "json", "cluster"], catch_exceptions=False)

    report = json.loads(result.stdout)
    measurements = [(entry["subject"], entry["name"]) for entry in report["readings"]]
    requests = [entry["value"] for entry in report["readings"] if entry["unit"] == "number"]
    assert measurements == [(subject, name) for subject, names in MEASUREMENTS.items() for name in names]
    # Four lists, and the definitions of the kinds: an index, and a document for each API group.
    assert requests == [7, 0, 0]
    assert [bar["bar"] for bar in report["bars"]] == ["< 0.5 s", "≤ 3 KB", "≤ 129 bytes"]


def test_a_process_that_misses_a_resource_or_an_event_stops_the_run(fleet: FleetInCluster) -> None:
    scenarios = ClusterScenarios(
        fleet, Peers((), (), caching_clients=(CachingClient("orjson", "tests.benchmarks.forgetful"),))
    )

    with pytest.raises(WrongResult, match="forgetful:start knows of 59 resources, not of 60"):
        scenarios.list_usage(scenarios.list_entry_points["orjson"])
    with pytest.raises(WrongResult, match="orjson heard of 9 edits, not of 10"):
        scenarios.watch_usages({"orjson": scenarios.watch_entry_points["orjson"]}, 10)


def test_a_job_that_fails_in_its_process_fails_the_run() -> None:
    job = Job("tests.benchmarks.forgetful:nothing", "nowhere", (), 0)

    with pytest.raises(CalledProcessError, match="forgetful:nothing"):
        run_job(job)
    with MeasuredProcess(job) as process, pytest.raises(CalledProcessError, match="forgetful:nothing"):
        process.wait_until_ready()


def test_measures_the_work_of_one_instance_and_of_fleets_in_a_cluster(
    cluster_assets: Assets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(BEFORE_VARIABLE, raising=False)
    measured = (
        *mixed_fleet.one_instance(2),
        *mixed_fleet.mixed_resources(cluster_assets, 24),
        *mixed_fleet.namespaces(cluster_assets, 2),
    )

    found = {one.subject: one.value for one in measured}
    assert len(found) == 2 + 8 + 8
    # Of 24 resources one is an instance with an operation under way.
    assert found[writes_of(f"{mixed_fleet.MIXED}: until all are ready")] < 5
    assert found[writes_of(f"{mixed_fleet.MIXED}: until all are gone")] < 3
    assert found[mixed_fleet.REFUSED] == 0


def test_another_checkout_is_measured_beside_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BEFORE_VARIABLE, "elsewhere")

    assert [path.parts[-2:] for path in sources().values()][1:] == [("elsewhere", "src")]
    assert list(sources()) == [OURS, BEFORE]

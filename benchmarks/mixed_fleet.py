"""The group `fleet`: what work costs, rather than rest. Mixed resources of a real API server, created and deleted by
`setpoint run`; and 190 resources of one database instance, applied and deleted by commands without a cluster.
"""

import json
import os
import subprocess
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.request import urlopen

import click

from benchmarks.comparison import BenchmarkSettings, WrongResult
from benchmarks.fleet_server import find_assets
from benchmarks.peers import Peers
from benchmarks.scenarios import Benchmark, Measurement, Scenario, Unit, Unmeasured
from benchmarks.setpoint_process import samples_in
from soak.fleet.process import SETPOINT, RunProcess
from tests.cli.workspace import Workspace, user_environment
from tests.cluster.assets import Assets, Missing
from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.kubectl import Kubectl, install_kinds
from tests.cluster.running.manifests import bucket, database, declared, instance
from tests.cluster.server import Cluster, Settings

CREATE_CPU: Final = "mixed resources: until all are ready: CPU time of each"
CREATE_WALL: Final = "mixed resources: until all are ready: by the clock, all"
CREATE_WRITES: Final = "mixed resources: until all are ready: writes to the cluster, each"
CREATE_READS: Final = "mixed resources: until all are ready: reads of the cluster, each"
DELETE_CPU: Final = "mixed resources: until all are gone: CPU time of each"
DELETE_WALL: Final = "mixed resources: until all are gone: by the clock, all"
ONE_INSTANCE: Final = "190 resources of one instance: by the clock"
REFUSED: Final = "190 resources of one instance: requests refused because of another operation"
OURS: Final = "ours: setpoint run"
APPLIED: Final = "ours: setpoint apply"
DELETED: Final = "ours: setpoint delete"

RESOURCES: Final = 1_000
# Of so many resources, one is an instance, 9 are databases and 10 users of it, and the others are buckets.
_GROUP: Final = 40
_DEPENDANTS: Final = 189
_KINDS: Final = "storagebuckets,sqlusers,sqldatabases,sqlinstances"
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def benchmarks(_peers: Peers, settings: BenchmarkSettings) -> Generator[Benchmark, None, None]:
    """The commands first: they need no API server."""
    yield Scenario(lambda: one_instance(max(8, settings.scaled(_DEPENDANTS))))
    assets = find_assets(lambda line: click.echo(line, err=True))
    if isinstance(assets, Missing):
        yield Unmeasured("mixed resources", assets.reason)
        return
    yield Scenario(lambda: mixed_resources(assets, max(_GROUP, settings.scaled(RESOURCES))))


# --- In a cluster -----------------------------------------------------------------------------------------------------


def mixed_resources(assets: Assets, number: int) -> tuple[Measurement, ...]:
    """What the creation and the deletion of so many resources cost; WrongResult if one was written twice."""
    manifests = [manifest for first in range(0, number, _GROUP) for manifest in _group(first, number)]
    with _harness(assets) as harness:
        process = harness.start_controller()
        before, created = Spent.of(process), _create(harness, manifests)
        after_create = Spent.of(process)
        _delete(harness)
        after_delete = Spent.of(process)
        inserts = harness.in_cloud(lambda cloud: [one for one in cloud.written if one.method == "POST"])
    done = [one for one in inserts if one.status is not None and one.status < 400]
    if created != number or len(done) != number:
        raise WrongResult(f"{created} of {number} resources are ready, by {len(done)} requests to create them")
    creating, deleting = after_create.since(before), after_delete.since(after_create)
    return (
        Measurement(CREATE_CPU, OURS, creating.cpu / number, Unit.SECONDS),
        Measurement(CREATE_WALL, OURS, creating.wall, Unit.SECONDS),
        Measurement(CREATE_WRITES, OURS, creating.writes / number, Unit.NUMBER),
        Measurement(CREATE_READS, OURS, creating.reads / number, Unit.NUMBER),
        Measurement(DELETE_CPU, OURS, deleting.cpu / number, Unit.SECONDS),
        Measurement(DELETE_WALL, OURS, deleting.wall, Unit.SECONDS),
    )


def _group(first: int, number: int) -> Iterator[dict[str, Any]]:
    """The resources from `first` on, up to a group of them."""
    parent = f"db-{first}"
    for index in range(first, min(first + _GROUP, number)):
        match index - first:
            case 0:
                yield instance(parent)
            case within if within < 10:
                yield database(f"data-{index}", parent)
            case within if within < 20:
                yield _user(f"user-{index}", parent)
            case _:
                yield bucket(f"bucket-{index}")


def _user(name: str, of: str) -> dict[str, Any]:
    spec = {"instanceRef": {"name": of}, "password": {"value": f"secret-{name}"}}
    return declared("sql.cnrm.cloud.google.com/v1beta1", "SQLUser", name, spec)


@contextmanager
def _harness(assets: Assets) -> Iterator[ControllerHarness]:
    with TemporaryDirectory(prefix="setpoint-bench-") as name:
        folder = Path(name)
        (folder / "cluster").mkdir()
        with Cluster(assets, folder / "cluster", Settings()) as server:
            program = assets.kubectl
            assert program is not None, "benchmarks run on assets that were built"
            install_kinds(server.access, program)
            namespace = server.access.new_namespace()
            with ControllerHarness(Kubectl(program, server.access, namespace), folder) as harness:
                yield harness


def _create(harness: ControllerHarness, manifests: Sequence[Mapping[str, Any]]) -> int:
    """How many resources are ready once all are."""
    whole = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    harness.kubectl("create", "-f", "-", stdin=whole)

    def ready() -> int:
        shown = "-o=jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"
        return harness.kubectl("get", _KINDS, shown).split().count("True")

    until(lambda: ready() == len(manifests))
    return ready()


def _delete(harness: ControllerHarness) -> None:
    harness.kubectl("delete", _KINDS, "--all", "--wait=false")
    until(lambda: not harness.kubectl("get", _KINDS, "-o=name"))


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process has used so far: CPU time, and requests to the cluster without leases and watches."""

    cpu: float
    wall: float
    writes: float
    reads: float

    @staticmethod
    def of(process: RunProcess) -> "Spent":
        """By the accounts of the kernel, and by its metrics."""
        pid = process.child.pid
        assert pid is not None
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        page = process.metrics().encode()
        counts = [(one.labels["method"], one.value) for one in samples_in(page, "rest_client_requests_total")]
        return Spent(
            (int(fields[11]) + int(fields[12])) / _TICKS,
            time.monotonic(),
            # Only leases are replaced as a whole.
            sum(value for method, value in counts if method not in ("GET", "PUT")),
            sum(value for method, value in counts if method == "GET"),
        )

    def since(self, before: "Spent") -> "Spent":
        """The difference."""
        return Spent(
            self.cpu - before.cpu, self.wall - before.wall, self.writes - before.writes, self.reads - before.reads
        )


# --- One instance, without a cluster ----------------------------------------------------------------------------------


def one_instance(dependants: int) -> tuple[Measurement, ...]:
    """How long it takes to apply and to delete an instance with so many databases and users."""
    parent = "shared"
    manifests = [instance(parent)]
    manifests += [(database if one % 2 else _user)(f"one-{one}", parent) for one in range(dependants)]
    with TemporaryDirectory(prefix="setpoint-bench-") as name, _local_cloud(Path(name)) as environment:
        Path(name, "all.yaml").write_text("\n---\n".join(map(json.dumps, manifests)), encoding="utf-8")
        before = _refusals(environment)
        seconds = {one: _run_command(one, Path(name), environment) for one in ("apply", "delete")}
        refused = _refusals(environment) - before
    return (
        Measurement(ONE_INSTANCE, APPLIED, seconds["apply"], Unit.SECONDS),
        Measurement(ONE_INSTANCE, DELETED, seconds["delete"], Unit.SECONDS),
        Measurement(REFUSED, DELETED, refused, Unit.NUMBER),
    )


@contextmanager
def _local_cloud(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of commands that talk to a local cloud of their own."""
    with Workspace(folder, user_environment()) as workspace:
        yield dict(workspace.environment)


def _refusals(environment: Mapping[str, str]) -> int:
    """How many requests the local cloud refused because another operation was under way."""
    with urlopen(f"{environment['STORAGE_EMULATOR_HOST']}/_local/calls", timeout=60) as answer:
        return sum(one.get("status") == 409 for one in json.load(answer)["calls"])


def _run_command(command: str, folder: Path, environment: Mapping[str, str]) -> float:
    begun = time.monotonic()
    arguments = [SETPOINT, command, "-f", "all.yaml", "--timeout", "20m", *(["--yes"] if command == "delete" else [])]
    done = subprocess.run(arguments, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False)
    if done.returncode:
        raise WrongResult(f"setpoint {command} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return time.monotonic() - begun

"""What work in a cluster costs: resources that `setpoint run` creates and deletes on a real API server.

With `SETPOINT_BENCH_BEFORE`, the folder of another checkout, its `setpoint run` is measured in the same run.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.comparison import WrongResult
from benchmarks.process_tree import process_cpu
from benchmarks.scenarios import Measurement, Unit, compared
from benchmarks.setpoint_process import samples_in
from soak.fleet.process import RunProcess
from tests.cluster.assets import Assets
from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.kubectl import Kubectl, install_kinds
from tests.cluster.server import CONTROLLERS, Cluster, Settings

OURS: Final = "ours: setpoint run"
BEFORE: Final = "before: setpoint run"
# The folder of the checkout to compare with.
BEFORE_VARIABLE: Final = "SETPOINT_BENCH_BEFORE"

_KINDS: Final = "storagebuckets,sqlusers,sqldatabases,sqlinstances"
_ROOT: Final = Path(__file__).resolve().parents[1]
# A process has sent its events when it has written nothing for so many seconds.
_REST_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.1


def sources() -> dict[str, Path]:
    """The folder with the source of each candidate."""
    found = {OURS: _ROOT / "src"}
    return {**found, BEFORE: Path(os.environ[BEFORE_VARIABLE], "src")} if BEFORE_VARIABLE in os.environ else found


@dataclass(frozen=True, slots=True)
class Fleet:
    """The resources of each namespace, by its number. `with_namespaces`: they are deleted with their namespaces."""

    manifests: Sequence[Sequence[Mapping[str, Any]]]
    with_namespaces: bool = False

    @property
    def size(self) -> int:
        """The number of resources."""
        return sum(map(len, self.manifests))


def measure_fleet(assets: Assets, fleet: Fleet, what: str) -> tuple[Measurement, ...]:
    """What the creation and the deletion of a fleet cost each candidate; `what` begins the subjects."""
    found = {name: _work(assets, fleet, source) for name, source in sources().items()}
    measured: list[Measurement] = []
    for phase, index in ((f"{what}: until all are ready", 0), (f"{what}: until all are gone", 1)):
        spent = {name: work[index] for name, work in found.items()}
        each = {
            cpu_of(phase): ({name: one.cpu / fleet.size for name, one in spent.items()}, Unit.SECONDS),
            f"{phase}: by the clock, all": ({name: one.wall for name, one in spent.items()}, Unit.SECONDS),
            writes_of(phase): ({name: one.writes / fleet.size for name, one in spent.items()}, Unit.NUMBER),
            f"{phase}: all requests, each": ({n: one.requests / fleet.size for n, one in spent.items()}, Unit.NUMBER),
        }
        for subject, (values, unit) in each.items():
            measured += compared(subject, values, unit)
    return tuple(measured)


def cpu_of(phase: str) -> str:
    """The subject of the CPU time."""
    return f"{phase}: CPU time of each"


def writes_of(phase: str) -> str:
    """The subject of the writes to the API server."""
    return f"{phase}: writes to the cluster, each"


def _work(assets: Assets, fleet: Fleet, source: Path) -> tuple["Spent", "Spent"]:
    """What creation and deletion cost; WrongResult if a resource was created twice, or not at all."""
    with _harness(assets, fleet, source) as (harness, namespaces):
        process, meter = harness.start_controller(), _Meter(harness)
        before = meter.read(process)
        _create(harness, fleet, namespaces)
        created = meter.read(process)
        _delete(harness, fleet, namespaces)
        deleted = meter.read(process)
        inserts = harness.in_cloud(lambda cloud: [one for one in cloud.written if one.method == "POST"])
    done = sum(one.status is not None and one.status < 400 for one in inserts)
    if done != fleet.size:
        raise WrongResult(f"{fleet.size} resources were created by {done} requests")
    return created.since(before), deleted.since(created)


@contextmanager
def _harness(assets: Assets, fleet: Fleet, source: Path) -> Iterator[tuple[ControllerHarness, Sequence[str]]]:
    """With the namespaces of the fleet."""
    with TemporaryDirectory(prefix="setpoint-bench-") as name:
        folder = Path(name)
        (folder / "cluster").mkdir()
        with Cluster(assets, folder / "cluster", Settings(CONTROLLERS if fleet.with_namespaces else ())) as server:
            program = assets.kubectl
            assert program is not None, "benchmarks run on assets that were built"
            install_kinds(server.access, program)
            namespaces = [server.access.new_namespace() for _ in fleet.manifests]
            # The namespace of the leases outlives those of the fleet.
            own = "default" if fleet.with_namespaces else namespaces[0]
            whole = {"SETPOINT_STORE": "kubernetes"} if fleet.with_namespaces else {}
            variables = {"PYTHONPATH": str(source), **whole}
            kubectl = Kubectl(program, server.access, own)
            with ControllerHarness(kubectl, folder, variables=variables) as harness:
                yield harness, namespaces


def _create(harness: ControllerHarness, fleet: Fleet, namespaces: Sequence[str]) -> None:
    for namespace, manifests in zip(namespaces, fleet.manifests, strict=True):
        whole = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
        replace(harness.kubectl, namespace=namespace)("create", "-f", "-", stdin=whole)
    shown = "-o=jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"
    until(lambda: harness.kubectl("get", _KINDS, "-A", shown).split().count("True") == fleet.size)


def _delete(harness: ControllerHarness, fleet: Fleet, namespaces: Sequence[str]) -> None:
    if fleet.with_namespaces:
        harness.kubectl("delete", "namespace", *namespaces, "--wait=false")
    else:
        harness.kubectl("delete", _KINDS, "--all", "--wait=false")
    until(lambda: not harness.kubectl("get", _KINDS, "-A", "-o=name"))


# --- What a process has used ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process has used: CPU time, writes to the API server, and all requests, without leases and watches."""

    cpu: float
    wall: float
    writes: float
    requests: float

    def since(self, before: "Spent") -> "Spent":
        """The difference."""
        return Spent(
            self.cpu - before.cpu, self.wall - before.wall, self.writes - before.writes, self.requests - before.requests
        )


@dataclass(frozen=True, slots=True)
class _Meter:
    harness: ControllerHarness

    def read(self, process: RunProcess) -> Spent:
        """By the accounts of the kernel, by the metrics of the process, and by the proxy before the API server."""
        pid, wall = process.child.pid, time.monotonic()
        assert pid is not None
        self._wait_for_events()
        proxied = [one for one in self.harness.requests() if not one.is_watch]
        api_server = urlsplit(self.harness.proxy.url).netloc
        samples = samples_in(process.metrics().encode(), "rest_client_requests_total")
        calls = sum(one.value for one in samples if one.labels["host"] != api_server)
        return Spent(
            process_cpu(pid, with_children=False),
            wall,
            sum(one.method != "GET" for one in proxied),
            len(proxied) + calls,
        )

    def _wait_for_events(self) -> None:
        """Waits until nothing has been written for a while: events are sent behind the work that they are about."""
        seen, since = -1, time.monotonic()
        while time.monotonic() - since < _REST_SECONDS:
            writes = sum(one.method != "GET" for one in self.harness.requests())
            if writes != seen:
                seen, since = writes, time.monotonic()
            time.sleep(_POLL_SECONDS)

"""The group `fleet`: what work costs, rather than rest. Resources of a real API server, created and deleted by
`setpoint run`; and 190 resources of one database instance, applied and deleted by commands without a cluster.
"""

import json
import subprocess
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.request import urlopen

import click

from benchmarks.cluster_work import Fleet, measure_fleet
from benchmarks.comparison import BenchmarkSettings, WrongResult
from benchmarks.fleet_server import find_assets
from benchmarks.peer_packages import Peers
from benchmarks.scenarios import Benchmark, Measurement, Scenario, Unit, Unmeasured
from soak.fleet.process import SETPOINT
from tests.cli.workspace import Workspace, user_environment
from tests.cluster.assets import Assets, Missing
from tests.cluster.running.manifests import bucket, database, declared, instance

MIXED: Final = "mixed resources"
INSTANCES: Final = "instances with 18 databases and users each"
NAMESPACES: Final = "namespaces with 10 mixed resources each"
ONE_INSTANCE: Final = "190 resources of one instance: by the clock"
REFUSED: Final = "190 resources of one instance: requests refused because of another operation"
APPLIED: Final = "ours: setpoint apply"
DELETED: Final = "ours: setpoint delete"

RESOURCES, INSTANCE_COUNT, NAMESPACE_COUNT = 1_000, 10, 50
# Of so many resources, one is an instance, 9 are databases and 10 users of it, and the others are buckets.
GROUP_SIZE: Final = 40
_DEPENDANTS: Final = 189


def benchmarks(_peers: Peers, settings: BenchmarkSettings) -> Generator[Benchmark, None, None]:
    """The commands first: they need no API server."""
    yield Scenario(lambda: one_instance(max(8, settings.scaled(_DEPENDANTS))))
    assets = find_assets(lambda line: click.echo(line, err=True))
    if isinstance(assets, Missing):
        yield Unmeasured(MIXED, assets.reason)
        return
    yield Scenario(lambda: mixed_resources(assets, max(GROUP_SIZE, settings.scaled(RESOURCES))))
    yield Scenario(lambda: instances(assets, max(2, settings.scaled(INSTANCE_COUNT))))
    yield Scenario(lambda: namespaces(assets, max(2, settings.scaled(NAMESPACE_COUNT))))


# --- In a cluster -----------------------------------------------------------------------------------------------------


def mixed_resources(assets: Assets, number: int) -> tuple[Measurement, ...]:
    """What the creation and the deletion of so many resources cost."""
    firsts = range(0, number, GROUP_SIZE)
    manifests = [one for first in firsts for one in group(first, min(GROUP_SIZE, number - first))]
    return measure_fleet(assets, Fleet([manifests]), MIXED)


def instances(assets: Assets, number: int) -> tuple[Measurement, ...]:
    """The same for so many instances with 18 databases and users each: how far operations wait for each other."""
    manifests = [one for first in range(0, number * GROUP_SIZE, GROUP_SIZE) for one in group(first, 1 + 18)]
    return measure_fleet(assets, Fleet([manifests]), INSTANCES)


def namespaces(assets: Assets, number: int) -> tuple[Measurement, ...]:
    """The same for so many namespaces, with an instance, what is in it, and as many buckets in each."""
    manifests = [[*group(first, 5), *map(_bucket, range(first, first + 5))] for first in range(0, number * 5, 5)]
    return measure_fleet(assets, Fleet(manifests, with_namespaces=True), NAMESPACES)


def group(first: int, size: int) -> Iterator[dict[str, Any]]:
    """An instance; 9 databases and 10 users of it, by turns; and buckets: so many in all, numbered from `first`."""
    parent = f"db-{first}"
    for index in range(first, first + size):
        match index - first:
            case 0:
                yield instance(parent)
            case within if within < 20:
                yield _user(f"user-{index}", parent) if within % 2 else database(f"data-{index}", parent)
            case _:
                yield _bucket(index)


def _bucket(index: int) -> dict[str, Any]:
    return bucket(f"bucket-{index}")


def _user(name: str, of: str) -> dict[str, Any]:
    spec = {"instanceRef": {"name": of}, "password": {"value": f"secret-{name}"}}
    return declared("sql.cnrm.cloud.google.com/v1beta1", "SQLUser", name, spec)


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

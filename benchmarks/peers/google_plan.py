"""The plan of Google resources that are as declared, by `setpoint plan`; beside it, Config Connector's period.

Config Connector has no plan: it compares a resource when its period ends. Nothing of it runs here.
"""

import json
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.request import urlopen

from benchmarks.comparison import WrongResult
from benchmarks.mixed_fleet import GROUP_SIZE, group
from benchmarks.scenarios import Measurement, Unit, compared
from benchmarks.start_up import children_cpu
from soak.fleet.process import SETPOINT
from tests.cli.workspace import Workspace, user_environment

RESOURCES: Final = 1_000
PLANNED: Final = "1,000 Google resources are planned, none has changed"
CPU: Final = f"{PLANNED}: CPU time"
WALL: Final = f"{PLANNED}: by the clock until each was compared"
REQUESTS: Final = f"{PLANNED}: requests to Google, each"
OURS: Final = "setpoint plan"
CONFIG_CONNECTOR: Final = "Config Connector, not run: the end of its longest period"
# Its mean period is 10 minutes; each delay is between half of it and one and a half of it.
CONFIG_CONNECTOR_SECONDS: Final = 1.5 * 600
# Why Terraform's own provider is not among them.
NO_PROVIDER: Final = (
    "as a Go module it has one release, of 2018, from before Terraform 0.12; the commit of a later one that could be "
    "downloaded is not in the checksum database"
)
_FILE: Final = "all.yaml"


@dataclass(frozen=True, slots=True)
class PlanCost:
    """What a plan took: CPU seconds, seconds by the clock, requests."""

    cpu: float
    wall: float
    requests: int


def planned_resources(number: int) -> tuple[Measurement, ...]:
    """Applies so many mixed resources, and measures the plan that follows."""
    firsts = range(0, number, GROUP_SIZE)
    manifests = [one for first in firsts for one in group(first, min(GROUP_SIZE, number - first))]
    with TemporaryDirectory(prefix="setpoint-bench-") as name, Workspace(Path(name), user_environment()) as workspace:
        folder, environment = Path(name), dict(workspace.environment)
        (folder / _FILE).write_text("\n---\n".join(map(json.dumps, manifests)), encoding="utf-8")
        run_command(folder, environment, "apply", "-f", _FILE, "--quiet", "--timeout", "20m")
        cost = plan_cost(folder, environment)
    return measurements(cost, number)


def plan_cost(folder: Path, environment: Mapping[str, str]) -> PlanCost:
    """What the plan of the file takes; WrongResult unless nothing is to be written."""
    requests, cpu, begun = _requests(environment), children_cpu(), time.monotonic()
    run_command(folder, environment, "plan", "-f", _FILE, "--quiet")
    wall = time.monotonic() - begun
    return PlanCost((children_cpu() - cpu) / 1e9, wall, _requests(environment) - requests)


def run_command(folder: Path, environment: Mapping[str, str], *words: str) -> None:
    """Runs a command; WrongResult unless its exit code is 0."""
    done = subprocess.run(
        [SETPOINT, *words], cwd=folder, env=dict(environment), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise WrongResult(f"setpoint {words[0]} exits with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")


def _requests(environment: Mapping[str, str]) -> int:
    """How many requests the local cloud has answered."""
    with urlopen(f"{environment['STORAGE_EMULATOR_HOST']}/_local", timeout=60) as answer:
        total: int = json.load(answer)["counts"]["total"]
    return total


def measurements(cost: PlanCost, number: int) -> tuple[Measurement, ...]:
    """Ratios are relative to ours."""
    return (
        *compared(CPU, {OURS: cost.cpu}, Unit.SECONDS),
        *compared(WALL, {OURS: cost.wall, CONFIG_CONNECTOR: CONFIG_CONNECTOR_SECONDS}, Unit.SECONDS),
        *compared(REQUESTS, {OURS: cost.requests / number}, Unit.PER_OBJECT),
    )

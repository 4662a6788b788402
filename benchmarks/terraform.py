"""The group `terraform`: the cost of a plan of one object without changes.

Terraform starts a provider three times for a plan. Compares the provider of setpoint, a provider that does nothing,
and Terraform without a provider.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from benchmarks.comparison import BenchmarkSettings, WrongResult
from benchmarks.fleet_server import find_assets
from benchmarks.peers import Peers
from benchmarks.scenarios import Benchmark, Measurement, Scenario, Unit, Unmeasured, compared
from benchmarks.start_up import children_cpu
from setpoint import __version__
from setpoint.deployment.terraform_plugin import HOSTS, PLATFORMS, launcher, launcher_paths, semantic_version
from tests.cluster.access import Access
from tests.cluster.assets import Assets, Missing
from tests.cluster.server import Cluster, Settings

PLAN: Final = "terraform plan of one object, nothing to do"
CPU: Final = f"{PLAN}: CPU time of all processes"
WALL: Final = f"{PLAN}: by the clock"
OURS: Final = "ours: setpoint_object, on an API server"
NOOP: Final = "a provider of the same framework that does nothing"
TERRAFORM_ALONE: Final = "Terraform alone: terraform_data"

_PLANS: Final = 7
_ROOT: Final = Path(__file__).resolve().parents[1]
_VERSION: Final = "1.0.0"
_YAML: Final = """<<-YAML
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: bench
      namespace: default
    data:
      key: value
  YAML
"""
_OBJECT: Final = """
terraform {{
  required_providers {{
    {name} = {{ source = "{source}" }}
  }}
}}
resource "{name}_object" "one" {{
  yaml_body = {yaml}}}
"""
_CONFIGURATIONS: Final = {
    OURS: _OBJECT.format(name="setpoint", source="setpoint/setpoint", yaml=_YAML),
    NOOP: _OBJECT.format(name="noop", source="bench/noop", yaml=_YAML),
    TERRAFORM_ALONE: f'resource "terraform_data" "one" {{\n  input = {_YAML}}}\n',
}
_NOOP_LAUNCHER: Final = f"""#!/bin/sh
PYTHONPATH="{_ROOT / "src"}:{_ROOT}" exec "{sys.executable}" -m benchmarks.terraform_noop_provider
"""


def benchmarks(_peers: Peers, settings: BenchmarkSettings) -> Generator[Benchmark, None, None]:
    """With the Terraform on the PATH, and on an API server. Its binaries are built first if there are none."""
    binary = shutil.which(os.environ.get("SETPOINT_TERRAFORM") or "terraform")
    if binary is None:
        yield Unmeasured(PLAN, "terraform is not on the PATH")
        return
    assets = _cluster_assets()
    if isinstance(assets, Unmeasured):
        yield assets
    with ExitStack() as stack:
        projects = _TerraformProjects(binary, Path(stack.enter_context(TemporaryDirectory(prefix="setpoint-bench-"))))
        projects.install()
        if isinstance(assets, Assets):
            access = stack.enter_context(api_server(assets, projects.home / "cluster"))
            projects.apply(OURS, {"KUBECONFIG": str(access.kubeconfig)})
        projects.apply(NOOP)
        projects.apply(TERRAFORM_ALONE)
        yield Scenario(lambda: projects.plan_all(min(_PLANS, settings.rounds)))


@contextmanager
def api_server(assets: Assets, folder: Path) -> Iterator[Access]:
    """An API server that is stopped at the end of the block."""
    folder.mkdir()
    with Cluster(assets, folder, Settings()) as cluster:
        yield cluster.access


def _cluster_assets() -> Assets | Unmeasured:
    assets = find_assets(lambda line: click.echo(line, err=True))
    return Unmeasured(f"{PLAN}: {OURS}", assets.reason) if isinstance(assets, Missing) else assets


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU time and duration in seconds."""

    cpu: float
    wall: float


class _TerraformProjects:
    """A home directory in which the providers are installed, and a project for each candidate."""

    def __init__(self, binary: str, home: Path) -> None:
        self.home = home
        self._binary = binary
        self._environments: dict[str, dict[str, str]] = {}

    def install(self) -> None:
        """Installs both providers in the plugin directory of Terraform."""
        plugins = self.home / ".terraform.d" / "plugins"
        for path in launcher_paths(semantic_version(__version__)):
            _write_executable(plugins / path, launcher())
        for host in HOSTS:
            for platform in PLATFORMS:
                folder = plugins / host / "bench" / "noop" / _VERSION / platform
                _write_executable(folder / f"terraform-provider-noop_v{_VERSION}", _NOOP_LAUNCHER)

    def apply(self, name: str, environment: Mapping[str, str] | None = None) -> None:
        """Creates the project and applies it."""
        folder = self._folder(name)
        folder.mkdir()
        (folder / "main.tf").write_text(_CONFIGURATIONS[name])
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        home = {"HOME": str(self.home), "PATH": path, "CHECKPOINT_DISABLE": "1"}
        self._environments[name] = {**home, **(environment or {})}
        for arguments in (("init",), ("apply", "-auto-approve")):
            self._run(name, (*arguments, "-input=false"))

    def plan_all(self, times: int) -> tuple[Measurement, ...]:
        """The best of `times` plans of each project, in turns."""
        names = tuple(self._environments)
        costs = [{name: self._plan(name) for name in names} for _ in range(times)]
        return (
            *compared(CPU, {name: min(round_costs[name].cpu for round_costs in costs) for name in names}, Unit.SECONDS),
            *compared(
                WALL, {name: min(round_costs[name].wall for round_costs in costs) for name in names}, Unit.SECONDS
            ),
        )

    def _plan(self, name: str) -> Cost:
        cpu, wall = children_cpu(), time.monotonic()
        # With -detailed-exitcode, a plan with changes ends with 2.
        self._run(name, ("plan", "-input=false", "-detailed-exitcode"))
        return Cost((children_cpu() - cpu) / 1e9, time.monotonic() - wall)

    def _folder(self, name: str) -> Path:
        return self.home / f"project-{tuple(_CONFIGURATIONS).index(name)}"

    def _run(self, name: str, arguments: Sequence[str]) -> None:
        command = [self._binary, f"-chdir={self._folder(name)}", *arguments, "-no-color"]
        completed = subprocess.run(command, env=self._environments[name], capture_output=True, text=True, check=False)
        if completed.returncode:
            output = f"{completed.stderr}{completed.stdout}"
            raise WrongResult(f"{name}: terraform {arguments[0]} ends with {completed.returncode}: {output}")


def _write_executable(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text)
    file.chmod(0o755)

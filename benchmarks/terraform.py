"""The group `terraform`: what a plan of one object takes, in which nothing is to do.

Terraform starts a provider three times for it. What it takes by itself, and with a provider that does nothing, stands
beside ours.
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

from benchmarks.fleet_server import programs
from benchmarks.measuring import Disagreement, Pace
from benchmarks.opponents import Opponents
from benchmarks.start_up import children_cpu
from benchmarks.surveys import Reading, Survey, Trial, Unit, Unmeasured, compared
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
ALONE: Final = "Terraform alone: terraform_data"

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
    ALONE: f'resource "terraform_data" "one" {{\n  input = {_YAML}}}\n',
}
_NOOP_LAUNCHER: Final = f"""#!/bin/sh
PYTHONPATH="{_ROOT / "src"}:{_ROOT}" exec "{sys.executable}" -m benchmarks.terraform_noop
"""


def trials(_opponents: Opponents, pace: Pace) -> Generator[Trial, None, None]:
    """With the Terraform of this machine, and on an API server whose programs may have to be built first."""
    binary = shutil.which(os.environ.get("SETPOINT_TERRAFORM") or "terraform")
    if binary is None:
        yield Unmeasured(PLAN, "terraform is not on the PATH")
        return
    found = _cluster_programs()
    if isinstance(found, Unmeasured):
        yield found
    with ExitStack() as stack:
        context = _Scene(binary, Path(stack.enter_context(TemporaryDirectory(prefix="setpoint-bench-"))))
        context.install()
        if isinstance(found, Assets):
            access = stack.enter_context(api_server(found, context.home / "cluster"))
            context.apply(OURS, {"KUBECONFIG": str(access.kubeconfig)})
        context.apply(NOOP)
        context.apply(ALONE)
        yield Survey(lambda: context.planned(min(_PLANS, pace.rounds)))


@contextmanager
def api_server(assets: Assets, folder: Path) -> Iterator[Access]:
    """An API server that ends with the block."""
    folder.mkdir()
    with Cluster(assets, folder, Settings()) as cluster:
        yield cluster.access


def _cluster_programs() -> Assets | Unmeasured:
    found = programs(lambda line: click.echo(line, err=True))
    return Unmeasured(f"{PLAN}: {OURS}", found.reason) if isinstance(found, Missing) else found


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds."""

    cpu: float
    wall: float


class _Scene:
    """A home in which the providers are installed, and a project for each of the contestants."""

    def __init__(self, binary: str, home: Path) -> None:
        self.home = home
        self._binary = binary
        self._environments: dict[str, dict[str, str]] = {}

    def install(self) -> None:
        """Both providers, where Terraform finds them."""
        plugins = self.home / ".terraform.d" / "plugins"
        for place in launcher_paths(semantic_version(__version__)):
            _write_program(plugins / place, launcher())
        for host in HOSTS:
            for platform in PLATFORMS:
                folder = plugins / host / "bench" / "noop" / _VERSION / platform
                _write_program(folder / f"terraform-provider-noop_v{_VERSION}", _NOOP_LAUNCHER)

    def apply(self, name: str, more: Mapping[str, str] | None = None) -> None:
        """Its object is there when this returns."""
        folder = self._folder(name)
        folder.mkdir()
        (folder / "main.tf").write_text(_CONFIGURATIONS[name])
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        home = {"HOME": str(self.home), "PATH": path, "CHECKPOINT_DISABLE": "1"}
        self._environments[name] = {**home, **(more or {})}
        for arguments in (("init",), ("apply", "-auto-approve")):
            self._run(name, (*arguments, "-input=false"))

    def planned(self, times: int) -> tuple[Reading, ...]:
        """The best of so many plans of each, in turns."""
        names = tuple(self._environments)
        costs = [{name: self._plan(name) for name in names} for _ in range(times)]
        return (
            *compared(CPU, {name: min(one[name].cpu for one in costs) for name in names}, Unit.SECONDS),
            *compared(WALL, {name: min(one[name].wall for one in costs) for name in names}, Unit.SECONDS),
        )

    def _plan(self, name: str) -> Cost:
        cpu, wall = children_cpu(), time.monotonic()
        # It ends with another code when there is something to do.
        self._run(name, ("plan", "-input=false", "-detailed-exitcode"))
        return Cost((children_cpu() - cpu) / 1e9, time.monotonic() - wall)

    def _folder(self, name: str) -> Path:
        return self.home / f"project-{tuple(_CONFIGURATIONS).index(name)}"

    def _run(self, name: str, arguments: Sequence[str]) -> None:
        command = [self._binary, f"-chdir={self._folder(name)}", *arguments, "-no-color"]
        done = subprocess.run(command, env=self._environments[name], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Disagreement(
                f"{name}: terraform {arguments[0]} ends with {done.returncode}: {done.stderr}{done.stdout}"
            )


def _write_program(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text)
    file.chmod(0o755)

"""The group `terraform`: the cost of a plan of one object, and of fifty, without changes.

Terraform starts a provider three times for a plan. Compares the provider of setpoint, a provider that does nothing,
and Terraform without a provider. With SETPOINT_BENCH_BEFORE=FOLDER, also the provider of another checkout of setpoint,
such as that of an earlier commit.
"""

import os
import shutil
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from benchmarks.comparison import BenchmarkSettings, WrongResult
from benchmarks.fleet_server import find_assets
from benchmarks.peer_packages import Peers
from benchmarks.process_tree import TreeUsage, run_tree
from benchmarks.scenarios import Benchmark, Measurement, Scenario, Unit, Unmeasured, compared
from setpoint import __version__
from setpoint.deployment.terraform_plugin import HOSTS, PLATFORMS, launcher, launcher_paths, semantic_version
from tests.cluster.access import Access
from tests.cluster.assets import Assets, Missing
from tests.cluster.server import Cluster, Settings

PLAN: Final = "terraform plan of one object, nothing to do"
CPU: Final = f"{PLAN}: CPU time of all processes"
PROVIDER_CPU: Final = f"{PLAN}: CPU time of the provider's processes"
WALL: Final = f"{PLAN}: by the clock"
WALL_OF_MANY: Final = "terraform plan of 50 objects, nothing to do: by the clock"
OURS: Final = "ours: setpoint_object, on an API server"
BEFORE: Final = "ours, of the checkout in SETPOINT_BENCH_BEFORE"
OURS_MANY: Final = "ours: 50 of them"
BEFORE_MANY: Final = "ours, of that checkout: 50 of them"
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
  count     = {count}
  yaml_body = {yaml}}}
"""
_BEFORE_VARIABLE: Final = "SETPOINT_BENCH_BEFORE"
_MANY: Final = 50


def _objects(source: str, name: str, count: int = 1) -> str:
    yaml = _YAML.replace("name: bench", f"name: {name}-${{count.index}}")
    return _OBJECT.format(name="setpoint", source=source, yaml=yaml, count=count)


_CONFIGURATIONS: Final = {
    OURS: _objects("setpoint/setpoint", "ours"),
    BEFORE: _objects("bench/before", "before"),
    OURS_MANY: _objects("setpoint/setpoint", "ours-many", _MANY),
    BEFORE_MANY: _objects("bench/before", "before-many", _MANY),
    NOOP: _OBJECT.format(name="noop", source="bench/noop", yaml=_YAML, count=1),
    TERRAFORM_ALONE: f'resource "terraform_data" "one" {{\n  input = {_YAML}}}\n',
}
_NOOP_LAUNCHER: Final = f"""#!/bin/sh
PYTHONPATH="{_ROOT / "src"}:{_ROOT}" exec "{sys.executable}" -m benchmarks.terraform_noop_provider
"""
_BEFORE_LAUNCHER: Final = f"""#!/bin/sh
PYTHONPATH="${_BEFORE_VARIABLE}/src" exec "{sys.executable}" -m setpoint.terraform.entry
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
            is_before = bool(os.environ.get(_BEFORE_VARIABLE))
            for name in (OURS, *((BEFORE,) if is_before else ()), OURS_MANY, *((BEFORE_MANY,) if is_before else ())):
                projects.apply(name, {"KUBECONFIG": str(access.kubeconfig)})
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
    """CPU time of all processes and of the provider's, and duration, in seconds."""

    cpu: float
    provider_cpu: float
    wall: float


class _TerraformProjects:
    """A home directory in which the providers are installed, and a project for each candidate."""

    def __init__(self, binary: str, home: Path) -> None:
        self.home = home
        self._binary = binary
        self._environments: dict[str, dict[str, str]] = {}

    def install(self) -> None:
        """Installs the providers in the plugin directory of Terraform."""
        plugins = self.home / ".terraform.d" / "plugins"
        for path in launcher_paths(semantic_version(__version__)):
            _write_executable(plugins / path, launcher())
        for name, text in (("noop", _NOOP_LAUNCHER), ("before", _BEFORE_LAUNCHER)):
            for folder in (plugins / host / "bench" / name / _VERSION for host in HOSTS):
                for platform in PLATFORMS:
                    _write_executable(folder / platform / f"terraform-provider-{name}_v{_VERSION}", text)

    def apply(self, name: str, environment: Mapping[str, str] | None = None) -> None:
        """Creates the project and applies it."""
        folder = self._folder(name)
        folder.mkdir()
        (folder / "main.tf").write_text(_CONFIGURATIONS[name])
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        home = {"HOME": str(self.home), "PATH": path, "CHECKPOINT_DISABLE": "1"}
        home |= {name: os.environ[name] for name in (_BEFORE_VARIABLE,) if name in os.environ}
        self._environments[name] = {**home, **(environment or {})}
        for arguments in (("init",), ("apply", "-auto-approve")):
            self._run(name, (*arguments, "-input=false"))

    def plan_all(self, times: int) -> tuple[Measurement, ...]:
        """The best of `times` plans of each project, in turns."""
        every = tuple(self._environments)
        many = tuple(name for name in every if name in (OURS_MANY, BEFORE_MANY))
        names = tuple(name for name in every if name not in many)
        costs = [{name: self._plan(name) for name in every} for _ in range(times)]
        best = {name: [one[name] for one in costs] for name in every}
        measured = [
            *compared(CPU, {name: min(one.cpu for one in best[name]) for name in names}, Unit.SECONDS),
            *compared(
                PROVIDER_CPU,
                {name: min(one.provider_cpu for one in best[name]) for name in names if name != TERRAFORM_ALONE},
                Unit.SECONDS,
            ),
            *compared(WALL, {name: min(one.wall for one in best[name]) for name in names}, Unit.SECONDS),
        ]
        if many:
            by_the_clock = {name: min(one.wall for one in best[name]) for name in many}
            measured += compared(WALL_OF_MANY, by_the_clock, Unit.SECONDS)
        return tuple(measured)

    def _plan(self, name: str) -> Cost:
        # With -detailed-exitcode, a plan with changes ends with 2.
        used = self._run(name, ("plan", "-input=false", "-detailed-exitcode"))
        return Cost(used.cpu, used.descendants_cpu, used.wall)

    def _folder(self, name: str) -> Path:
        return self.home / f"project-{tuple(_CONFIGURATIONS).index(name)}"

    def _run(self, name: str, arguments: Sequence[str]) -> TreeUsage:
        command = [self._binary, f"-chdir={self._folder(name)}", *arguments, "-no-color"]
        used = run_tree(command, self._environments[name])
        if used.code:
            raise WrongResult(f"{name}: terraform {arguments[0]} ends with {used.code}: {used.output}")
        return used


def _write_executable(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text)
    file.chmod(0o755)

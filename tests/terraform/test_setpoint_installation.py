"""`setpoint terraform install`: the real Terraform finds and starts the installed provider."""

import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from setpoint import __version__
from tests.terraform.command import Diagnostic, Installation, Project
from tests.terraform.environments import Environment, new_environment

HASH = re.compile(r'"(h1:[^"]+)"')


@dataclass(frozen=True, slots=True)
class Machine:
    """A home directory, with the Terraform that all tests share."""

    home: Path
    base: Installation

    def on_path(self, *environments: Environment) -> dict[str, str]:
        """The environment variables of a shell with these environments on its PATH."""
        kept = {name: text for name, text in self.base.environment.items() if name != "TF_CLI_CONFIG_FILE"}
        other_folders = [
            one for one in kept["PATH"].split(":") if not Path(one, "terraform-provider-setpoint").exists()
        ]
        path = ":".join([*(str(one.programs) for one in environments), *other_folders])
        return {**kept, "HOME": str(self.home), "PATH": path, "CHECKPOINT_DISABLE": "1"}

    def install(self, environment: Environment, *arguments: str) -> str:
        """The output of `setpoint terraform install` of an environment."""
        done = environment.run("terraform", "install", *arguments, environment=self.on_path())
        assert done.returncode == 0, done.stderr
        return done.stdout

    def project(self, text: str, *active: Environment, name: str = "project") -> Project:
        """A configuration in a shell with these environments."""
        folder = self.home / name
        folder.mkdir()
        project = Project(Installation(self.base.binary, self.on_path(*active)), folder)
        project.write(f'{text}\nprovider "setpoint" {{}}\n')
        return project

    def ready_project(self, printed: str, *active: Environment, name: str = "project") -> Project:
        """A project with the block that an installation printed, after `terraform init`."""
        project = self.project(printed[printed.index("terraform {") :], *active, name=name)
        ran(project, "init", "-input=false")
        return project


@pytest.fixture
def machine(installation: Installation, tmp_path: Path) -> Machine:
    """A machine without an installed provider."""
    return new_machine(tmp_path / "home", installation)


def new_machine(home: Path, installation: Installation) -> Machine:
    """A machine with an empty home directory."""
    home.mkdir()
    return Machine(home, installation)


def ran(project: Project, *arguments: str) -> str:
    """The output of a command that has to succeed."""
    command = [project.installation.binary, f"-chdir={project.folder}", *arguments, "-no-color"]
    environment = {**project.installation.environment, **project.more}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def lock_of(project: Project) -> str:
    """The lock file of a project."""
    return (project.folder / ".terraform.lock.hcl").read_text()


def host_of(binary: str) -> str:
    """The registry host of a source address without one."""
    return "registry.opentofu.org" if "tofu" in Path(binary).name else "registry.terraform.io"


def error_text(shown: Sequence[Diagnostic]) -> str:
    """The errors that are shown, in one text."""
    return " ".join(f"{one.summary} {one.detail}" for one in shown if one.severity == "error")


# --- Finding it -------------------------------------------------------------------------------------------------------


def test_init_finds_the_installed_provider_and_not_the_remains_of_an_interrupted_installation(
    machine: Machine, tmp_path: Path
) -> None:
    printed = machine.install(new_environment(tmp_path / "venv"))
    for folder in machine.home.glob(".terraform.d/plugins/*/setpoint/setpoint/*"):
        (folder / ".5f2a91c3").mkdir()
        (folder / ".5f2a91c3" / f"terraform-provider-setpoint_v{__version__}").write_text("#!/bin")
    project = machine.ready_project(printed)

    address = f"{host_of(project.installation.binary)}/setpoint/setpoint"
    assert address in ran(project, "providers", "schema", "-json")
    assert project.plan().code == 0
    # One hash stands for all platforms.
    mirror = f"-fs-mirror={machine.home / '.terraform.d' / 'plugins'}"
    names = ("linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64")
    ran(project, "providers", "lock", mirror, *(f"-platform={name}" for name in names))
    assert len(HASH.findall(lock_of(project))) == 1


def test_another_plugin_folder_is_found_with_the_printed_cli_configuration(machine: Machine, tmp_path: Path) -> None:
    printed = machine.install(new_environment(tmp_path / "venv"), "--plugins", str(tmp_path / "elsewhere"))
    mirror = printed[printed.index("provider_installation {") : printed.index("A configuration")]
    (machine.home / ".terraformrc").write_text(mirror)
    (machine.home / ".tofurc").write_text(mirror)

    assert machine.ready_project(printed).plan().code == 0


def test_lock_files_agree_wherever_the_environment_is(installation: Installation, tmp_path: Path) -> None:
    first, second = (new_machine(tmp_path / name, installation) for name in ("first", "second"))
    here = first.ready_project(first.install(new_environment(tmp_path / "here")))
    there = second.ready_project(second.install(new_environment(tmp_path / "other" / "place")))
    (there.folder / ".terraform.lock.hcl").write_text(lock_of(here))
    ran(there, "init", "-input=false", "-lockfile=readonly")

    assert HASH.findall(lock_of(here)) == HASH.findall(lock_of(there)) != []
    assert there.plan().code == 0


# --- Starting it ------------------------------------------------------------------------------------------------------


def test_the_provider_on_the_path_is_used_first_and_else_the_one_of_the_pointer_file(
    machine: Machine, tmp_path: Path
) -> None:
    installed, active = new_environment(tmp_path / "a path with spaces"), new_environment(tmp_path / "active")
    project = machine.ready_project(machine.install(installed), active)
    project.plan()
    assert (active.has_served, installed.has_served) == (True, False)

    without = Project(Installation(project.installation.binary, machine.on_path()), project.folder)
    assert (without.plan().code, installed.has_served) == (0, True)


def test_versions_live_side_by_side_and_each_starts_its_own(machine: Machine, tmp_path: Path) -> None:
    old = new_environment(tmp_path / "old", "0.3.1")
    new = new_environment(tmp_path / "new", "0.4rc2")
    # The newer one is active when the older one is asked for.
    first = machine.ready_project(machine.install(old), new, name="first")
    second = machine.ready_project(machine.install(new), name="second")

    assert (first.plan().code, old.has_served) == (0, True)
    assert '"0.3.1"' in lock_of(first)
    assert '"0.4.0-rc.2"' in lock_of(second)
    new_served = tmp_path / "new" / "terraform-provider-setpoint.trace"
    new_served.unlink()
    assert (second.plan().code, new.has_served) == (0, True)


def test_terraform_shows_what_to_do_where_setpoint_is_not_there(machine: Machine, tmp_path: Path) -> None:
    environment = new_environment(tmp_path / "venv")
    project = machine.ready_project(machine.install(environment))
    environment.provider.unlink()

    assert (
        f"setpoint {__version__} is not here: terraform-provider-setpoint is not on the PATH, and "
        f"{machine.home}/.config/setpoint/terraform-provider-setpoint/{__version__} names no program. "
        f"Run: pip install setpoint=={__version__} && setpoint terraform install"
    ) in error_text(project.plan().diagnostics)


def test_terraform_shows_what_to_do_where_another_version_is_there(machine: Machine, tmp_path: Path) -> None:
    environment = new_environment(tmp_path / "venv", "0.3.1")
    project = machine.ready_project(machine.install(environment))
    environment.write_programs("0.4.0")

    assert (
        f"Terraform asks for setpoint 0.3.1, and {environment.provider} is setpoint 0.4.0. "
        "Run: pip install setpoint==0.3.1; or run: setpoint terraform install, write the version that it shows into "
        "the configuration, and run: terraform init -upgrade"
    ) in error_text(project.plan().diagnostics)


# --- While developing -------------------------------------------------------------------------------------------------


def test_a_development_override_is_used_without_init(machine: Machine, tmp_path: Path) -> None:
    environment = new_environment(tmp_path / "venv")
    settings = (
        f'provider_installation {{\n dev_overrides {{\n "setpoint/setpoint" = "{environment.programs}"\n }}\n}}\n'
    )
    (machine.home / ".terraformrc").write_text(settings)
    (machine.home / ".tofurc").write_text(settings)
    project = machine.project('terraform {\n required_providers {\n setpoint = { source = "setpoint/setpoint" }\n }\n}')
    planned = project.plan()

    assert (planned.code, environment.has_served) == (0, True)
    assert "Provider development overrides are in effect" in [one.summary for one in planned.diagnostics]


def test_a_running_provider_is_used(machine: Machine, tmp_path: Path) -> None:
    environment = new_environment(tmp_path / "venv")
    project = machine.ready_project(machine.install(environment))
    environment.write_programs("0.0.1")
    address = f"{host_of(project.installation.binary)}/setpoint/setpoint"
    command = [str(environment.provider), "--reattach", address]
    with subprocess.Popen(command, env=machine.on_path(), stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        name, _, value = served.stdout.readline().strip().partition("=")
        planned = Project(project.installation, project.folder, {name: value.strip("'")}).plan()
        served.send_signal(signal.SIGINT)

        assert (planned.code, served.wait(30)) == (0, 0)


def test_a_user_who_runs_the_provider_gets_an_explanation(machine: Machine, tmp_path: Path) -> None:
    environment = new_environment(tmp_path / "venv")
    done = subprocess.run(
        [environment.provider, "--help"], env=machine.on_path(), capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("This is a provider for Terraform")


def test_the_entry_point_imports_no_heavy_module() -> None:
    script = "import sys, setpoint.terraform.entry; print(*{'asyncio', 'grpc', 'msgspec', 'typing'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "\n"


# --- Its processes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("switch", ["", "off"])
def test_the_processes_of_one_command_import_the_provider_once(machine: Machine, tmp_path: Path, switch: str) -> None:
    project = machine.ready_project(machine.install(new_environment(tmp_path / "venv")))
    manifest = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "one"}}'
    (project.folder / "object.tf").write_text(
        f'resource "setpoint_object" "one" {{\n yaml_body = jsonencode({manifest})\n}}\n'
    )
    log = tmp_path / "terraform.log"
    # Python writes what it imports to standard error, which Terraform logs.
    variables = {"TF_LOG": "TRACE", "TF_LOG_PATH": str(log), "PYTHONPROFILEIMPORTTIME": "1"}

    ran(replace(project, more={**variables, "SETPOINT_FORK_SERVER": switch}), "validate")

    lines = log.read_text()
    started = lines.count("starting plugin:")
    assert started > 1
    assert lines.count("grpc._cython.cygrpc") == (started if switch == "off" else 1)

"""Terraform for tests, with the probe provider installed under two names, and nothing left behind."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from tests.forking.processes import can_fork, launched_now, write_launcher
from tests.go_programs import NotBuilt
from tests.terraform.command import Installation, Project, find_terraform

NewProject: TypeAlias = Callable[[str], Project]

_ROOT: Final = Path(__file__).parents[2]
_MARK: Final = "SETPOINT_TEST_RUN"
_VERSION: Final = "1.0.0"
# The hosts that Terraform and OpenTofu use when a configuration names none.
_HOSTS: Final = ("registry.terraform.io", "registry.opentofu.org")
_TIMEOUT_SECONDS: Final = 120.0
_LAUNCHER: Final = """#!/bin/sh
PYTHONPATH="{root}/src:{root}" exec "{python}" {command}
"""
_SETTINGS: Final = """
disable_checkpoint = true
provider_installation {{
  filesystem_mirror {{
    path = "{mirror}"
  }}
}}
"""


@pytest.fixture(scope="session")
def terraform() -> str:
    """The real binary. Where there is none, and none can be built, the tests are skipped, with the reason."""
    try:
        return find_terraform()
    except NotBuilt as why:
        pytest.skip(f"nothing was tested against the real Terraform, which is not on the PATH: {why}")


@pytest.fixture(scope="session")
def installation(terraform: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Terraform, with providers from a folder alone. In the end no process of it may be left."""
    home = tmp_path_factory.mktemp("terraform")
    for name in ("probe", "other"):
        install_provider("acme", name, ("-m tests.terraform.probe", name), home)
    (home / "settings.tfrc").write_text(_SETTINGS.format(mirror=home / "mirror"))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TF_CLI_CONFIG_FILE": str(home / "settings.tfrc"),
        "TF_IN_AUTOMATION": "1",
        _MARK: str(home),
    }
    yield Installation(terraform, environment)
    assert _left_after(_TIMEOUT_SECONDS, str(home)) == []


def install_provider(namespace: str, name: str, command: Sequence[str], home: Path) -> None:
    """Has Terraform find a provider: `-m MODULE` and its arguments, as Python runs it, and the fork server."""
    platform = f"{'darwin' if sys.platform == 'darwin' else 'linux'}_{_architecture()}"
    for host in _HOSTS:
        folder = home / "mirror" / host / namespace / name / _VERSION / platform
        # Tests of several folders may run in one process.
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"terraform-provider-{name}_v{_VERSION}"
        if can_fork():
            write_launcher(file, *command)
        else:
            file.write_text(_LAUNCHER.format(root=_ROOT, python=sys.executable, command=" ".join(command)))
            file.chmod(0o755)


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def _left_after(seconds: float, run: str) -> list[str]:
    end = time.monotonic() + seconds
    while (left := _processes_of(run)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def _processes_of(run: str) -> list[str]:
    """The processes that were started by this run, as far as this system tells: id and command line of each."""
    launched, found = launched_now(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.name in launched or f"{_MARK}={run}".encode() in (folder / "environ").read_bytes():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"{folder.name} {command} in {os.readlink(folder / 'cwd')}")
        except OSError:
            continue
    return found


@pytest.fixture
def new_project(installation: Installation, tmp_path: Path) -> NewProject:
    """Makes a project with a configuration, ready to be applied."""

    def made(text: str) -> Project:
        project = Project(installation, tmp_path)
        project.write(text)
        project.initialise()
        return project

    return made

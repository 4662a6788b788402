"""The Terraform plugin folder: versions, paths, and the launcher."""

import os
import subprocess
from pathlib import Path

import pytest

from setpoint.deployment.terraform_plugin import launcher, launcher_paths, required_providers, semantic_version
from setpoint.errors import UserError


@pytest.mark.parametrize(
    ("ours", "terraforms"),
    [
        ("0.1.0", "0.1.0"),
        ("1", "1.0.0"),
        ("1.2", "1.2.0"),
        ("1.2a1", "1.2.0-alpha.1"),
        ("1.2.3b2", "1.2.3-beta.2"),
        ("1.2.3rc10", "1.2.3-rc.10"),
        ("1.2.3.dev4", "1.2.3-0.dev.4"),
        ("1.2.dev4+g1a2b3c.d20261101", "1.2.0-0.dev.4+g1a2b3c.d20261101"),
        ("2026.07.01", "2026.7.1"),
    ],
)
def test_a_version_is_written_as_terraform_takes_it(ours: str, terraforms: str) -> None:
    assert semantic_version(ours) == terraforms


@pytest.mark.parametrize("version", ["1!1.0", "1.2.3.4", "1.0.post1", "1.0rc1.dev2", "1.0-rc1", "v1.0", "", "1.0\n"])
def test_a_version_that_terraform_cannot_order_is_refused(version: str) -> None:
    with pytest.raises(UserError, match="is no version for Terraform: install one such as"):
        semantic_version(version)


def test_launchers_exist_for_every_platform_of_both_registries() -> None:
    assert [str(one) for one in launcher_paths("0.4.0-rc.2")] == [
        f"{host}/setpoint/setpoint/0.4.0-rc.2/{platform}/terraform-provider-setpoint_v0.4.0-rc.2"
        for host in ("registry.terraform.io", "registry.opentofu.org")
        for platform in ("linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64")
    ]


def test_a_configuration_requires_exactly_this_version() -> None:
    assert required_providers("0.4rc2") == (
        "terraform {\n"
        "  required_providers {\n"
        "    setpoint = {\n"
        '      source  = "setpoint/setpoint"\n'
        '      version = "0.4.0-rc.2"\n'
        "    }\n"
        "  }\n"
        "}\n"
    )


# --- The launcher -----------------------------------------------------------------------------------------------------

PROGRAM = "terraform-provider-setpoint"
POINTER = Path("setpoint", PROGRAM, "0.4.0-rc.2")


def _program(folder: Path) -> Path:
    """A program that prints its folder and arguments."""
    folder.mkdir(parents=True)
    file = folder / PROGRAM
    file.write_text(f'#!/bin/sh\necho "{folder.name}: $*"\n')
    file.chmod(0o755)
    return file


def _point(config: Path, text: str) -> None:
    (config / POINTER).parent.mkdir(parents=True)
    (config / POINTER).write_text(text)


def _launch(home: Path, path: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
    file = home / "launcher"
    file.write_text(launcher("0.4rc2"))
    file.chmod(0o755)
    system = ":".join(one for one in os.defpath.split(":") if one)
    environment = {"PATH": f"{path}:{system}" if path else system, "HOME": str(home), **more}
    return subprocess.run([file], env=environment, capture_output=True, text=True, check=False)


def test_a_launcher_starts_the_program_on_the_path_and_passes_the_pointer(tmp_path: Path) -> None:
    program, other = _program(tmp_path / "active"), _program(tmp_path / "installed")
    _point(tmp_path / ".config", f"{other}\n")

    assert _launch(tmp_path, str(program.parent)).stdout == f"active: 0.4rc2 {other}\n"


def test_a_launcher_starts_the_program_of_its_pointer(tmp_path: Path) -> None:
    program = _program(tmp_path / "in a place with spaces")
    _point(tmp_path / ".config", f"{program}\n")

    assert _launch(tmp_path).stdout == f"in a place with spaces: 0.4rc2 {program}\n"


def test_pointers_are_in_xdg_config_home(tmp_path: Path) -> None:
    _point(tmp_path / "settings", f"{_program(tmp_path / 'installed')}\n")

    assert _launch(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "settings")).stdout.startswith("installed: ")


@pytest.mark.parametrize("names", [None, "", "\n", "/nowhere/at/all\n", "/\n"])
def test_a_launcher_without_a_program_says_what_to_do(tmp_path: Path, names: str | None) -> None:
    if names is not None:
        _point(tmp_path / ".config", names)
    ended = _launch(tmp_path)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        "setpoint 0.4rc2 is not here: terraform-provider-setpoint is not on the PATH, and "
        f"{tmp_path}/.config/setpoint/terraform-provider-setpoint/0.4.0-rc.2 names no program. "
        "Run: pip install setpoint==0.4rc2 && setpoint terraform install\n"
    )


def test_the_error_is_on_the_line_that_terraform_shows(tmp_path: Path) -> None:
    ended = _launch(tmp_path, TF_PLUGIN_MAGIC_COOKIE="any")

    assert ended.stdout == ended.stderr
    assert "|" not in ended.stdout

"""`setpoint terraform`: installs the provider in the plugin folder of Terraform and OpenTofu."""

import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from setpoint import __version__
from setpoint.cli.atomic_files import FileChange, put_file, remove_file
from setpoint.cli.request import CommandRequest, print_json, run_command
from setpoint.deployment.terraform_plugin import (
    POINTERS,
    PROGRAM,
    SOURCE,
    launcher,
    launcher_paths,
    require_semantic_version,
    required_providers,
    semantic_version,
)
from setpoint.errors import UserError
from setpoint.library.outcome import ExitCode

_PLUGINS: Final = "--plugins"
_CONFIG_HOME: Final = "XDG_CONFIG_HOME"
_DEFAULT_FOLDER: Final = Path(".terraform.d", "plugins")
# Terraform searches no other folder by default.
_MIRROR: Final = """\
provider_installation {{
  filesystem_mirror {{
    path    = "{folder}"
    include = ["{source}"]
  }}
  direct {{
    exclude = ["{source}"]
  }}
}}"""


def install(options: dict[str, Any]) -> int:
    """The exit code of `setpoint terraform install`."""
    return run_command(lambda request: _install(request, options["plugins"]), options)


def uninstall(options: dict[str, Any]) -> int:
    """The exit code of `setpoint terraform uninstall`."""
    return run_command(lambda request: _uninstall(request, options["plugins"], options["version"]), options)


async def _install(request: CommandRequest, plugins: str | None) -> ExitCode:
    release, folder = semantic_version(__version__), _folder(plugins)
    program, pointer = _program(), _pointer(release, request.settings.environment)
    # First the pointer: a launcher that is found can start something.
    files = {str(pointer): put_file(pointer, f"{program}\n", mode=0o644, setting=_CONFIG_HOME)}
    for place in launcher_paths(release):
        file = folder / place
        files[str(file)] = put_file(file, launcher(), mode=0o755, setting=_PLUGINS)
    if request.output == "json":
        print_json(
            {"version": release, "source": SOURCE, "plugins": str(folder), "program": str(program), "files": files},
            request,
        )
        return ExitCode.DONE
    is_new = any(change is not FileChange.UNCHANGED for change in files.values())
    _print_instructions(request, folder, is_new=is_new)
    return ExitCode.DONE


def _print_instructions(request: CommandRequest, folder: Path, *, is_new: bool) -> None:
    release = semantic_version(__version__)
    state = "is installed" if is_new else "was installed already, and nothing changed:"
    lines = [f"setpoint {release} {state} for Terraform and OpenTofu in {folder}"]
    if folder != Path.home() / _DEFAULT_FOLDER:
        lines += ["", "They search it when their CLI configuration (~/.terraformrc, ~/.tofurc) says so:", ""]
        lines += [_MIRROR.format(folder=folder, source=SOURCE)]
    lines += ["", "A configuration asks for it; terraform init, or tofu init, finds it then:", ""]
    lines += [required_providers().rstrip()]
    request.console.print(Text("\n".join(lines)), soft_wrap=True)


async def _uninstall(request: CommandRequest, plugins: str | None, version: str | None) -> ExitCode:
    release = semantic_version(__version__) if version is None else require_semantic_version(version)
    folder = _folder(plugins)
    pointer = _pointer(release, request.settings.environment)
    # First the launchers: one without its pointer is of no use.
    files = [folder / place for place in launcher_paths(release)]
    removed = [file for file in files if remove_file(file, folder, setting=_PLUGINS)]
    removed += [pointer] if remove_file(pointer, pointer.parents[len(POINTERS.parts)], setting=_CONFIG_HOME) else []
    if request.output == "json":
        print_json({"version": release, "plugins": str(folder), "removed": [str(file) for file in removed]}, request)
    else:
        result = f"is removed from {folder}" if removed else f"is not installed in {folder}: there is nothing to remove"
        request.console.print(Text(f"setpoint {release} {result}"), soft_wrap=True)
    return ExitCode.DONE


def _folder(plugins: str | None) -> Path:
    return Path.home() / _DEFAULT_FOLDER if plugins is None else Path(plugins).expanduser().absolute()


def _pointer(release: str, environment: Mapping[str, str]) -> Path:
    """The file that names the program, for a shell whose PATH does not lead to it."""
    config = environment.get(_CONFIG_HOME)
    return (Path(config) if config else Path.home() / ".config") / POINTERS / release


def _program() -> Path:
    """The provider's console script, in the environment of this process."""
    found = [file for file in _program_candidates() if file.is_file() and os.access(file, os.X_OK)]
    if not found:
        where = ", ".join(str(folder) for folder in dict.fromkeys(file.parent for file in _program_candidates()))
        raise UserError(f"there is no {PROGRAM} in {where}: install the package setpoint with pip again")
    return found[0]


def _program_candidates() -> Iterator[Path]:
    yield Path(sysconfig.get_path("scripts"), PROGRAM)
    yield Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")), PROGRAM)
    yield Path(sys.argv[0]).absolute().with_name(PROGRAM)

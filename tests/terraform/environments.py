"""Virtual environments as pip leaves them, each with its own version of setpoint and its programs."""

import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from setpoint import __version__
from tests.forking.processes import can_fork, write_launcher

_ROOT: Final = Path(__file__).parents[2]
_PROGRAMS: Final = {"setpoint": "setpoint.cli.entry", "terraform-provider-setpoint": "setpoint.terraform.entry"}
# As pip writes them where a path has spaces; but they report another version, and leave a trace.
_SCRIPT: Final = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import setpoint

setpoint.__version__ = {version!r}
with open({trace!r}, "a") as trace:
    trace.write("started ")
from {module} import main

main()
"""


@dataclass(frozen=True, slots=True)
class Environment:
    """A folder with programs in `bin`."""

    folder: Path

    @property
    def programs(self) -> Path:
        """The folder that an activated environment puts onto the PATH."""
        return self.folder / "bin"

    @property
    def provider(self) -> Path:
        """The program of the provider, which Terraform's launcher starts."""
        return self.programs / "terraform-provider-setpoint"

    @property
    def has_served(self) -> bool:
        """Whether its provider was started."""
        return self._trace("terraform-provider-setpoint").exists()

    def run(self, *arguments: str, environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
        """`setpoint` with these arguments."""
        command = [str(self.programs / "setpoint"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def _trace(self, program: str) -> Path:
        return self.folder / f"{program}.trace"

    def write_programs(self, version: str) -> None:
        """Writes the programs, as pip does."""
        for name, module in _PROGRAMS.items():
            file, python = self.programs / name, self.programs / "python"
            trace = str(self._trace(name))
            file.write_text(_SCRIPT.format(python=python, version=version, module=module, trace=trace))
            file.chmod(0o755)

    def write_launchers(self) -> None:
        """Has the fork server run the programs from now on, where there is one."""
        if can_fork():
            write_launcher(self.programs / "setpoint", str(self.programs / "setpoint"))
            write_launcher(self.provider, "-m setpoint.terraform.entry")


def new_environment(folder: Path, version: str = __version__) -> Environment:
    """A new environment in `folder`, with the packages of this one."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "ours.pth").write_text("\n".join([str(_ROOT / "src"), *ours]))
    made = Environment(folder)
    made.write_programs(version)
    return made

"""The commands of a how-to page, and a shell to run them in."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.deployment.conftest import Kubectl
from tests.forking.processes import SETPOINT, can_fork, write_launcher

_SECTION: Final = re.compile(r"^#{2,3} (.+)\n((?:(?!^#{2,3} ).*\n)*)", re.MULTILINE)
_BOX: Final = re.compile(r"^```bash\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def boxes_of(page: Path) -> list[str]:
    """The commands of each box of the page."""
    return _BOX.findall(page.read_text(encoding="utf-8"))


def sections_of(page: Path) -> dict[str, str]:
    """The commands of each section that has any, by heading."""
    sections = _SECTION.findall(page.read_text(encoding="utf-8"))
    commands = {heading: "".join(_BOX.findall(text)) for heading, text in sections}
    return {heading: text for heading, text in commands.items() if text}


class Terminal:
    """A shell in `folder` with kubectl for its cluster, `setpoint` and further programs on the PATH."""

    def __init__(
        self,
        kubectl: Kubectl,
        folder: Path,
        *,
        programs: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        assert kubectl.access is not None
        folders = (_folder_of_setpoint(folder), kubectl.program.parent, *(Path(one).parent for one in programs))
        self._environment = {
            "PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]]),
            "KUBECONFIG": str(kubectl.access.kubeconfig),
            "HOME": str(folder),
            **(environment or {}),
        }
        self._folder = folder

    def run(self, commands: str) -> str:
        """The output; AssertionError for the first command that fails."""
        done = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", commands],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def _folder_of_setpoint(folder: Path) -> Path:
    """A folder with the command: forked from a process that has it loaded, where that is possible."""
    if not can_fork():
        return Path(sys.executable).parent
    programs = folder / "bin"
    programs.mkdir()
    write_launcher(programs / "setpoint", SETPOINT)
    return programs

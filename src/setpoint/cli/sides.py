"""The two sides of an upgrade: interpreters of their own that plan the same recorded world."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from setpoint import __version__
from setpoint.errors import UserError

THIS: Final = "this"
# As the installed command does it, wherever that is.
_MAIN: Final = "from setpoint.cli.entry import main; main()"
# All that a program needs to start. What it should look at is in the file; where it could ask is none of its business.
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "PYTHONPATH")
_SHOWN: Final = 300


@dataclass(frozen=True, slots=True)
class Side:
    """A version of `setpoint`, in an interpreter of its own. `ways` is how some kinds are to be handled there."""

    name: str
    python: str
    ways: tuple[str, ...] = ()

    @staticmethod
    def of(word: str, environments: Path) -> "Side":
        """The side that a word on the command line means: this version, a version, or a virtual environment."""
        place, *ways = word.split(",")
        return Side(word, _python(place, environments), tuple(ways))

    async def version(self) -> str:
        """What it says of itself."""
        return (await self._said("version")).strip().removeprefix("setpoint ")

    async def report(self, world: Path) -> dict[str, Any]:
        """Its report on a recorded world; UserError when it has none to give."""
        words = [word for way in self.ways for word in ("--as", way)]
        text = await self._said("--store", "memory:", "plan", "--world", str(world), "-o", "json", *words)
        try:
            found: dict[str, Any] = json.loads(text)
        except ValueError:
            raise UserError(
                f"{self.name}: what it says is no report: `plan --world` has to be known to the version in that "
                "environment"
            ) from None
        return found

    async def _said(self, *arguments: str) -> str:
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        # Neither the folder that we are in nor our own path may bring in another version than the one that is meant.
        alone = "-P" if self.python == sys.executable else "-I"
        command = (self.python, alone, "-X", "utf8", "-c", _MAIN, *arguments)
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, env=environment)
        except OSError as error:
            raise UserError(f"{self.name}: {self.python}: {error.strerror}: name another environment") from error
        out, errors = await process.communicate()
        if process.returncode in (0, 1, 2) and out:
            return out.decode()
        told = errors.decode(errors="replace").strip()[-_SHOWN:] or f"exit code {process.returncode}"
        raise UserError(f"{self.name}: it could not look at this world: {told}")


def _python(place: str, environments: Path) -> str:
    if place in (THIS, __version__):
        return sys.executable
    folders = (Path(place), environments / place)
    found = next((python for folder in folders for python in _pythons(folder) if python.exists()), None)
    if found is None:
        raise UserError(
            f"{place}: neither a virtual environment nor a version in {environments}: make it there with "
            f"`python -m venv {environments / place}`, and install that version of setpoint into it"
        )
    return str(found.absolute())


def _pythons(folder: Path) -> Sequence[Path]:
    return (folder / "bin" / "python", folder / "Scripts" / "python.exe")

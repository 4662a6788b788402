"""The two sides of an upgrade: interpreters of their own that plan the same recorded world."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from setpoint import __version__
from setpoint.cli.version_numbers import is_version
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
        place, ways = place_of(word), word.split(",")[1:]
        python = python_of(place, environments)
        if python is None:
            raise not_there(place, environments)
        return Side(word, python, tuple(ways))

    async def version(self) -> str:
        """What it says of itself."""
        return (await self._said("version", trouble="it cannot tell its version")).strip().removeprefix("setpoint ")

    async def report(self, world: Path) -> dict[str, Any]:
        """Its report on a recorded world; UserError when it has none to give."""
        words = [word for way in self.ways for word in ("--as", way)]
        command = ("--store", "memory:", "plan", "--world", str(world), "-o", "json", *words)
        text = await self._said(*command, trouble="it could not look at this world")
        try:
            found: dict[str, Any] = json.loads(text)
        except ValueError:
            raise UserError(
                f"{self.name}: what it says is no report: `plan --world` has to be known to the version in that "
                "environment"
            ) from None
        return found

    async def _said(self, *arguments: str, trouble: str) -> str:
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
        raise UserError(f"{self.name}: {trouble}: {told}")


def place_of(word: str) -> str:
    """What a word on the command line names, without the ways in which kinds are to be handled there."""
    return word.split(",")[0]


def python_of(place: str, environments: Path) -> str | None:
    """The interpreter of this version, of a virtual environment or of a version in `environments`, or None."""
    if place in (THIS, __version__):
        return sys.executable
    found = python_in(Path(place)) or python_in(environments / place)
    return None if found is None else str(found.absolute())


def python_in(folder: Path) -> Path | None:
    """The interpreter of a virtual environment, or None when there is no such environment."""
    candidates = (folder / "bin" / "python", folder / "Scripts" / "python.exe")
    return next((python for python in candidates if python.exists()), None)


def not_there(place: str, environments: Path) -> UserError:
    """Says what to do about a side that is not there."""
    if not is_version(place):
        return UserError(f"{place}: neither a virtual environment nor a version: name one of the two")
    return UserError(
        f"{place}: neither a virtual environment nor a version in {environments}: add --install, and it is installed "
        f"there; or make it by hand with `python -m venv {environments / place}`, and install that version of setpoint "
        "into it"
    )

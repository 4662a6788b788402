"""Versions that are not there yet: pip installs each into a virtual environment of its own.

An environment is made beside its place, and moves there when it is whole. Until it is known that `setpoint` was
installed, and not a package of somebody else that has this name, none of its code is run.
"""

import asyncio
import os
import shutil
import signal
import sys
import sysconfig
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from setpoint.cli.columns import one_line
from setpoint.cli.going_on import drawn
from setpoint.cli.sides import Side, not_there, place_of, python_in, python_of
from setpoint.cli.version_numbers import is_version, means
from setpoint.errors import UserError

_PACKAGE: Final = "setpoint"
_PROGRAM: Final = "setpoint.cli.entry:main"
_ENTRY: Final = Path("setpoint", "cli", "entry.py")
# No version is named like this.
_UNFINISHED: Final = ".unfinished-"
# Nobody is at work there any more: no install takes that long.
_ABANDONED: Final = 24 * 3600.0
_LINES: Final = 3
_SHOWN: Final = 600


async def install_missing(words: Iterable[str], environments: Path, variables: Mapping[str, str]) -> None:
    """Every version that these words for sides name has an environment then. `variables` are the ones that pip sees."""
    places = dict.fromkeys(place_of(word) for word in words)
    missing = [place for place in places if python_of(place, environments) is None]
    for place in missing:
        if not is_version(place):
            raise not_there(place, environments)
    for version in missing:
        what = f"installing setpoint {version} into {environments / version}"
        if not sys.stderr.isatty():
            sys.stderr.write(f"{what}\n")
        with drawn(what):
            await _install(version, environments.absolute(), variables)


async def _install(version: str, environments: Path, variables: Mapping[str, str]) -> None:
    place = environments / version
    if place.exists() and python_in(place) is None:
        raise UserError(f"{place} is there, and is no virtual environment: remove it")
    try:
        environments.mkdir(parents=True, exist_ok=True)
        _clear(environments)
        with TemporaryDirectory(prefix=_UNFINISHED, dir=environments, ignore_cleanup_errors=True) as folder:
            made = Path(folder, version)
            await _fill(_Install(version, made, variables))
            _move(made, place)
    except OSError as error:
        raise UserError(f"{environments}: {error.strerror}: name another folder with --environments") from error


def _clear(environments: Path) -> None:
    """Removes what a process left behind that was killed in the middle."""
    for folder in environments.glob(f"{_UNFINISHED}*"):
        # Whoever it belongs to may remove it at this moment.
        with suppress(FileNotFoundError):
            if time.time() - folder.stat().st_mtime > _ABANDONED:
                shutil.rmtree(folder)


def _move(made: Path, place: Path) -> None:
    for file in (made / "pyvenv.cfg", *made.glob("bin/*")):
        # Programs begin with the path of their interpreter.
        if not file.is_symlink() and bytes(made) in (text := file.read_bytes()):
            file.write_bytes(text.replace(bytes(made), bytes(place)))
    try:
        made.rename(place)
    except OSError:
        # Somebody else was faster, and has made the same.
        if python_in(place) is None:
            raise


# --- One environment --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Install:
    """A version, the folder of its environment until it is whole, and the variables that pip sees."""

    version: str
    folder: Path
    variables: Mapping[str, str]

    @property
    def python(self) -> str:
        return str(python_in(self.folder))


async def _fill(install: _Install) -> None:
    code, said = await _run((sys.executable, "-I", "-X", "utf8", "-m", "venv", str(install.folder)), install)
    if code:
        raise UserError(f"no virtual environment can be made with {sys.executable}: {one_line(said)[-_SHOWN:]}")
    # What it depends on may have to be built, which runs code: that is for later.
    await _pip(install, "--no-deps")
    _check(install)
    await _pip(install)
    said = await Side(install.version, install.python).version()
    if not means(install.version, said):
        raise _another(install, f"it says that it is {said}")


async def _pip(install: _Install, *options: str) -> None:
    """Installs the version as the user's settings of pip say, but asks nobody, and builds nothing of that name."""
    quiet = ("--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--no-color")
    what = ("--only-binary", _PACKAGE, *options, f"{_PACKAGE}=={install.version}")
    code, said = await _run((install.python, "-I", "-X", "utf8", "-m", "pip", "install", *quiet, *what), install)
    if code:
        raise UserError(
            f"{install.version}: it cannot be installed: pip says: {_troubles(said)}: name a version that pip finds, "
            "or make its environment by hand"
        )


def _troubles(said: str) -> str:
    """The last of what pip complains about; the warnings before an error tell more than the error does."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(("ERROR:", "WARNING:"))] or lines or ["nothing"]
    return one_line(" ".join(told[-_LINES:]))[-_SHOWN:]


def _check(install: _Install) -> None:
    """Reads what was installed, and runs nothing: even an interpreter that starts there would."""
    where = {"base": str(install.folder), "platbase": str(install.folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", where))
    found = next(iter(distributions(name=_PACKAGE, path=[str(packages)])), None)
    if found is None:
        raise _another(install, "there is no package of that name in the environment")
    if not means(install.version, found.version):
        raise _another(install, f"its version is {found.version}")
    programs = [one.value for one in found.entry_points.select(group="console_scripts", name=_PACKAGE)]
    if programs != [_PROGRAM] or not (packages / _ENTRY).is_file():
        raise _another(install, "the command setpoint is not in it, so that it is a package of somebody else")


def _another(install: _Install, why: str) -> UserError:
    return UserError(
        f"what pip installed is not setpoint {install.version}: {why}; it was not kept: look where pip takes its "
        "packages from"
    )


async def _run(command: tuple[str, ...], install: _Install) -> tuple[int, str]:
    """The exit code of a program, and all that it said. It ends with whoever waits for it."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=install.variables,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                # With all that it started in its turn.
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return process.returncode or 0, said.decode(errors="replace")

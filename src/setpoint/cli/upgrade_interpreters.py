"""The interpreters that `verify-upgrade` compares: a virtual environment per version, installed by pip if missing.

An environment is built beside its final folder and renamed when it is complete. None of its code runs before it is
known to be setpoint, and not another package of that name.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import sysconfig
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from setpoint import __version__
from setpoint.cli.views.progress import spinner
from setpoint.cli.views.table import one_line
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.messages import printable
from setpoint.errors import UserError

THIS_VERSION: Final = "this"
# What the installed console script does.
_MAIN: Final = "from setpoint.cli.entry import main; main()"
# All that a program needs to start. It plans what is in the file, so it gets no endpoints and no credentials.
_PASSED_VARIABLES: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "PYTHONPATH")
_MAX_ERROR_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class VersionInterpreter:
    """A version of `setpoint` in its own interpreter. `variants` are the kinds to handle otherwise, as KIND=VARIANT."""

    name: str
    python: str
    variants: tuple[str, ...] = ()

    @staticmethod
    def of(word: str, environments: Path) -> "VersionInterpreter":
        """The interpreter that a word on the command line names: this version, a version, or a virtual environment."""
        place, variants = environment_name(word), word.split(",")[1:]
        python = find_interpreter(place, environments)
        if python is None:
            raise missing_environment(place, environments)
        return VersionInterpreter(word, python, tuple(variants))

    async def version(self) -> str:
        """The version that it prints; that of this process is known."""
        if self.python == sys.executable:
            return __version__
        return (
            (await self._output("version", trouble="it does not print its version")).strip().removeprefix("setpoint ")
        )

    async def report(self, world: Path) -> dict[str, Any]:
        """Its plan of a recorded world, as data; UserError when it prints none."""
        words = [word for variant in self.variants for word in ("--as", variant)]
        command = ("--store", "memory:", "plan", "--world", str(world), "-o", "json", *words)
        text = await self._output(*command, trouble="it could not plan this world")
        try:
            found: dict[str, Any] = json.loads(text)
        except ValueError:
            raise UserError(
                f"{self.name}: its output is no report: `plan --world` has to be known to the version in that "
                "environment"
            ) from None
        return found

    async def _output(self, *arguments: str, trouble: str) -> str:
        environment = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
        # Neither the current folder nor our own path may bring in another version.
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
        text = errors.decode(errors="replace").strip()[-_MAX_ERROR_CHARS:] or f"exit code {process.returncode}"
        raise UserError(f"{self.name}: {trouble}: {text}")


def environment_name(word: str) -> str:
    """What a word on the command line names, without the variants of kinds."""
    return word.split(",")[0]


def find_interpreter(place: str, environments: Path) -> str | None:
    """The interpreter of this version, of a virtual environment or of a version in `environments`; None if absent.

    A version never means a folder that happens to have its name: another author may have put a program there.
    """
    if place in (THIS_VERSION, __version__):
        return sys.executable
    folder = None if _reads_as_version(place) else interpreter_in(Path(place))
    found = folder or interpreter_in(environments / place)
    return None if found is None else str(found.absolute())


def interpreter_in(folder: Path) -> Path | None:
    """The interpreter of a virtual environment; None when there is no such environment."""
    candidates = (folder / "bin" / "python", folder / "Scripts" / "python.exe")
    return next((python for python in candidates if python.exists()), None)


def missing_environment(place: str, environments: Path) -> UserError:
    """The error for an environment that does not exist, with what to do."""
    if not is_version(place):
        return UserError(f"{place}: neither a virtual environment nor a version: name one of the two")
    return UserError(
        f"{place}: neither a virtual environment nor a version in {environments}: add --install, and it is installed "
        f"there; or make it by hand with `python -m venv {environments / place}`, and install that version of setpoint "
        "into it"
    )


_VERSION: Final = re.compile(
    r"(?P<release>\d+(?:\.\d+)*)(?P<rest>(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?)"
    r"(?P<local>\+[a-z0-9]+(?:\.[a-z0-9]+)*)?"
)


# All forms that pip takes for a version: `v1.0`, `1.0-rc.1`, `1!2.0` (PEP 440, appendix B).
_LOOSE_VERSION: Final = re.compile(
    r"\s*v?(\d+!)?\d+(\.\d+)*([-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?\d*)?"
    r"(-\d+|[-_.]?(post|rev|r)[-_.]?\d*)?([-_.]?dev[-_.]?\d*)?(\+[a-z0-9]+([-_.][a-z0-9]+)*)?\s*",
    re.IGNORECASE,
)


def _reads_as_version(word: str) -> bool:
    """Whether a word is a version in any of its forms: `./1.2.3` is a folder, and `1.2.3` is none."""
    return _LOOSE_VERSION.fullmatch(word) is not None


def is_version(word: str) -> bool:
    """Whether a word is a version number (PEP 440), and not the name of a folder."""
    return _VERSION.fullmatch(word) is not None


def satisfies(requested: str, found: str) -> bool:
    """Whether `found` is what pip takes for `requested`: 0.2 is 0.2.0, and 0.2+ours is a build of 0.2."""
    one, other = _VERSION.fullmatch(requested), _VERSION.fullmatch(found)
    if one is None or other is None:
        return False
    same_build = one["local"] in (None, other["local"])
    return same_build and (_release_numbers(one), one["rest"]) == (_release_numbers(other), other["rest"])


def _release_numbers(version: "re.Match[str]") -> list[int]:
    numbers = [int(one) for one in version["release"].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers


_PACKAGE: Final = "setpoint"
_PROGRAM: Final = "setpoint.cli.entry:main"
_ENTRY: Final = Path("setpoint", "cli", "entry.py")
# No version is named like this.
_UNFINISHED: Final = ".unfinished-"
# No installation takes that long: its process is gone.
_ABANDONED_SECONDS: Final = 24 * 3600.0
_MAX_PIP_LINES: Final = 3
_MAX_PIP_CHARS: Final = 600


async def install_missing(words: Iterable[str], environments: Path, variables: Mapping[str, str]) -> None:
    """Installs each version named by these words that has no environment. `variables` are the environment of pip."""
    places = dict.fromkeys(environment_name(word) for word in words)
    missing = [place for place in places if find_interpreter(place, environments) is None]
    for place in missing:
        if not is_version(place):
            raise missing_environment(place, environments)
    for version in missing:
        what = f"installing setpoint {version} into {environments / version}"
        if not sys.stderr.isatty():
            sys.stderr.write(f"{printable(what)}\n")
        with spinner(what):
            await _install(version, environments.absolute(), variables)


async def _install(version: str, environments: Path, variables: Mapping[str, str]) -> None:
    place = environments / version
    if place.exists() and interpreter_in(place) is None:
        raise UserError(f"{place} is there, and is no virtual environment: remove it")
    try:
        environments.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(environments)
        with TemporaryDirectory(prefix=_UNFINISHED, dir=environments, ignore_cleanup_errors=True) as folder:
            made = Path(folder, version)
            await _build_environment(_Install(version, made, variables))
            _move_into_place(made, place)
    except OSError as error:
        raise UserError(f"{environments}: {error.strerror}: name another folder with --environments") from error


def _remove_abandoned(environments: Path) -> None:
    """Removes the unfinished environments of processes that were killed."""
    for folder in environments.glob(f"{_UNFINISHED}*"):
        # Its process may remove it at this moment.
        with suppress(FileNotFoundError):
            if time.time() - folder.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(folder)


def _move_into_place(made: Path, place: Path) -> None:
    for file in (made / "pyvenv.cfg", *made.glob("bin/*")):
        # Console scripts begin with the path of their interpreter.
        if not file.is_symlink() and bytes(made) in (text := file.read_bytes()):
            file.write_bytes(text.replace(bytes(made), bytes(place)))
    try:
        made.rename(place)
    except OSError:
        # Another process was faster, and has installed the same version.
        if interpreter_in(place) is None:
            raise


# --- One environment --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Install:
    """An installation under way: the version, the unfinished environment, and the environment variables of pip."""

    version: str
    folder: Path
    variables: Mapping[str, str]

    @property
    def python(self) -> str:
        return str(interpreter_in(self.folder))


async def _build_environment(install: _Install) -> None:
    code, output = await _run_program((sys.executable, "-I", "-X", "utf8", "-m", "venv", str(install.folder)), install)
    if code:
        raise UserError(
            f"no virtual environment can be made with {sys.executable}: {one_line(output)[-_MAX_PIP_CHARS:]}"
        )
    # Dependencies may have to be built, which runs code: they are installed after the check.
    await _pip(install, "--no-deps")
    _check_installed(install)
    await _pip(install)
    printed = await VersionInterpreter(install.version, install.python).version()
    if not satisfies(install.version, printed):
        raise _wrong_package(install, f"it says that it is {printed}")


async def _pip(install: _Install, *options: str) -> None:
    """Installs the version with the user's settings of pip, without prompts, and builds no package of that name."""
    quiet = ("--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--no-color")
    what = ("--only-binary", _PACKAGE, *options, f"{_PACKAGE}=={install.version}")
    code, output = await _run_program(
        (install.python, "-I", "-X", "utf8", "-m", "pip", "install", *quiet, *what), install
    )
    if code:
        raise UserError(
            f"{install.version}: it cannot be installed: pip says: {_pip_errors(output)}: name a version that pip "
            "finds, or make its environment by hand"
        )


def _pip_errors(output: str) -> str:
    """The last errors and warnings of pip: a warning before an error often says more than the error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    text = [line for line in lines if line.startswith(("ERROR:", "WARNING:"))] or lines or ["nothing"]
    return one_line(" ".join(text[-_MAX_PIP_LINES:]))[-_MAX_PIP_CHARS:]


def _check_installed(install: _Install) -> None:
    """Checks the installed files without running any code: even starting that interpreter would."""
    where = {"base": str(install.folder), "platbase": str(install.folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", where))
    found = next(iter(distributions(name=_PACKAGE, path=[str(packages)])), None)
    if found is None:
        raise _wrong_package(install, "there is no package of that name in the environment")
    if not satisfies(install.version, found.version):
        raise _wrong_package(install, f"its version is {found.version}")
    programs = [one.value for one in found.entry_points.select(group="console_scripts", name=_PACKAGE)]
    if programs != [_PROGRAM] or not (packages / _ENTRY).is_file():
        raise _wrong_package(install, "the command setpoint is not in it, so that it is another package of that name")


def _wrong_package(install: _Install, why: str) -> UserError:
    return UserError(
        f"what pip installed is not setpoint {install.version}: {why}; it was not kept: check where pip takes its "
        "packages from"
    )


async def _run_program(command: tuple[str, ...], install: _Install) -> tuple[int, str]:
    """The exit code of a program, and its output. It is killed when the caller is cancelled."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=install.variables,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                # With all of its child processes.
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return process.returncode or 0, output.decode(errors="replace")

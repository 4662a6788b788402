"""Programs that tests and benchmarks run, and that are built with Go: each once, into the cache of the user."""

import fcntl
import hashlib
import json
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SETTINGS: Final = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}
_SHOWN_CHARACTERS: Final = 500


class NotBuilt(Exception):
    """A program is not there, and cannot be built: the message says why."""


@dataclass(frozen=True, slots=True)
class GoProgram:
    """A program `name` of the module in a folder here, or of a published one: `source` is its path and version.

    Messages call it by its title. `package` is where in the module its main package is.
    """

    title: str
    name: str
    source: Path | str
    package: str = "."

    def path(self, environment: Mapping[str, str]) -> Path:
        """Where it is once it was built from this source."""
        version = source_digest(self.source) if isinstance(self.source, Path) else self.source.rpartition("@")[2]
        machine = f"{platform.system().lower()}-{platform.machine().lower()}"
        return cache_folder(environment) / self.name / f"{version}-{machine}" / self.name

    def built(self, environment: Mapping[str, str], log: Callable[[str], None] = lambda _: None) -> Path:
        """The program, which is built first if it is not there; another process that needs it waits. Else NotBuilt."""
        program = self.path(environment)
        if program.exists():
            return program
        go = shutil.which("go", path=environment.get("PATH", ""))
        if go is None:
            raise NotBuilt(f"there is no Go on the PATH to build {self.title} with")
        program.parent.mkdir(parents=True, exist_ok=True)
        with (program.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():
                log(f"Building {self.title}, once: some minutes")
                self._build(go, program, {**environment, **_SETTINGS})
        return program

    def _build(self, go: str, program: Path, environment: Mapping[str, str]) -> None:
        source = self.source
        if isinstance(source, str):
            source = Path(
                json.loads(self._run([go, "mod", "download", "-json", source], Path.cwd(), environment))["Dir"]
            )
        unfinished = program.with_suffix(".unfinished")
        self._run([go, "build", "-ldflags=-s -w", "-o", str(unfinished), self.package], source, environment)
        # Atomic: no other process finds half of it.
        unfinished.replace(program)

    def _run(self, command: list[str], folder: Path, environment: Mapping[str, str]) -> str:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip()[-_SHOWN_CHARACTERS:]
            raise NotBuilt(f"{self.title} cannot be built: go {command[1]} said: {said}")
        return done.stdout


def cache_folder(environment: Mapping[str, str]) -> Path:
    """The folder of what is built once."""
    kept = environment.get("XDG_CACHE_HOME")
    return (Path(kept).absolute() if kept else Path.home() / ".cache") / "setpoint"


def source_digest(folder: Path) -> str:
    """A name for the source in a folder, which changes with any file of it."""
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]

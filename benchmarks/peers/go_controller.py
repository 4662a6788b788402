"""Builds the controller-runtime controller from its source here and from pinned modules, once, into a cache folder."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.cluster.assets import Missing, cache_folder

SOURCE: Final = Path(__file__).with_name("controller_runtime")
_PROGRAM: Final = "controller"
_SHOWN_LINES: Final = 12


def find_controller(environment: Mapping[str, str], log: Callable[[str], None]) -> Path | Missing:
    """The program from the cache, built first if this source was never built."""
    program = cache_folder(environment).with_name("controller-runtime") / source_digest(SOURCE) / _PROGRAM
    if program.exists():
        return program
    go = shutil.which("go", path=environment.get("PATH", ""))
    if go is None:
        return Missing("there is no Go on the PATH to build the controller-runtime controller with: install Go 1.26")
    log("Building the controller-runtime controller, once: a few minutes")
    return build(go, program, environment)


def build(go: str, program: Path, environment: Mapping[str, str]) -> Path | Missing:
    """The program; Missing with the last lines of Go's output when it cannot be built."""
    program.parent.mkdir(parents=True, exist_ok=True)
    unfinished = program.with_suffix(f".{os.getpid()}")
    settings = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false", "GOWORK": "off"}
    done = subprocess.run(
        [go, "build", "-ldflags=-s -w", "-o", str(unfinished), "."],
        cwd=SOURCE,
        env={**environment, **settings, "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = "\n".join(done.stderr.splitlines()[-_SHOWN_LINES:])
        return Missing(f"the controller-runtime controller cannot be built: go build said: {lines}")
    unfinished.rename(program)
    return program


def source_digest(folder: Path) -> str:
    """A name for the source, which changes with any file of it."""
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def controller_runtime_version(go_mod: str) -> str:
    """The version that a go.mod requires."""
    words = [line.split() for line in go_mod.splitlines()]
    return next(line[1] for line in words if line[:1] == ["sigs.k8s.io/controller-runtime"])

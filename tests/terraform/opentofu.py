"""OpenTofu, built from its published Go module: for machines that have no Terraform."""

import fcntl
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

VERSION: Final = "1.12.6"
_MODULE: Final = f"github.com/opentofu/opentofu@v{VERSION}"
_SETTINGS: Final = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}


class NotBuilt(Exception):
    """OpenTofu cannot be built: the message says why."""


def opentofu(environment: Mapping[str, str] = os.environ) -> Path:
    """The program. It is built once, which takes some minutes; another process that needs it waits."""
    program = _folder(environment) / f"{VERSION}-{platform.system().lower()}-{platform.machine().lower()}" / "tofu"
    if program.exists():
        return program
    go = shutil.which("go", path=environment.get("PATH", ""))
    if go is None:
        raise NotBuilt("terraform is not on the PATH, and there is no Go to build OpenTofu with")
    program.parent.mkdir(parents=True, exist_ok=True)
    with (program.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _build(go, program, {**environment, **_SETTINGS})
    return program


def _folder(environment: Mapping[str, str]) -> Path:
    kept = environment.get("XDG_CACHE_HOME")
    return (Path(kept).absolute() if kept else Path.home() / ".cache") / "setpoint" / "opentofu"


def _build(go: str, program: Path, environment: Mapping[str, str]) -> None:
    downloaded = json.loads(_run([go, "mod", "download", "-json", _MODULE], program.parent, environment))
    fresh = program.with_name("tofu.fresh")
    _run([go, "build", "-o", str(fresh), "./cmd/tofu"], Path(downloaded["Dir"]), environment)
    # Atomic: no other process finds half of it.
    fresh.replace(program)


def _run(command: list[str], folder: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotBuilt(f"OpenTofu {VERSION} cannot be built: go {command[1]} said: {done.stderr.strip()[-500:]}")
    return done.stdout

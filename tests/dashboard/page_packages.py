"""The npm packages of the page: installed once from `dashboard/package-lock.json`, and found again afterwards."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "dashboard"
_STAMP: Final = FOLDER / "node_modules" / ".installed"


class NodeMissing(Exception):
    """There is no Node.js with npm on this machine, or it could not install the packages."""


def is_required(environment: Mapping[str, str]) -> bool:
    """Whether a test that finds no Node.js or no browser has failed: where a skip would go unnoticed."""
    return any(
        environment.get(name, "0").lower() not in ("", "0", "false") for name in ("CI", "SETPOINT_REQUIRE_BROWSER")
    )


def page_packages() -> Path:
    """The folder `node_modules`, as the lock file has it. Processes of one test run take turns."""
    wanted = sha256((FOLDER / "package-lock.json").read_bytes()).hexdigest()
    with Path(tempfile.gettempdir(), "setpoint-tests-npm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _STAMP.exists() or _STAMP.read_text(encoding="utf-8") != wanted:
            run_npm("ci", "--prefer-offline", "--no-audit", "--no-fund")
            _STAMP.write_text(wanted, encoding="utf-8")
    return _STAMP.parent


def run_npm(*arguments: str) -> str:
    """What npm printed; NodeMissing where there is none, or when it fails."""
    npm = shutil.which("npm")
    if npm is None:
        raise NodeMissing("npm is not on the PATH: install Node.js 20.19 or newer")
    done = subprocess.run(
        [npm, *arguments],
        cwd=FOLDER,
        env={**os.environ, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NodeMissing(f"npm {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout

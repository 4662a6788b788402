"""Chromium for the tests: found, or installed from Debian's package where root runs them."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
# The tests talk to this machine alone; without these flags the browser looks for updates.
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class BrowserMissing(Exception):
    """There is no Chromium on this machine, and none could be installed."""


@cache
def chromium() -> str:
    """The path of the program."""
    found = _find()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        printed = _install()
        found = _find()
        if found is None:
            raise BrowserMissing(f"Chromium could not be installed by apt-get:\n{printed}")
    if found is None:
        raise BrowserMissing(
            f"none of {', '.join(_NAMES)} is on the PATH: install one, or name it in SETPOINT_CHROMIUM"
        )
    return found


def _find() -> str | None:
    named = os.environ.get("SETPOINT_CHROMIUM")
    return named or next((path for name in _NAMES if (path := shutil.which(name)) is not None), None)


def _install() -> str:
    """Installs Debian's package; what that printed. Processes of one test run take turns."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with Path(tempfile.gettempdir(), "setpoint-tests-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _find() is not None:
            return ""
        # The list of packages of a new machine may be empty, or old.
        commands = (["update"], ["install", "--yes", "--no-install-recommends", "chromium"])
        return "".join(
            subprocess.run(
                ["apt-get", *command],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            ).stdout
            for command in commands
        )

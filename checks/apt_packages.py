"""Programs that tests need and Debian has: found, or installed where root runs the tests."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def found_or_installed(find: Callable[[], T | None], *packages: str) -> tuple[T | None, str]:
    """What `find` finds, after these packages are installed if it found nothing; and what that printed.

    Nothing is installed unless root runs the tests on Debian. Processes of one test run take turns.
    """
    found = find()
    if found is not None or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return found, ""
    with Path(tempfile.gettempdir(), "setpoint-tests-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        printed = "" if find() is not None else _install(packages)
    return find(), printed


def _install(packages: tuple[str, ...]) -> str:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # The list of packages of a new machine may be empty, or old.
    commands = (["update"], ["install", "--yes", "--no-install-recommends", *packages])
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

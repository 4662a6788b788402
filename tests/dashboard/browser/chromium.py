"""Chromium for the tests: found, or installed from Debian's package where root runs them."""

import os
import shutil
from functools import cache
from typing import Final

from checks.apt_packages import found_or_installed

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
    found, printed = found_or_installed(_find, "chromium")
    if found is None and printed:
        raise BrowserMissing(f"Chromium could not be installed by apt-get:\n{printed}")
    if found is None:
        raise BrowserMissing(
            f"none of {', '.join(_NAMES)} is on the PATH: install one, or name it in SETPOINT_CHROMIUM"
        )
    return found


def _find() -> str | None:
    named = os.environ.get("SETPOINT_CHROMIUM")
    return named or next((path for name in _NAMES if (path := shutil.which(name)) is not None), None)

"""Packages of npm that a test needs, as its lock file pins them: installed once, and kept in the cache of the user."""

import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import pytest

_FILES: Final = ("package.json", "package-lock.json", ".npmrc")
_CACHE: Final = Path.home() / ".cache" / "setpoint"


def installed(source: Path) -> Path:
    """The folder with the packages of the folder `source`; without Node the test is skipped, or fails in CI."""
    npm = shutil.which("npm")
    if npm is None:
        missing = "there is no Node.js with npm on the PATH"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    pinned = b"".join((source / name).read_bytes() for name in _FILES)
    folder = _CACHE / f"{source.name}-{sha256(pinned).hexdigest()[:16]}"
    if not folder.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        # Another process may do the same: the folder appears whole.
        made = Path(mkdtemp(dir=_CACHE))
        for name in _FILES:
            shutil.copy(source / name, made)
        subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=made, check=True, capture_output=True
        )
        try:
            made.rename(folder)
        except OSError:
            shutil.rmtree(made)
    return folder

"""Recorded traffic of Config Connector, replayed against the real command where the recordings are at hand."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = ROOT.parent / "shared" / "conformance"
FIXTURES = sorted(path for path in (RECORDINGS / "fixtures").glob("*") if path.is_dir())


@pytest.mark.skipif(not FIXTURES, reason="no recordings beside the project, in ../shared/conformance")
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
def test_a_recording_is_followed_write_by_write(fixture: Path) -> None:
    program = Path(sys.executable).with_name("setpoint")
    command = [sys.executable, str(RECORDINGS / "replay.py"), str(fixture), "--setpoint", str(program)]
    replayed = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (replayed.returncode, replayed.stdout.splitlines()[-1:]) == (0, ["1 passed, 0 failed"]), replayed.stdout

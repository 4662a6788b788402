"""`python -m setpoint.localcloud` as a process."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

_COMMAND = [sys.executable, "-m", "setpoint.localcloud"]


def _start(file: Path) -> tuple["subprocess.Popen[str]", str]:
    process = subprocess.Popen([*_COMMAND, "--port", "0", "--state", str(file)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"STORAGE_EMULATOR_HOST=(\S+)", process.stdout.readline())
    assert found is not None
    return process, found[1]


def _stop(process: "subprocess.Popen[str]", number: signal.Signals) -> int:
    process.send_signal(number)
    status = process.wait(timeout=240)
    assert process.stdout is not None
    process.stdout.close()
    return status


def test_it_prints_its_address_stops_cleanly_and_keeps_its_state(tmp_path: Path) -> None:
    process, url = _start(tmp_path / "state.json")
    body = json.dumps({"name": "stuff"}).encode()
    with urlopen(Request(f"{url}/storage/v1/b?project=acme", data=body)) as answer:
        assert answer.status == 200
    first = _stop(process, signal.SIGTERM)
    process, url = _start(tmp_path / "state.json")
    with urlopen(f"{url}/storage/v1/b/stuff") as answer:
        bucket = json.load(answer)

    assert (first, _stop(process, signal.SIGINT)) == (0, 0)
    assert bucket["name"] == "stuff"


def test_an_invalid_state_file_ends_it_with_a_message(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{", encoding="utf-8")
    ended = subprocess.run(
        [*_COMMAND, "--state", str(tmp_path / "state.json")], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 1
    assert "is not a state of the local cloud" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_its_help_says_that_it_is_not_google() -> None:
    ended = subprocess.run([*_COMMAND, "--help"], capture_output=True, text=True, check=True)

    assert "It is not Google." in " ".join(ended.stdout.split())


def test_a_state_file_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    done = subprocess.run(
        [*_COMMAND, "--state", str(tmp_path / "file" / "state.json")], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert "state.json: File exists: name a file in a folder that you can write to" in done.stderr

"""A child process ends when it is told to, and with its parent at the latest."""

import signal
import sys
import threading
from pathlib import Path

import pytest

from tests.cluster.children import GONE, Child, kill_starter, state
from tests.cluster.polling import until

_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
_STARTS_A_CHILD = """
import sys
from pathlib import Path
from tests.cluster.children import Child
child = Child(["/bin/sleep", "600"], Path(sys.argv[1]) / "log", Path(sys.argv[1]))
child.start()
print(child.pid, flush=True)
sys.stdin.read()
"""


def _child(folder: Path, script: str) -> Child:
    return Child(["/bin/sh", "-c", script], folder / "log", folder)


def _until_said(child: Child, word: str) -> None:
    until(lambda: word in child.tail())


@_LINUX
def test_it_ends_with_its_parent_even_after_kill_9(tmp_path: Path) -> None:
    pid, before = kill_starter(_STARTS_A_CHILD, tmp_path)
    until(lambda: state(pid) in GONE)

    assert before not in GONE


def test_it_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    child = _child(tmp_path, "echo here; sleep 600")
    thread = threading.Thread(target=child.start)
    thread.start()
    thread.join()
    _until_said(child, "here")

    assert child.pid is not None
    child.kill()


def test_it_is_ended_in_good_order(tmp_path: Path) -> None:
    child = _child(tmp_path, "trap 'echo bye; exit 7' TERM; echo here; while true; do sleep 0.01; done")
    child.start()
    _until_said(child, "here")
    child.stop()

    assert (child.pid, child.code, child.tail()) == (None, 7, "here\nbye")


def test_it_is_killed_when_it_does_not_listen(tmp_path: Path) -> None:
    child = _child(tmp_path, "trap '' TERM; echo here; while true; do sleep 0.01; done")
    child.start()
    _until_said(child, "here")
    child.stop(patience=0.05)

    assert (child.pid, child.code) == (None, -signal.SIGKILL)


def test_ending_what_does_not_run_does_nothing(tmp_path: Path) -> None:
    child = _child(tmp_path, "exit 3")
    child.stop()
    child.start()
    until(lambda: child.code is not None)
    child.stop()
    child.kill()

    assert child.code == 3


@_LINUX
def test_it_is_frozen_and_goes_on(tmp_path: Path) -> None:
    child = _child(tmp_path, "echo here; exec sleep 600")
    child.start()
    _until_said(child, "here")
    pid = child.pid
    assert pid is not None
    until(lambda: state(pid) == "S")
    child.freeze()
    until(lambda: state(pid) == "T")
    child.thaw()
    until(lambda: state(pid) == "S")

    child.kill()


def test_only_the_end_of_a_long_log_is_shown(tmp_path: Path) -> None:
    child = _child(tmp_path, "")
    child.log.write_text("".join(f"{number}\n" for number in range(1_000)), encoding="utf-8")

    assert child.tail().splitlines() == [str(number) for number in range(975, 1_000)]

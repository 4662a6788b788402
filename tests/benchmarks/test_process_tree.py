"""The CPU time of a command includes what it leaves behind."""

import os
import sys

import pytest

from benchmarks.process_tree import run_tree

_BURN = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")


def test_processes_that_outlive_the_command_are_waited_for_and_counted() -> None:
    # The command ends at once; a grandchild works on.
    left = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {_BURN!r}]); print('left')"
    used = run_tree([sys.executable, "-c", left], dict(os.environ))

    assert (used.code, used.output) == (0, "left\n")
    assert used.descendants_cpu > 0.25
    assert used.cpu > used.descendants_cpu


def test_the_code_and_both_streams_of_a_command_that_fails_are_reported() -> None:
    failing = "import sys; print('one', flush=True); sys.stderr.write('two'); sys.exit(7)"
    used = run_tree([sys.executable, "-c", failing], dict(os.environ))

    assert (used.code, used.output) == (7, "one\ntwo")

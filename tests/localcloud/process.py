"""A local cloud in a process of its own."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cloud_process() -> Iterator[str]:
    """The address of a local cloud that runs as long as the block."""
    command = [sys.executable, "-m", "setpoint.localcloud"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"STORAGE_EMULATOR_HOST=(\S+)", process.stdout.readline())
        assert found is not None
        try:
            yield found[1]
        finally:
            process.terminate()

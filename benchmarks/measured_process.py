"""Runs a function in a new process that does nothing else, and reports the CPU time, duration and memory it used.

This module imports nothing of setpoint, so that it adds nothing to the memory of a process that measures a peer.
"""

import asyncio
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from benchmarks.process_memory import resident_bytes

_ROOT: Final = Path(__file__).resolve().parents[1]
_READY: Final = "ready"
# Longer than any job takes.
_TIMEOUT_SECONDS: Final = 900.0


class CustomResourceKind(msgspec.Struct, frozen=True):
    """A kind of custom resource, and its plural in paths."""

    group: str
    version: str
    kind: str
    plural: str


class Job(msgspec.Struct, frozen=True):
    """A function to run, as `module:name`. `folder` holds a kubeconfig and the fleet of the cluster.

    The cluster has `expected` resources of these kinds; a `namespace` is given only where it is an empty one. A watch
    starts at `resource_version` and ends after `events` events.
    """

    entry_point: str
    folder: str
    kinds: tuple[CustomResourceKind, ...]
    expected: int
    namespace: str | None = None
    resource_version: str = ""
    events: int = 0

    @property
    def kubeconfig(self) -> str:
        """The path of the kubeconfig."""
        return f"{self.folder}/admin.kubeconfig"


class Usage(msgspec.Struct, frozen=True):
    """The number of resources or events that were processed, and the CPU seconds and seconds that it took.

    `memory` is in bytes, of the whole process. `requests` are those to the cluster, without watches.
    """

    number: int
    cpu: float
    wall: float
    memory: int
    requests: int = 0


class UsageMeter:
    """Measures the usage since its construction."""

    def __init__(self) -> None:
        # Collects garbage, so that earlier garbage is not collected while the meter runs.
        resident_bytes()
        self._cpu, self._wall = time.process_time(), time.monotonic()

    def read(self, number: int, requests: int = 0) -> Usage:
        """The usage so far."""
        cpu, wall = time.process_time() - self._cpu, time.monotonic() - self._wall
        return Usage(number, cpu, wall, resident_bytes(), requests)


# --- The parent process -----------------------------------------------------------------------------------------------


class MeasuredProcess:
    """A process that runs a job. It is killed at the end of the block if it has not finished."""

    def __init__(self, job: Job) -> None:
        command = (sys.executable, "-m", "benchmarks.measured_process", msgspec.json.encode(job).decode())
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=_ROOT, stdin=pipe, stdout=pipe, encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        # Closes the pipes, too.
        self._process.communicate()

    def wait_until_ready(self) -> None:
        """Returns when the process is in `signal_ready_and_wait`."""
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != _READY:
            self._process.communicate()
            raise self._failure()

    def finish(self) -> Usage:
        """Lets the process continue if it waits, and returns its usage."""
        output, _ = self._process.communicate("\n", timeout=_TIMEOUT_SECONDS)
        if self._process.returncode:
            raise self._failure()
        return msgspec.json.decode(output, type=Usage)

    def _failure(self) -> subprocess.CalledProcessError:
        return subprocess.CalledProcessError(self._process.returncode, self._process.args)


def run_job(job: Job) -> Usage:
    """The usage of a new process that runs `job`."""
    with MeasuredProcess(job) as process:
        return process.finish()


# --- The measured process ---------------------------------------------------------------------------------------------


async def signal_ready_and_wait() -> None:
    """Tells the parent that the set-up is complete; returns when the parent calls `finish`."""
    print(_READY, flush=True)
    await asyncio.to_thread(sys.stdin.readline)


def main() -> None:
    """Runs the job that is the only argument, as JSON."""
    job = msgspec.json.decode(sys.argv[1], type=Job)
    module, _, name = job.entry_point.partition(":")
    entry_point = getattr(import_module(module), name)
    print(msgspec.json.encode(asyncio.run(entry_point(job))).decode())


if __name__ == "__main__":
    main()

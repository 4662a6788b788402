"""Something that is done in a process which has done nothing else, and says what it took.

Nothing of ours is imported here: whoever carries out an order for somebody else has nothing of ours in memory.
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

from benchmarks.residence import resident

_ROOT: Final = Path(__file__).resolve().parents[1]
_READY: Final = "ready"
# Longer than any errand takes, in seconds.
_PATIENCE: Final = 900.0


class Sort(msgspec.Struct, frozen=True):
    """A kind of resource, as a cluster has it."""

    group: str
    version: str
    kind: str
    plural: str


class Order(msgspec.Struct, frozen=True):
    """What to do: a function, as `module:name`. In `folder` there is the way to a cluster, and what it has.

    There are `expected` resources of these sorts; where a `namespace` is named, it is one that has none. `since` and
    `events` are about a watch: where it begins, and how much there is to hear.
    """

    way: str
    folder: str
    resource_types: tuple[Sort, ...]
    expected: int
    namespace: str | None = None
    since: str = ""
    events: int = 0

    @property
    def kubeconfig(self) -> str:
        """The way to the cluster."""
        return f"{self.folder}/admin.kubeconfig"


class Found(msgspec.Struct, frozen=True):
    """How many things were done, and what they took together: seconds, and requests to the cluster besides watches.

    `memory` is in bytes, and of the whole process.
    """

    number: int
    cpu: float
    wall: float
    memory: int
    requests: int = 0


class Meter:
    """Reads off what has been used up since it was made."""

    def __init__(self) -> None:
        # Whatever was thrown away before is not collected at the expense of what comes.
        resident()
        self._cpu, self._wall = time.process_time(), time.monotonic()

    def read(self, number: int, requests: int = 0) -> Found:
        """What it took so far."""
        cpu, wall = time.process_time() - self._cpu, time.monotonic() - self._wall
        return Found(number, cpu, wall, resident(), requests)


# --- Whoever gives the order ------------------------------------------------------------------------------------------


class Errand:
    """A process that carries out an order. It ends with the block, whether it has finished or not."""

    def __init__(self, order: Order) -> None:
        command = (sys.executable, "-m", "benchmarks.errands", msgspec.json.encode(order).decode())
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
        """It has come to where it waits for the word."""
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != _READY:
            self._process.communicate()
            raise self._failure()

    def finish(self) -> Found:
        """Gives the word, if it waits for one: what it found in the end."""
        answer, _ = self._process.communicate("\n", timeout=_PATIENCE)
        if self._process.returncode:
            raise self._failure()
        return msgspec.json.decode(answer, type=Found)

    def _failure(self) -> subprocess.CalledProcessError:
        return subprocess.CalledProcessError(self._process.returncode, self._process.args)


def carry_out(order: Order) -> Found:
    """What came of it."""
    with Errand(order) as errand:
        return errand.finish()


# --- Whoever carries it out -------------------------------------------------------------------------------------------


async def wait_for_word() -> None:
    """All is ready, and `finish` is the word to go on."""
    print(_READY, flush=True)
    await asyncio.to_thread(sys.stdin.readline)


def main() -> None:
    """The order is the only argument."""
    order = msgspec.json.decode(sys.argv[1], type=Order)
    module, _, name = order.way.partition(":")
    way = getattr(import_module(module), name)
    print(msgspec.json.encode(asyncio.run(way(order))).decode())


if __name__ == "__main__":
    main()

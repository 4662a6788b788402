"""A child process that answers lines with lines, and how much memory it takes at most."""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

MIB: Final = 2**20
# The most that a process may take above what it takes idle.
MAX_GROWTH: Final = 64 * MIB
_ROOT: Final = Path(__file__).parents[2]
_RESET_PEAK: Final = "5"


def examples_in(variable: str, full: int) -> int:
    """How many examples: a few hundred in `make test`, all of them in `make laws`; the variable says otherwise."""
    known = {"glance": 50, "quick": 300}.get(os.environ.get("HYPOTHESIS_PROFILE", "quick"), full)
    return int(os.environ.get(variable) or known)


@dataclass(slots=True)
class MeasuredProcess:
    """`python -m module arguments`. It prints a line when it is ready, and one for each line that it reads."""

    module: str
    arguments: Sequence[str] = ()
    idle: int = 0
    peak: int = 0
    examples: int = 0
    output: list[str] = field(default_factory=list)
    _process: asyncio.subprocess.Process | None = None
    _errors: "asyncio.Task[None] | None" = None

    async def start(self) -> None:
        """Starts it, and returns when it is ready."""
        environment = {**os.environ, "PYTHONPATH": f"{_ROOT / 'src'}:{_ROOT}", "PYTHONMALLOC": "malloc"}
        # Freed memory goes back to the system, so that one example does not cover up for the next.
        environment |= {"MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", self.module, *self.arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )
        self._errors = asyncio.create_task(self._read_errors())
        assert await self._line() == "ready"

    async def tell(self, line: str) -> str:
        """The line that answers `line`."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        await self._process.stdin.drain()
        answer = await self._line()
        self.output.append(answer)
        return answer

    def begin(self) -> None:
        """From now on it is measured: what it takes now is idle."""
        self.idle = self._memory("VmRSS")

    def begin_example(self) -> None:
        """Forgets the peak of the examples before."""
        assert self._process is not None
        Path(f"/proc/{self._process.pid}/clear_refs").write_text(_RESET_PEAK, encoding="ascii")

    def end_example(self) -> None:
        """AssertionError when the example took too much memory, or the process is gone."""
        assert self._process is not None
        assert self._process.returncode is None, "\n".join(self.output[-20:])
        growth = self._memory("VmHWM") - self.idle
        self.examples += 1
        self.peak = max(self.peak, growth)
        assert growth <= MAX_GROWTH, f"{growth / MIB:.1f} MiB above idle"

    async def stop(self) -> None:
        """Ends it."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        if self._errors is not None:
            await self._errors

    def figures(self) -> str:
        """How many examples there were, and the most memory that one took."""
        return f"{self.module}: {self.examples} examples, at most {self.peak / MIB:.1f} MiB above idle"

    async def _line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            await self._process.wait()
            assert self._errors is not None
            await self._errors
            pytest.fail("the process ended:\n" + "\n".join(self.output[-40:]))
        return line.decode().rstrip("\n")

    async def _read_errors(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        # Not by lines: one that is longer than the limit of the reader would end this, and block the process.
        while text := await self._process.stderr.read(MIB):
            self.output += text.decode(errors="replace").splitlines()

    def _memory(self, name: str) -> int:
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        line = next(one for one in status.splitlines() if one.startswith(f"{name}:"))
        return int(line.split()[1]) * 1024

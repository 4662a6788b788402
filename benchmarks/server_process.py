"""A server in a process of its own, so that its CPU time is not measured: it prints its address, and ends with us."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[1]


@contextmanager
def running_server(module: str, *arguments: str) -> Iterator[str]:
    """The address of the server that `python -m module` runs until the end of the block."""
    command, pipe = (sys.executable, "-m", module, *arguments), subprocess.PIPE
    with subprocess.Popen(command, cwd=_ROOT, stdin=pipe, stdout=pipe, encoding="utf-8") as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


async def announce_until_parent_ends(port: int) -> None:
    """In the server: prints the address, and returns when the parent process closes the pipe, or ends."""
    print(f"http://127.0.0.1:{port}", flush=True)
    await asyncio.to_thread(sys.stdin.read)

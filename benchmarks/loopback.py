"""A service of buckets over HTTP, in a process of its own so that its work is nobody else's."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from aiohttp import web

from benchmarks.buckets import USUAL, body_of

_ROOT: Final = Path(__file__).resolve().parents[1]


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server that is there until the end."""
    command = (sys.executable, "-m", "benchmarks.loopback")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=_ROOT, stdin=pipe, stdout=pipe, encoding="utf-8") as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


async def _answer(request: web.BaseRequest) -> web.Response:
    name = request.path.rpartition("/")[2]
    return web.Response(body=body_of(name, USUAL), content_type="application/json")


async def _serve() -> None:
    runner = web.ServerRunner(web.Server(_answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    # Until whoever started this closes the other end, or is no more.
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(_serve())

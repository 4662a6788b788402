"""A service of buckets over HTTP, in a process of its own so that its work is nobody else's.

There is any bucket that is asked for. Lists have so many; below `UNLISTED` nobody may list anything.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Final

from aiohttp import web

from benchmarks.buckets import USUAL, body_of, name_of

# What an address ends with at which nothing can be listed.
UNLISTED: Final = "/unlisted"
_ROOT: Final = Path(__file__).resolve().parents[1]


@contextmanager
def serving(count: int = 0) -> Iterator[str]:
    """The address of a server that is there until the end, and lists `count` buckets."""
    command = (sys.executable, "-m", "benchmarks.loopback", str(count))
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=_ROOT, stdin=pipe, stdout=pipe, encoding="utf-8") as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


async def _answer(request: web.BaseRequest, count: int) -> web.Response:
    way, _, name = request.path.rpartition("/")
    if name != "b":
        return web.Response(body=body_of(name, USUAL), content_type="application/json")
    if way.startswith(UNLISTED):
        return web.Response(status=403)
    start, most = int(request.query.get("pageToken", "0")), int(request.query["maxResults"])
    return web.Response(body=_page(start, min(start + most, count), count), content_type="application/json")


@cache
def _page(start: int, end: int, count: int) -> bytes:
    items = b",".join(body_of(name_of(number), USUAL) for number in range(start, end))
    token = b"" if end == count else b',"nextPageToken":"%d"' % end
    return b'{"kind":"storage#buckets","items":[%b]%b}' % (items, token)


async def _serve(count: int) -> None:
    runner = web.ServerRunner(web.Server(partial(_answer, count=count)))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    # Until whoever started this closes the other end, or is no more.
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))

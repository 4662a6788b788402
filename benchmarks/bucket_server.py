"""A stub of Cloud Storage over HTTP, in a process of its own so that its CPU time is not measured.

Every name has a bucket. Lists have `count` of them; below `UNLISTED` lists are refused.
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

# The suffix of an address at which lists are refused.
UNLISTED: Final = "/unlisted"
_ROOT: Final = Path(__file__).resolve().parents[1]


@contextmanager
def running_server(count: int = 0) -> Iterator[str]:
    """The address of a server that runs until the end of the block, and lists `count` buckets."""
    command = (sys.executable, "-m", "benchmarks.bucket_server", str(count))
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=_ROOT, stdin=pipe, stdout=pipe, encoding="utf-8") as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


async def _respond(request: web.BaseRequest, count: int) -> web.Response:
    prefix, _, name = request.path.rpartition("/")
    if name != "b":
        return web.Response(body=body_of(name, USUAL), content_type="application/json")
    if prefix.startswith(UNLISTED):
        return web.Response(status=403)
    start, page_size = int(request.query.get("pageToken", "0")), int(request.query["maxResults"])
    return web.Response(body=_page(start, min(start + page_size, count), count), content_type="application/json")


@cache
def _page(start: int, end: int, count: int) -> bytes:
    items = b",".join(body_of(name_of(number), USUAL) for number in range(start, end))
    token = b"" if end == count else b',"nextPageToken":"%d"' % end
    return b'{"kind":"storage#buckets","items":[%b]%b}' % (items, token)


async def _serve(count: int) -> None:
    runner = web.ServerRunner(web.Server(partial(_respond, count=count)))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    # Until the parent process closes the pipe, or ends.
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))

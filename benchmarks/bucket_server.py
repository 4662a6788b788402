"""A stub of Cloud Storage over HTTP, in a process of its own so that its CPU time is not measured.

Every name has a bucket. Lists have `count` of them; below `UNLISTED` lists are refused.
"""

import asyncio
import sys
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import Final

from aiohttp import web

from benchmarks.buckets import USUAL, body_of, name_of
from benchmarks.server_process import announce_until_parent_ends, running_server

# The suffix of an address at which lists are refused.
UNLISTED: Final = "/unlisted"


def running_buckets(count: int = 0) -> AbstractContextManager[str]:
    """The address of a server that runs until the end of the block, and lists `count` buckets."""
    return running_server("benchmarks.bucket_server", str(count))


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
    await announce_until_parent_ends(runner.addresses[0][1])
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))

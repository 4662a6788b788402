"""A local cloud with a state, in a process of its own: `python -m benchmarks.catalogue_server FILE`."""

import asyncio
import sys
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.server_process import announce_until_parent_ends
from setpoint.localcloud.server import LocalCloud


async def _serve(state: Path) -> None:
    async with LocalCloud(state_file=state) as cloud:
        await announce_until_parent_ends(urlsplit(cloud.url).port or 0)


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))

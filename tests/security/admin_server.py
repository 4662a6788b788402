"""A process that serves the admin API of a store in memory, and tells how many resources it keeps."""

import asyncio
import logging
import sys
from pathlib import Path

from setpoint.runtime import logs
from tests.runtime.admin_api_harness import AdminApiProcess


async def serve(path: Path) -> None:
    """Answers each line of standard input with a line, as long as there are any."""
    loop = asyncio.get_running_loop()
    async with AdminApiProcess(path).serving() as process:
        write("ready")
        while await loop.run_in_executor(None, sys.stdin.readline):
            info = await process.client.hello()
            write(f"{info.phase} {len((await process.store.list()).resources)}")


def write(line: str) -> None:
    """One line on standard output, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logs.configure(logs.LogFormat.JSON, logging.INFO, sys.stderr)
    asyncio.run(serve(Path(sys.argv[1])))

"""The process under test: the real command, started, watched, killed and stopped."""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from setpoint.clients.admin_api import AdminClient, connect_admin
from setpoint.errors import RemoteUnavailable

_TIMEOUT_SECONDS: Final = 60.0


class Process:
    """`setpoint run` on one store, against the cloud at `url`."""

    def __init__(self, folder: Path, url: str, arguments: Sequence[str] = ()) -> None:
        self._arguments = tuple(arguments)
        self.store = folder / "state.db"
        self.kills = 0
        self._log = folder / "setpoint.log"
        self._environment = {
            **os.environ,
            "STORAGE_EMULATOR_HOST": url,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{url}/",
            "SETPOINT_GOOGLE_ENDPOINT": url,
            "SETPOINT_GCP_AUTH": "anonymous",
        }
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """The store, as commands name it."""
        return f"sqlite:///{self.store}"

    async def start(self) -> None:
        """Runs it, until it takes orders."""
        program = str(Path(sys.executable).with_name("setpoint"))
        command = (program, "--store", self.url, "run", "--log-format", "json", *self._arguments)
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, env=self._environment, stdout=log, stderr=log
            )
        daemon = await self.reached()
        await daemon.close()

    async def reached(self) -> AdminClient:
        """A connection to it, as soon as it takes orders."""
        assert self._process is not None
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while True:
                with suppress(RemoteUnavailable, OSError):
                    daemon = await connect_admin(self.store) if self.store.exists() else None
                    if daemon is not None:
                        return daemon
                if self._process.returncode not in (None, -signal.SIGKILL):
                    raise SystemExit(f"setpoint run ended by itself with {self._process.returncode}: see its log")
                await asyncio.sleep(0.05)

    async def kill(self) -> None:
        """kill -9; and whatever it left behind is a whole database."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()
        self.kills += 1
        self.check_store()

    async def stop(self) -> int:
        """Asks it to end; its exit code."""
        assert self._process is not None
        self._process.terminate()
        return await self._process.wait()

    async def end(self) -> None:
        """Ends it, whatever state it is in."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def check_store(self) -> None:
        """AssertionError when SQLite finds anything wrong with the file."""
        connection = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)
        try:
            (found,) = connection.execute("PRAGMA quick_check").fetchone()
        finally:
            connection.close()
        assert found == "ok", found

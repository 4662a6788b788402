"""A user's workspace: a folder with manifests, a local cloud, and the real command on a terminal or in a pipe."""

import asyncio
import io
import os
import subprocess
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from setpoint.app import AppSettings
from setpoint.cli.commands.apply import apply, plan, reconcile
from setpoint.cli.commands.delete import delete
from setpoint.cli.commands.inspect import describe, events, explain, get
from setpoint.cli.request import CommandRequest
from setpoint.cli.views.terminal import SafeConsole
from setpoint.localcloud.faults import AddLatency
from setpoint.localcloud.server import LocalCloud
from tests.cli.programs import DEADLINE, Call, Piped, Terminal
from tests.forking.processes import SETPOINT, Start, run

WIDE: Final = (160, 30)
_SECONDS: Final = 3600.0
_COMMANDS: Final = {
    command.__name__: command for command in (apply, delete, describe, events, explain, get, plan, reconcile)
}
_Result = TypeVar("_Result")

BUCKET: Final = """apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata:
  name: {name}
  annotations: {{cnrm.cloud.google.com/project-id: some-project}}
spec: {{location: {location}}}
"""
DATABASE: Final = """apiVersion: sql.cnrm.cloud.google.com/v1beta1
kind: SQLDatabase
metadata:
  name: {name}
  annotations: {{cnrm.cloud.google.com/project-id: some-project}}
spec: {{charset: UTF8, instanceRef: {instance}}}
"""


def bucket(name: str, location: str = "EU") -> str:
    """The manifest of a bucket."""
    return BUCKET.format(name=name, location=location)


def database(name: str, instance: str) -> str:
    """The manifest of a database: in `{name: …}`, which is declared, or in `{external: …}`."""
    return DATABASE.format(name=name, instance=instance)


def user_environment() -> dict[str, str]:
    """The environment variables of the user."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**kept, "TERM": "xterm-256color", "PYTHONUTF8": "1"}


class Workspace:
    """The local cloud and every program started here end with the `with` block."""

    def __init__(self, folder: Path, environment: Mapping[str, str], cloud_state: Path | None = None) -> None:
        self.folder = folder
        self._cloud = LocalCloud(state_file=cloud_state)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._programs = ExitStack()
        # Any other command of the same name is not forked, but started.
        self.command = SETPOINT
        self.environment = {**environment, "HOME": str(folder), "SETPOINT_GCP_AUTH": "anonymous"}

    def __enter__(self) -> Self:
        self._thread.start()
        url = asyncio.run_coroutine_threadsafe(self._cloud.start(), self._loop).result(DEADLINE)
        self.environment |= {"STORAGE_EMULATOR_HOST": url, "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{url}/"}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._programs.close()
        asyncio.run_coroutine_threadsafe(self._cloud.stop(), self._loop).result(DEADLINE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE)
        self._loop.close()

    # --- Commands ----------------------------------------------------------------------------------------------------

    def write(self, *manifests: str, file: str = "manifest.yaml") -> None:
        """Puts manifests into a file."""
        (self.folder / file).write_text("---\n".join(manifests), encoding="utf-8")

    def apply(self, *manifests: str) -> None:
        """Applies in this process, beside those on terminals and in pipes."""
        self.write(*manifests)
        self.run_quietly("apply")

    def run_quietly(self, command: str, *targets: str) -> None:
        """Runs a command in this process without output; without targets, on the manifests."""
        settings = AppSettings(f"sqlite:///{self.folder}/.setpoint/state.db", environment=self.environment)
        files = () if targets else (str(self.folder / "manifest.yaml"),)
        asyncio.run(_awaited(_COMMANDS[command](CommandRequest(settings, SafeConsole(quiet=True), files, targets))))

    def run_in_process(self, command: str, *targets: str, **options: Any) -> tuple[int, list[str]]:
        """The exit code of a command in this process, and the lines that it would print into a pipe."""
        settings = AppSettings(f"sqlite:///{self.folder}/.setpoint/state.db", environment=self.environment)
        files = () if targets else (str(self.folder / "manifest.yaml"),)
        printed = io.StringIO()
        request = CommandRequest(settings, SafeConsole(file=printed, width=200), files, targets, **options)
        code = asyncio.run(_awaited(_COMMANDS[command](request)))
        return code, printed.getvalue().splitlines()

    def terminal(self, *arguments: str, size: tuple[int, int] = WIDE, **environment: str) -> Terminal:
        """`setpoint` with these arguments, on a terminal."""
        terminal = Terminal(self._call(arguments, environment), size)
        self._programs.callback(terminal.close)
        return terminal

    def piped(self, *arguments: str, **environment: str) -> Piped:
        """`setpoint` with these arguments, in a pipe; it is still running."""
        program = Piped(self._call(arguments, environment))
        self._programs.callback(program.close)
        return program

    def daemon(self, *arguments: str, before: tuple[str, ...] = ()) -> Piped:
        """`setpoint run` with these arguments, as soon as it is running; its output is its log."""
        program = Piped(self._call((*before, "run", *arguments), {}), subprocess.STDOUT)
        self._programs.callback(program.close)
        program.until(lambda: '"event":"running"' in program.text)
        return program

    def run(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """`setpoint` with these arguments, in a pipe, after it has ended."""
        return self.run_program(self.command, *arguments, **environment)

    def run_program(self, *command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Any program, in a pipe, after it has ended."""
        return run(Start(command, self.folder, {**self.environment, **environment}), DEADLINE)

    def _call(self, arguments: tuple[str, ...], environment: Mapping[str, str]) -> Call:
        return Call((self.command, *arguments), self.folder, {**self.environment, **environment})

    # --- The cloud ----------------------------------------------------------------------------------------------------

    def in_cloud(self, verb: Callable[[LocalCloud], _Result]) -> _Result:
        """The result of `verb`, called in the event loop of the cloud."""

        async def act() -> _Result:
            return verb(self._cloud)

        return asyncio.run_coroutine_threadsafe(act(), self._loop).result(DEADLINE)

    def hold_operations(self) -> None:
        """From now on no operation of the cloud ends."""
        self.in_cloud(lambda cloud: cloud.clock.hold())

    def hold_responses(self, path: str = "") -> None:
        """From now on the cloud sends no response."""
        self.hold_operations()
        self.in_cloud(lambda cloud: cloud.inject(AddLatency(_SECONDS, path=path)))

    def release(self) -> None:
        """Ends every operation and every delay that was held."""

        def release(cloud: LocalCloud) -> None:
            cloud.faults.clear()
            cloud.advance(_SECONDS)
            cloud.clock.release()

        self.in_cloud(release)

    def make_instance(self, name: str) -> None:
        """Creates an instance by the API, without a resource."""
        body: dict[str, Any] = {
            "name": name,
            "databaseVersion": "MYSQL_8_0",
            "region": "europe-west1",
            "settings": {"tier": "db-n1-standard-1"},
        }

        def make(cloud: LocalCloud) -> None:
            assert cloud.call("POST", "/sql/v1beta4/projects/some-project/instances", body).status == 200
            cloud.advance(_SECONDS)

        self.in_cloud(make)


async def _awaited(action: Awaitable[_Result]) -> _Result:
    return await action

"""`setpoint demo`: drift, field policies and deletion of one bucket on a local cloud. Leaves nothing behind."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from difflib import ndiff
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from setpoint.app import AppSettings
from setpoint.cli.commands.apply import apply, plan, reconcile
from setpoint.cli.commands.delete import delete
from setpoint.cli.commands.inspect import explain, get
from setpoint.cli.request import CommandRequest
from setpoint.cli.views.terminal import SafeConsole
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.engine.ports import SystemClock
from setpoint.localcloud.server import LocalCloud

_IGNORE_UNSPECIFIED = "cnrm.cloud.google.com/ignore-unspecified-fields"
_UNMANAGED = "cnrm.cloud.google.com/unmanaged"
_BUCKET = "/storage/v1/b/build-logs"
_NAME = "StorageBucket/build-logs"
_COMMANDS: Final = {command.__name__: command for command in (apply, delete, explain, get, plan, reconcile)}


def run_demo(svg: str | None = None) -> None:
    """Runs the demo, and draws it to the file `svg` when one is named."""
    console = SafeConsole() if svg is None else _PictureConsole(record=True, width=110)
    asyncio.run(_play(console))
    if svg is not None:
        console.save_svg(svg, title="setpoint demo", code_format=SVG_TEMPLATE, unique_id="setpoint")


async def _play(console: SafeConsole) -> None:
    async with _open_session(console) as session:
        for part in (_declare, _drift, _ignore, _unmanage, _refuse, _delete):
            await part(session)


class _PictureConsole(SafeConsole):
    """A console for a picture: it has no more columns than are seen, so that long lines are wrapped."""

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401  # those of Console
        """See Console."""
        super().print(*objects, **{**options, "soft_wrap": False})


class DemoClock(SystemClock):
    """A clock that stands still, so that the output is the same every time."""

    def now(self) -> str:
        """See Clock."""
        return "2026-01-05T09:00:00Z"


@dataclass(frozen=True, slots=True)
class DemoSession:
    """A local cloud, a folder for the manifest and the store, and the request for each command."""

    cloud: LocalCloud
    folder: Path
    request: CommandRequest

    @property
    def _file(self) -> Path:
        return self.folder / "bucket.yaml"

    async def run(self, name: str, *words: str) -> None:
        """Prints a command, and runs it."""
        console = self.request.console
        console.print(Text(f"$ setpoint {name} {' '.join(words)}", style="bold green"))
        files = (str(self._file),) if "-f" in words else ()
        targets = tuple(word for word in words if "/" in word)
        await _COMMANDS[name](replace(self.request, files=files, targets=targets))

    def say(self, text: str) -> None:
        """Prints what happens next."""
        self.request.console.print(Text(f"\n{text}", style="bold cyan"))

    def write(self, location: str = "EU", **annotations: str) -> None:
        """Writes the author's manifest, and prints the lines in which it differs from the one before."""
        lines = [f"    {key}: {value}" for key, value in annotations.items()]
        text = _manifest(location, lines)
        before = self._file.read_text(encoding="utf-8") if self._file.exists() else text
        self._file.write_text(text, encoding="utf-8")
        for line in ndiff(before.splitlines(), text.splitlines()):
            if line.startswith(("+ ", "- ")):
                self.request.console.print(Text(line, style="green" if line[0] == "+" else "red"))

    def show_manifest(self) -> None:
        """Prints the author's manifest."""
        self.request.console.print(Text(f"$ cat {self._file.name}", style="bold green"))
        self.request.console.print(Text(self._file.read_text(encoding="utf-8").rstrip()))

    def edit(self, patch: dict[str, Json]) -> None:
        """Changes the live bucket, as another writer would."""
        self.cloud.edit(_BUCKET, patch)


def _manifest(location: str, annotations: list[str]) -> str:
    lines = [
        "apiVersion: storage.cnrm.cloud.google.com/v1beta1",
        "kind: StorageBucket",
        "metadata:",
        "  name: build-logs",
        "  annotations:",
        "    cnrm.cloud.google.com/project-id: demo-project",
        *annotations,
        "spec:",
        f"  location: {location}",
        "  versioning: {enabled: true}",
    ]
    return "\n".join(lines) + "\n"


@asynccontextmanager
async def _open_session(console: SafeConsole) -> AsyncIterator[DemoSession]:
    with tempfile.TemporaryDirectory(prefix="setpoint-demo-") as folder:
        async with LocalCloud() as cloud:
            environment = {
                "STORAGE_EMULATOR_HOST": cloud.url,
                "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{cloud.url}/",
                "SETPOINT_GCP_AUTH": "anonymous",
            }
            settings = AppSettings(f"sqlite:///{folder}/state.db", environment=environment, clock=DemoClock())
            yield DemoSession(cloud, Path(folder), CommandRequest(settings, console, yes=True))


async def _declare(session: DemoSession) -> None:
    session.say("You declare a bucket: what would happen, then make it so.")
    session.write()
    session.show_manifest()
    await session.run("plan", "-f", "bucket.yaml")
    await session.run("apply", "-f", "bucket.yaml")
    session.say("Once more: both digests match, so nothing is compared and nothing is written.")
    await session.run("apply", "-f", "bucket.yaml")


async def _drift(session: DemoSession) -> None:
    session.say("Another user turns versioning off and adds a website, in the console.")
    session.edit({"versioning": {"enabled": False}, "website": {"mainPageSuffix": "index.html"}})
    await session.run("plan", _NAME)
    await session.run("reconcile", _NAME)
    await session.run("explain", _NAME)


async def _ignore(session: DemoSession) -> None:
    session.say("With ignore-unspecified-fields, what the manifest does not name is kept.")
    session.write(**{_IGNORE_UNSPECIFIED: '"true"'})
    await session.run("apply", "-f", "bucket.yaml")
    session.edit({"versioning": {"enabled": False}, "website": {"mainPageSuffix": "index.html"}})
    await session.run("plan", _NAME)
    await session.run("reconcile", _NAME)


async def _unmanage(session: DemoSession) -> None:
    session.say("Unmanaged: versioning belongs to another writer now, whatever the spec says.")
    session.write(**{_IGNORE_UNSPECIFIED: '"true"', _UNMANAGED: "spec.versioning"})
    await session.run("apply", "-f", "bucket.yaml")
    session.edit({"versioning": {"enabled": False}})
    await session.run("plan", _NAME)


async def _refuse(session: DemoSession) -> None:
    session.say("A bucket cannot move: refused by name, before anything is sent.")
    session.write("US", **{_IGNORE_UNSPECIFIED: '"true"', _UNMANAGED: "spec.versioning"})
    await session.run("plan", "-f", "bucket.yaml")


async def _delete(session: DemoSession) -> None:
    session.say("Delete it: verified by its absence.")
    await session.run("delete", _NAME)
    await session.run("get", "-A")


SVG_TEMPLATE: Final = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px ui-monospace, Menlo, Consolas, monospace; }}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""

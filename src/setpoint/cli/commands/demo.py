"""`setpoint demo`: drift, field policies and deletion of one bucket on a local cloud. Leaves nothing behind."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from setpoint.app import AppSettings
from setpoint.cli.commands.resources import COMMANDS
from setpoint.cli.request import CommandRequest
from setpoint.core.values.json_types import Json
from setpoint.engine.context import SystemClock
from setpoint.localcloud.server import LocalCloud

_IGNORE_UNSPECIFIED = "cnrm.cloud.google.com/ignore-unspecified-fields"
_UNMANAGED = "cnrm.cloud.google.com/unmanaged"
_BUCKET = "/storage/v1/b/build-logs"
_NAME = "StorageBucket/build-logs"


def run_demo(svg: str | None = None) -> None:
    """Print the story, and draw it to the file `svg` when one is named."""
    console = Console(record=svg is not None, width=110 if svg else None, highlight=False)
    asyncio.run(_play(console))
    if svg is not None:
        console.save_svg(svg, title="setpoint demo", code_format=SVG_TEMPLATE, unique_id="setpoint")


async def _play(console: Console) -> None:
    async with _open_session(console) as stage:
        for chapter in (_declare, _drift, _ignore, _unmanage, _refuse, _delete):
            await chapter(stage)


class DemoClock(SystemClock):
    """It is always the same morning: the story reads the same every time."""

    def now(self) -> str:
        """See Clock."""
        return "2026-01-05T09:00:00Z"


@dataclass(frozen=True, slots=True)
class DemoSession:
    """A local cloud, a folder for the manifest and the store, and a console to play on."""

    cloud: LocalCloud
    folder: Path
    request: CommandRequest

    async def run(self, name: str, *words: str) -> None:
        """Shows a command, and runs it."""
        console = self.request.console
        console.print(Text(f"$ setpoint {name} {' '.join(words)}", style="bold green"))
        files = (str(self.folder / "bucket.yaml"),) if "-f" in words else ()
        targets = tuple(word for word in words if "/" in word)
        await COMMANDS[name](replace(self.request, files=files, targets=targets))

    def say(self, text: str) -> None:
        """Tells what comes next."""
        self.request.console.print(Text(f"\n{text}", style="bold cyan"))

    def write(self, location: str = "EU", **annotations: str) -> None:
        """The author's manifest."""
        lines = [f"    {key}: {value}" for key, value in annotations.items()]
        (self.folder / "bucket.yaml").write_text(_manifest(location, lines), encoding="utf-8")

    def edit(self, patch: dict[str, Json]) -> None:
        """Somebody changes the live bucket."""
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
async def _open_session(console: Console) -> AsyncIterator[DemoSession]:
    with tempfile.TemporaryDirectory(prefix="setpoint-demo-") as folder:
        async with LocalCloud() as cloud:
            environment = {
                "STORAGE_EMULATOR_HOST": cloud.url,
                "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{cloud.url}/",
                "SETPOINT_GCP_AUTH": "anonymous",
            }
            settings = AppSettings(f"sqlite:///{folder}/state.db", environment=environment, clock=DemoClock())
            yield DemoSession(cloud, Path(folder), CommandRequest(settings, console))


async def _declare(stage: DemoSession) -> None:
    stage.say("You declare a bucket: what would happen, then make it so.")
    stage.write()
    await stage.run("plan", "-f", "bucket.yaml")
    await stage.run("apply", "-f", "bucket.yaml")
    stage.say("Once more: both digests match, so nothing is compared and nothing is written.")
    await stage.run("apply", "-f", "bucket.yaml")


async def _drift(stage: DemoSession) -> None:
    stage.say("Somebody turns versioning off and adds a website, in the console.")
    stage.edit({"versioning": {"enabled": False}, "website": {"mainPageSuffix": "index.html"}})
    await stage.run("plan", _NAME)
    await stage.run("reconcile", _NAME)
    await stage.run("explain", _NAME)


async def _ignore(stage: DemoSession) -> None:
    stage.say("With ignore-unspecified-fields the website would have been theirs to keep.")
    stage.write(**{_IGNORE_UNSPECIFIED: '"true"'})
    await stage.run("apply", "-f", "bucket.yaml")
    stage.edit({"versioning": {"enabled": False}, "website": {"mainPageSuffix": "index.html"}})
    await stage.run("plan", _NAME)
    await stage.run("reconcile", _NAME)


async def _unmanage(stage: DemoSession) -> None:
    stage.say("Unmanaged: versioning is somebody else's now, whatever the spec says.")
    stage.write(**{_IGNORE_UNSPECIFIED: '"true"', _UNMANAGED: "spec.versioning"})
    await stage.run("apply", "-f", "bucket.yaml")
    stage.edit({"versioning": {"enabled": False}})
    await stage.run("plan", _NAME)


async def _refuse(stage: DemoSession) -> None:
    stage.say("A bucket cannot move: refused by name, before anything is sent.")
    stage.write("US", **{_IGNORE_UNSPECIFIED: '"true"'})
    await stage.run("plan", "-f", "bucket.yaml")


async def _delete(stage: DemoSession) -> None:
    stage.say("Delete it: verified by its absence.")
    await stage.run("delete", _NAME)
    await stage.run("get", "-A")


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

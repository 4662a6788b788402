"""`setpoint verify-upgrade`: one world planned by two versions, and whether the second writes anything new."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson
from rich.console import Group, RenderableType
from rich.text import Text

from setpoint.cli.alike import told_by_a_few
from setpoint.cli.columns import Columns, one_line
from setpoint.cli.going_on import drawn
from setpoint.cli.private_files import write_privately
from setpoint.cli.requests import Request, carry_out
from setpoint.cli.sides import Side
from setpoint.cli.states import Exit
from setpoint.cli.survey_progress import SurveyProgress
from setpoint.cli.version_installs import install_missing
from setpoint.core.values import Json
from setpoint.errors import UserError
from setpoint.previewing import record
from setpoint.worlds.comparison import Compared, Comparison, Verdict, compared
from setpoint.worlds.files import read_world
from setpoint.worlds.upgrade_reports import Names, junit, markdown

_CODES: Final = {
    Verdict.SAME: Exit.DONE,
    Verdict.FEWER: Exit.DONE,
    Verdict.DIFFERENT: Exit.CHANGES,
    Verdict.NEW: Exit.CHANGES,
    Verdict.BROKEN: Exit.FAILED,
}
_STYLES: Final = {Exit.DONE: "green", Exit.CHANGES: "yellow", Exit.FAILED: "red"}


@dataclass(frozen=True, slots=True)
class Orders:
    """What is to be compared, and where reports go."""

    baseline: Side
    candidate: Side
    world: str | None
    junit: str | None
    markdown: str | None

    @staticmethod
    def of(options: dict[str, Any]) -> "Orders":
        """The orders that the options of a command line make."""
        environments = Path(options["environments"])
        baseline, candidate = (Side.of(options[name], environments) for name in ("baseline", "candidate"))
        return Orders(baseline, candidate, options["world"], options["junit"], options["markdown"])


def verify(options: dict[str, Any]) -> int:
    """The exit code of `setpoint verify-upgrade`."""
    return carry_out(lambda request: _verify(request, options), options)


async def _verify(request: Request, options: dict[str, Any]) -> Exit:
    if options["install"]:
        words = (options["baseline"], options["candidate"])
        await install_missing(words, Path(options["environments"]), request.settings.environment)
    return await _compare(request, Orders.of(options))


async def _compare(request: Request, orders: Orders) -> Exit:
    async with _world(request, orders.world) as world:
        with drawn("two versions plan the same world"):
            before, after = await asyncio.gather(orders.baseline.report(world), orders.candidate.report(world))
    names = Names(await _name(orders.baseline), await _name(orders.candidate))
    found = compared(before, after)
    for path, text in ((orders.junit, junit(found, names)), (orders.markdown, markdown(found, names))):
        if path is not None:
            _write(Path(path), text)
    if request.output == "json":
        sides: dict[str, Json] = {"baseline": names.baseline, "candidate": names.candidate}
        request.console.out(orjson.dumps({**sides, **found.to_data()}, option=orjson.OPT_INDENT_2).decode())
    else:
        request.console.print(_view(found, names), soft_wrap=True)
    return _CODES[found.worst]


@asynccontextmanager
async def _world(request: Request, world: str | None) -> AsyncIterator[Path]:
    """The recorded world, or one that is recorded now and thrown away."""
    if world is not None:
        # What is wrong with it is said once, and not by each side.
        read_world(Path(world))
        yield Path(world).absolute()
        return
    with TemporaryDirectory(prefix="setpoint-") as folder:
        with SurveyProgress() as progress:
            recording = await record(request.settings, progress.hear)
        path = Path(folder) / "world.gz"
        write_privately(path, [recording.world])
        yield path


async def _name(side: Side) -> str:
    version = await side.version()
    return version if side.name == version else f"{side.name} ({version})"


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: name a file in a folder that you can write to") from error


# --- For people -------------------------------------------------------------------------------------------------------


def _view(found: Comparison, names: Names) -> RenderableType:
    loud = [one for one in found.each if one.verdict is not Verdict.SAME]
    told = list(told_by_a_few(loud, _lines, lambda one: (one.ref.kind, one.verdict, one.fields)))
    told += [Text(f"blocked: {one_line(one)}", style="red") for one in found.blocked]
    told += [Text(f"not recorded: {one_line(one)}", style="red") for one in found.missed]
    rows: list[tuple[tuple[str, ...], str]] = [
        ((one.value, str(found.counts[one])), "") for one in Verdict if one in found.counts
    ]
    code = _CODES[found.worst]
    end = Text(f"{names.baseline} → {names.candidate}: {verdict_of(found)}", style=_STYLES[code])
    return Group(*told, Columns("VERDICT", "RESOURCES").lines(rows), end)


def verdict_of(found: Comparison) -> str:
    """The verdict in a sentence."""
    match _CODES[found.worst]:
        case Exit.DONE:
            more = f"; {found.one_time} are looked at closely once" if found.one_time else ""
            return f"nothing is written that would not be written anyway{more}"
        case Exit.CHANGES:
            return "something is written that would not be written otherwise"
        case _:
            return "something cannot be told, or tried to write: do not roll this out"


def _lines(one: Compared) -> Iterator[RenderableType]:
    style = _STYLES[_CODES[one.verdict]]
    what = one_line(one.trouble) or ", ".join(one.fields)
    yield Text(f"{one.ref} {one.verdict.value}: {what}", style=style)

"""`setpoint verify-upgrade`: one recorded world planned by two versions, and whether the second writes anything new."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from setpoint.cli.atomic_files import write_private_file
from setpoint.cli.commands.plan_all import PlanAllObserver
from setpoint.cli.request import CommandRequest, open_session, print_json, run_command
from setpoint.cli.upgrade_interpreters import VersionInterpreter, install_missing
from setpoint.cli.views.progress import spinner
from setpoint.cli.views.table import TextTable, fold_similar, one_line
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.errors import UserError
from setpoint.library.outcome import ExitCode
from setpoint.replay.comparison import (
    Comparison,
    ReportLabels,
    ResourceComparison,
    UpgradeVerdict,
    compare_reports,
    junit_report,
    markdown_report,
)
from setpoint.replay.world_file import read_world

_EXIT_CODES: Final = {
    UpgradeVerdict.SAME: ExitCode.DONE,
    UpgradeVerdict.FEWER: ExitCode.DONE,
    UpgradeVerdict.DIFFERENT: ExitCode.CHANGES,
    UpgradeVerdict.NEW: ExitCode.CHANGES,
    UpgradeVerdict.BROKEN: ExitCode.FAILED,
}
_STYLES: Final = {ExitCode.DONE: "green", ExitCode.CHANGES: "yellow", ExitCode.FAILED: "red"}


@dataclass(frozen=True, slots=True)
class VerifyUpgradeOptions:
    """The options of `setpoint verify-upgrade`: what is compared, and where reports go."""

    baseline: VersionInterpreter
    candidate: VersionInterpreter
    world: str | None
    junit: str | None
    markdown: str | None

    @staticmethod
    def of(options: dict[str, Any]) -> "VerifyUpgradeOptions":
        """The options of a command line; UserError for an environment that does not exist."""
        environments = Path(options["environments"])
        baseline, candidate = (VersionInterpreter.of(options[name], environments) for name in ("baseline", "candidate"))
        return VerifyUpgradeOptions(baseline, candidate, options["world"], options["junit"], options["markdown"])


def verify(options: dict[str, Any]) -> int:
    """The exit code of `setpoint verify-upgrade`."""
    return run_command(lambda request: _verify(request, options), options)


async def _verify(request: CommandRequest, options: dict[str, Any]) -> ExitCode:
    if options["install"]:
        words = (options["baseline"], options["candidate"])
        await install_missing(words, Path(options["environments"]), request.settings.environment)
    return await _compare(request, VerifyUpgradeOptions.of(options))


async def _compare(request: CommandRequest, verify_options: VerifyUpgradeOptions) -> ExitCode:
    async with _world(request, verify_options.world) as world:
        with spinner("two versions plan the same world"):
            before, after = await asyncio.gather(
                verify_options.baseline.report(world), verify_options.candidate.report(world)
            )
    names = ReportLabels(await _display_name(verify_options.baseline), await _display_name(verify_options.candidate))
    found = compare_reports(before, after)
    for path, text in (
        (verify_options.junit, junit_report(found, names)),
        (verify_options.markdown, markdown_report(found, names)),
    ):
        if path is not None:
            _write_report(Path(path), text)
    if request.output == "json":
        sides: dict[str, Json] = {"baseline": names.baseline, "candidate": names.candidate}
        print_json({**sides, **found.to_data()}, request)
    else:
        request.console.print(_view(found, names), soft_wrap=True)
    return _EXIT_CODES[found.worst]


@asynccontextmanager
async def _world(request: CommandRequest, world: str | None) -> AsyncIterator[Path]:
    """The file of a recorded world; without one, a world is recorded now and removed afterwards."""
    if world is not None:
        # A broken file is reported once, and not by each version.
        read_world(Path(world))
        yield Path(world).absolute()
        return
    with TemporaryDirectory(prefix="setpoint-") as folder:
        async with open_session(request) as session:
            recording = await session.record(observer=PlanAllObserver(request))
        path = Path(folder) / "world.gz"
        write_private_file(path, [recording.world])
        yield path


async def _display_name(side: VersionInterpreter) -> str:
    version = await side.version()
    return version if side.name == version else f"{side.name} ({version})"


def _write_report(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: name a file in a folder that you can write to") from error


# --- As text -------------------------------------------------------------------------------------------------------


def _view(found: Comparison, names: ReportLabels) -> RenderableType:
    loud = [one for one in found.each if one.verdict is not UpgradeVerdict.SAME]
    parts = list(fold_similar(loud, _lines, lambda one: (one.ref.kind, one.verdict, one.fields)))
    parts += [Text(f"blocked: {one_line(one)}", style="red") for one in found.blocked]
    parts += [Text(f"not recorded: {one_line(one)}", style="red") for one in found.missed]
    rows: list[tuple[tuple[str, ...], str]] = [
        ((one.value, str(found.counts[one])), "") for one in UpgradeVerdict if one in found.counts
    ]
    code = _EXIT_CODES[found.worst]
    end = Text(f"{names.baseline} → {names.candidate}: {result_sentence(found)}", style=_STYLES[code])
    return Group(*parts, TextTable("VERDICT", "RESOURCES").lines(rows), end)


def result_sentence(found: Comparison) -> str:
    """The result of the comparison in one sentence."""
    match _EXIT_CODES[found.worst]:
        case ExitCode.DONE:
            more = f"; {found.one_time} are compared in full once" if found.one_time else ""
            return f"nothing is written that would not be written anyway{more}"
        case ExitCode.CHANGES:
            return "something is written that would not be written otherwise"
        case _:
            return "something cannot be compared, or tried to write: do not roll this out"


def _lines(one: ResourceComparison) -> Iterator[RenderableType]:
    style = _STYLES[_EXIT_CODES[one.verdict]]
    what = one_line(one.trouble) or ", ".join(one.fields)
    yield Text(f"{one.ref} {one.verdict.value}: {what}", style=style)

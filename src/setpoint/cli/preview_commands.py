"""`setpoint plan --all` and `setpoint record`: what everything comes to, with and without cookies."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from rich.text import Text

from setpoint.cli import resources_view as view
from setpoint.cli.private_files import write_privately
from setpoint.cli.requests import Request, carry_out
from setpoint.cli.states import Exit, worst
from setpoint.cli.survey_progress import SurveyProgress
from setpoint.cli.survey_view import summary_of, survey_view
from setpoint.engine.previews import Finding, Previewed
from setpoint.engine.variants import with_variants
from setpoint.errors import UserError
from setpoint.previewing import Preview, Recording, open_preview, open_recorded, record
from setpoint.worlds.files import read_world
from setpoint.worlds.survey import Survey, looked_after


def plan_everything(options: dict[str, Any]) -> int:
    """The exit code of `setpoint plan --all`, and of `--world FILE`."""
    return carry_out(lambda request: _plan(request, options["world"], _variants(options["variants"])), options)


def record_world(options: dict[str, Any]) -> int:
    """The exit code of `setpoint record`."""
    return carry_out(lambda request: _record(request, Path(options["to"])), options)


def _variants(words: Sequence[str]) -> Mapping[str, str]:
    found = dict(word.partition("=")[::2] for word in words)
    for kind, way in found.items():
        if not kind or not way:
            raise UserError(
                f"--as {kind or way!r} says too little: write KIND=stateless, KIND=stateful or KIND=REVISION"
            )
    return found


async def _plan(request: Request, world: str | None, variants: Mapping[str, str]) -> Exit:
    if request.files or request.targets:
        raise UserError("--all and --world look at everything: leave out -f and KIND/NAME")
    async with _opened(request, world) as opened:
        preview = replace(opened, world=with_variants(opened.world, variants))
        with SurveyProgress(len(await looked_after(preview.world))) as progress:
            found = await preview.survey(progress.hear)
    _show(found, request)
    return code_of(found)


@asynccontextmanager
async def _opened(request: Request, world: str | None) -> AsyncIterator[Preview]:
    settings = request.settings
    opened = open_preview(settings) if world is None else open_recorded(settings, read_world(Path(world)))
    async with opened as preview:
        yield preview


async def _record(request: Request, to: Path) -> Exit:
    with SurveyProgress() as progress:
        recording = await record(request.settings, progress.hear)
    write_privately(to, [recording.world])
    if request.output == "json":
        request.console.out(orjson.dumps(recording.survey.to_data(), option=orjson.OPT_INDENT_2).decode())
        return Exit.DONE
    if recording.survey.found:
        request.console.print(summary_of(recording.survey), soft_wrap=True)
    request.console.print(Text(f"{_counted(recording)} in {to}"), soft_wrap=True)
    return Exit.DONE


def _counted(recording: Recording) -> str:
    kept, answers = recording.resources, recording.answers
    return f"{kept} resource{'s' * (kept != 1)} and {answers} answer{'s' * (answers != 1)}"


def code_of(found: Survey) -> Exit:
    """What the survey tells a script: failed when anything is hidden, wrong or tried, changes when any will be made."""
    is_wrong = bool(found.blocked or found.missed)
    return worst([Exit.FAILED if is_wrong else Exit.DONE, *map(_code, found.found)])


def _code(one: Previewed) -> Exit:
    if one.finding in (Finding.FAILED, Finding.MASKED, Finding.UNSETTLED):
        return Exit.FAILED
    return Exit.DONE if one.is_left_alone else Exit.CHANGES


def _show(found: Survey, request: Request) -> None:
    match request.output:
        case "json":
            request.console.out(orjson.dumps(found.to_data(), option=orjson.OPT_INDENT_2).decode())
        case "yaml":
            request.console.out(view.as_yaml(found.to_data()))
        case _:
            request.console.print(survey_view(found), soft_wrap=True)

"""`setpoint plan --all` and `setpoint record`: the plan of every resource, with and without cookies."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.text import Text

from setpoint.cli.atomic_files import write_private_file
from setpoint.cli.request import CommandRequest, print_document, print_json, run_command
from setpoint.cli.views.plan import preview_report_summary, preview_report_view
from setpoint.cli.views.progress import PreviewProgress
from setpoint.engine.step.preview import PreviewFinding, PreviewResult
from setpoint.errors import UserError
from setpoint.library.manifests.checks import warn_about_resources
from setpoint.library.outcome import ExitCode, worst_exit_code
from setpoint.preview import (
    PreviewSession,
    WorldRecording,
    make_recording,
    open_preview,
    open_recorded,
    with_kind_variants,
)
from setpoint.replay.preview_report import PreviewReport, managed_refs
from setpoint.replay.world_file import read_world


def plan_all(options: dict[str, Any]) -> int:
    """The exit code of `setpoint plan --all`, and of `--world FILE`."""
    return run_command(lambda request: _plan(request, options["world"], _variants(options["variants"])), options)


def record_world(options: dict[str, Any]) -> int:
    """The exit code of `setpoint record`."""
    return run_command(lambda request: _record(request, Path(options["to"])), options)


def _variants(words: Sequence[str]) -> Mapping[str, str]:
    found = dict(word.partition("=")[::2] for word in words)
    for kind, variant in found.items():
        if not kind or not variant:
            raise UserError(
                f"--as {kind or variant!r} says too little: write KIND=stateless, KIND=stateful or KIND=REVISION"
            )
    return found


async def _plan(request: CommandRequest, world: str | None, variants: Mapping[str, str]) -> ExitCode:
    if request.files or request.targets:
        raise UserError("--all and --world plan everything: leave out -f and KIND/NAME")
    async with _open(request, world) as opened:
        preview = replace(opened, engine=with_kind_variants(opened.engine, variants))
        with PreviewProgress(len(await managed_refs(preview.engine))) as progress:
            found = await preview.preview_all(progress.advance)
        warn_about_resources((await preview.engine.store.list()).resources, preview.engine, request.settings.warn)
    _show(found, request)
    return exit_code_of(found)


@asynccontextmanager
async def _open(request: CommandRequest, world: str | None) -> AsyncIterator[PreviewSession]:
    settings = request.settings
    opened = open_preview(settings) if world is None else open_recorded(settings, read_world(Path(world)))
    async with opened as preview:
        yield preview


async def _record(request: CommandRequest, to: Path) -> ExitCode:
    with PreviewProgress() as progress:
        recording = await make_recording(request.settings, progress.advance)
    write_private_file(to, [recording.world])
    if request.output == "json":
        print_json(recording.report.to_data(), request)
        return ExitCode.DONE
    if recording.report.found:
        request.console.print(preview_report_summary(recording.report), soft_wrap=True)
    request.console.print(Text(f"{_count_text(recording)} in {to}"), soft_wrap=True)
    return ExitCode.DONE


def _count_text(recording: WorldRecording) -> str:
    kept, answers = recording.resources, recording.answers
    return f"{kept} resource{'s' * (kept != 1)} and {answers} answer{'s' * (answers != 1)}"


def exit_code_of(found: PreviewReport) -> ExitCode:
    """FAILED for a failure, a difference hidden by a cookie or a blocked write; CHANGES when a step would write."""
    is_failed = bool(found.blocked or found.missed)
    return worst_exit_code([ExitCode.FAILED if is_failed else ExitCode.DONE, *map(_exit_code_of_one, found.found)])


def _exit_code_of_one(one: PreviewResult) -> ExitCode:
    if one.finding in (PreviewFinding.FAILED, PreviewFinding.MASKED, PreviewFinding.UNSETTLED):
        return ExitCode.FAILED
    return ExitCode.DONE if one.writes_nothing else ExitCode.CHANGES


def _show(found: PreviewReport, request: CommandRequest) -> None:
    if request.output in ("json", "yaml"):
        print_document(found.to_data(), request)
    else:
        request.console.print(preview_report_view(found, quiet=request.quiet), soft_wrap=True)

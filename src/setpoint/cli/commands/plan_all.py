"""`setpoint plan --all` and `setpoint record`: the plan of every resource, with and without cookies."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from setpoint.cli.atomic_files import write_private_file
from setpoint.cli.request import CommandRequest, open_session, print_document, print_json, run_command
from setpoint.cli.views.plan import preview_report_summary, preview_report_view
from setpoint.cli.views.progress import PreviewProgress
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.preview import PreviewResult
from setpoint.errors import UserError
from setpoint.library.command_record import CommandObserver
from setpoint.library.outcome import ExitCode
from setpoint.replay.preview_report import PreviewReport


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
    async with open_session(request) as session:
        found = await session.plan_all(world=world, variants=variants, observer=PlanAllObserver(request))
    _show(found.report, request)
    return found.exit_code


class PlanAllObserver(CommandObserver):
    """Shows the progress, and warnings after it."""

    def __init__(self, request: CommandRequest) -> None:
        self._warn, self._progress = request.settings.warn, PreviewProgress()

    def expected(self, refs: Iterable[ResourceRef]) -> None:
        """See CommandObserver."""
        self._progress.total = len(list(refs))

    def running(self) -> PreviewProgress:
        """See CommandObserver."""
        return self._progress

    def previewed(self, found: PreviewResult) -> None:
        """See CommandObserver."""
        self._progress.advance(found)

    def warned(self, text: str) -> None:
        """See CommandObserver."""
        self._warn(text)


async def _record(request: CommandRequest, to: Path) -> ExitCode:
    async with open_session(request) as session:
        recording = await session.record(observer=PlanAllObserver(request))
    write_private_file(to, [recording.world])
    if request.output == "json":
        print_json(recording.report.to_data(), request)
        return ExitCode.DONE
    if recording.report.found:
        request.console.print(preview_report_summary(recording.report), soft_wrap=True)
    request.console.print(Text(f"{_count_text(recording.resources, recording.answers)} in {to}"), soft_wrap=True)
    return ExitCode.DONE


def _count_text(kept: int, answers: int) -> str:
    return f"{kept} resource{'s' * (kept != 1)} and {answers} answer{'s' * (answers != 1)}"


def _show(found: PreviewReport, request: CommandRequest) -> None:
    if request.output in ("json", "yaml"):
        print_document(found.to_data(), request)
    else:
        request.console.print(preview_report_view(found, quiet=request.quiet), soft_wrap=True)

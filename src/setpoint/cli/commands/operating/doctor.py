"""`setpoint doctor`: what is wrong with the store, the services and the processes, and what to do."""

from collections.abc import Sequence
from typing import Any, Final

from rich.text import Text

from setpoint.cli.request import CommandRequest, print_json, run_command
from setpoint.cli.views.table import one_line
from setpoint.errors import UserError
from setpoint.library.doctor.examination import CHECKS, Examination, examine
from setpoint.library.doctor.findings import Finding, Level, counted, counts_of, findings_data
from setpoint.library.outcome import ExitCode

_STYLES: Final = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "red"}


def doctor(options: dict[str, Any]) -> int:
    """The exit code: 1 with an error, 0 without."""
    return run_command(lambda request: _doctor(request, options), options)


async def _doctor(request: CommandRequest, options: dict[str, Any]) -> ExitCode:
    only = [word.strip() for one in options["only"] for word in one.split(",") if word.strip()]
    unknown = [word for word in only if word not in CHECKS]
    if unknown:
        raise UserError(f"--only: there is no check {unknown[0]!r}: write {', '.join(CHECKS)}")
    findings = await examine(Examination(request.settings, request.seconds, options["acting_as"] or ""), only)
    if request.output == "json":
        print_json(findings_data(findings), request)
    else:
        for one in findings:
            request.console.print(_line(one), soft_wrap=True)
        request.console.print(_summary(findings), soft_wrap=True)
    return ExitCode.FAILED if counts_of(findings)[Level.ERROR] else ExitCode.DONE


def _line(one: Finding) -> Text:
    line = Text.assemble(
        (f"{one.level.value:<9}", _STYLES[one.level]), f"{one.check:<13}", one_line(one.what), style=""
    )
    if one.where:
        line.append(f"  {one_line(one.where)}", "dim")
    if one.advice:
        line.append(f"\n{'':<22}→ {one_line(one.advice)}")
    return line


def _summary(findings: Sequence[Finding]) -> Text:
    counts = counts_of(findings)
    words = [f"{counts[Level.OK]} ok", *(counted(counts[one], one.value) for one in (Level.WARNING, Level.ERROR))]
    return Text(", ".join(words))

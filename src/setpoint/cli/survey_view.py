"""A survey as people read it: what somebody should look at, then how many there are of each."""

from collections.abc import Iterator, Mapping
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from setpoint.cli.alike import told_by_a_few
from setpoint.cli.columns import Columns, one_line
from setpoint.cli.show import plan_rows
from setpoint.clients.read_only import BlockedWrite
from setpoint.engine.previews import Finding, Previewed
from setpoint.worlds.survey import Survey

_STYLES: Final[Mapping[Finding, str]] = {
    Finding.IN_SYNC: "green",
    Finding.ONE_TIME: "cyan",
    Finding.HELD: "dim",
    Finding.WAITING: "yellow",
    Finding.WRITES: "yellow",
    Finding.UNSETTLED: "red",
    Finding.MASKED: "red",
    Finding.FAILED: "red",
}
_WHAT: Final[Mapping[Finding, str]] = {
    Finding.ONE_TIME: "the cookie does not vouch for it; nothing to write, and fast again after that",
    Finding.UNSETTLED: "nothing to write, and no cookie will ever vouch for it: it reads differently each time",
    Finding.MASKED: "the cookie says in sync, and a full comparison does not",
}


def survey_view(found: Survey) -> RenderableType:
    """All of it; of those that are in sync only how many there are, and of many that are alike only some."""
    loud = [one for one in found.found if one.finding is not Finding.IN_SYNC]
    parts = list(told_by_a_few(loud, _told, lambda one: (one.ref.kind, one.finding, one.fields, _why(one))))
    parts += [Text(_blocked(one), style="red") for one in found.blocked]
    parts += [Text(f"not recorded: {one}", style="red") for one in found.missed]
    return Group(*parts, summary_of(found) if found.found else Text("Nothing is declared here."))


def summary_of(found: Survey) -> RenderableType:
    """How many there are of each kind and finding."""
    findings = [one for one in Finding if found.with_finding(one)]
    rows: list[tuple[tuple[str, ...], str]] = [
        ((kind, *(str(counts.get(one, 0)) for one in findings)), "") for kind, counts in sorted(found.counts.items())
    ]
    return Columns("KIND", *(one.value.upper() for one in findings)).lines(rows)


def _told(one: Previewed) -> Iterator[RenderableType]:
    plan, style = one.told, _STYLES[one.finding]
    yield Text(f"{one.ref} {one.finding.value}: {_why(one)}", style=style)
    if plan is not None and (plan.writes or plan.withheld):
        yield plan_rows(plan)


def _why(one: Previewed) -> str:
    if one.plan is None:
        return one_line(one.trouble)
    why = _WHAT.get(one.finding, "") or one.plan.because or one.plan.decision.value
    return f"{why}; without a cookie: {one_line(one.trouble)}" if one.trouble else why


def _blocked(one: BlockedWrite) -> str:
    whose = f", tried for {one.caller}" if one.caller else ""
    fields = f": {', '.join(one.fields)}" if one.fields else ""
    return one_line(f"blocked: {one}{whose}{fields}")

"""Results and resources as HTML, for notebooks: every text is escaped, and nothing is secret that reaches here."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

import orjson
from msgspec import UNSET

from setpoint.library.command_document import ChangeData, ResultOutcome

if TYPE_CHECKING:
    from setpoint.engine.ports import EventRecord
    from setpoint.library.declared import DeclaredResource
    from setpoint.library.inspection.graph import ResourceGraph
    from setpoint.library.inspection.history import HistoryListing
    from setpoint.library.inspection.records import ResourceDescription, StepExplanation
    from setpoint.library.inspection.store_plan import StorePlan
    from setpoint.library.results import ResourceResult

_GREEN: Final = "#2b8a3e"
_YELLOW: Final = "#b08800"
_RED: Final = "#c92a2a"
_PURPLE: Final = "#862e9c"
_GREY: Final = "#868e96"
_COLOURS: Final = {
    ResultOutcome.FAILED: _RED,
    ResultOutcome.NOT_FOUND: _RED,
    ResultOutcome.BLOCKED: _PURPLE,
    ResultOutcome.WAITING: _YELLOW,
    ResultOutcome.WITHHELD: _YELLOW,
    ResultOutcome.UNCHANGED: _GREY,
}
_STATE_COLOURS: Final = {
    **dict.fromkeys(("ready", "there"), _GREEN),
    **dict.fromkeys(("failed", "missing"), _RED),
    **dict.fromkeys(("blocked", "not granted"), _PURPLE),
    **dict.fromkeys(("deleting", "paused", "not looked at"), _GREY),
}
_FAILED_FINDINGS: Final = ("failed", "masked", "unsettled")
_MAX_VALUE: Final = 120


def results_html(results: "Sequence[ResourceResult]", caption: str) -> str:
    """A table of results, with the fields of each."""
    rows = (
        _row(
            _text(str(one.ref)),
            _coloured(one.outcome.value, _COLOURS.get(one.outcome, _GREEN)),
            _text(one.message) + _changes(one.changes),
        )
        for one in results
    )
    return _table(("resource", "outcome", ""), rows, caption)


def resources_html(resources: "Sequence[DeclaredResource]") -> str:
    """A table of resources, with the Ready condition of each."""
    return _table(("resource", "ready", "reason", "message"), map(_resource_row, resources), "")


def _resource_row(one: "DeclaredResource") -> str:
    ready = one.ready
    if ready is None:
        return _row(_text(str(one.ref)), _coloured("no step yet", _GREY), "", "")
    colour = _GREEN if ready.status == "True" else _YELLOW
    return _row(_text(str(one.ref)), _coloured(ready.status, colour), _text(ready.reason), _text(ready.message))


def events_html(events: "Sequence[EventRecord]") -> str:
    """A table of events, the oldest first."""
    rows = (
        _row(
            *map(_text, (one.at, str(one.ref))),
            _coloured(one.reason, _YELLOW if one.severity == "Warning" else _GREEN),
            *map(_text, (str(one.count), one.message)),
        )
        for one in events
    )
    return _table(("when", "resource", "reason", "count", "message"), rows, "")


def history_html(history: "HistoryListing") -> str:
    """A table of what happened to a resource, the newest first."""
    rows = (
        _row(_text(one.at), _text(one.type.value), _text(str(one.data.get("trigger", ""))), _indented_cell(one.data))
        for one in history
    )
    return _table(("when", "what", "asked by", ""), rows, str(history.ref))


def _indented_cell(value: object) -> str:
    return f"<pre>{_indented(value)}</pre>"


def description_html(described: "ResourceDescription") -> str:
    """The resource with its Ready condition, its document, and its events."""
    document = _indented(described.resource.to_data())
    head = resources_html((described.resource,))
    return f"{head}<details><summary>document</summary><pre>{document}</pre></details>{events_html(described.events)}"


def explanation_html(explained: "StepExplanation") -> str:
    """What the last step decided and wrote, and when the next one is due."""
    step = explained.step or {}
    facts = [(name, str(step[name])) for name in ("at", "trigger", "decision", "reason") if name in step]
    facts += [("moved", ", ".join(explained.moved))] if explained.moved else []
    facts += [("now", explained.now)]
    rows = [_row(_text(name), _text(text)) for name, text in (*facts, ("next step", explained.next_step))]
    parts = {name: step[name] for name in ("writes", "withheld", "kept", "retained") if step.get(name)}
    rows += [_row(_text(name), f"<pre>{_indented(value)}</pre>") for name, value in parts.items()]
    return _table((), rows, str(explained.ref))


def graph_html(graph: "ResourceGraph") -> str:
    """The resources with their states, each with what it depends on."""
    rows = (
        _row(
            _text(str(node.ref)),
            _coloured(node.state.value, _STATE_COLOURS.get(node.state.value, _YELLOW)),
            "<br>".join(_text(f"{one.needed} {one.label}".rstrip()) for one in graph.needed_by(node.ref)),
            _text(node.message),
        )
        for node in graph.nodes
    )
    return _table(("resource", "state", "depends on", ""), rows, graph.cycle)


def store_plan_html(plan: "StorePlan") -> str:
    """What the next step of each resource would write; those with nothing to do are only counted."""
    rows = (
        _row(
            _text(str(one.ref)),
            _coloured(one.finding.value, _RED if one.finding.value in _FAILED_FINDINGS else _YELLOW),
            _text(one.trouble) + "<br>".join(f"<code>{_text(path)}</code>" for path in one.fields),
        )
        for one in plan
        if not one.writes_nothing
    )
    caption = ", ".join(f"{name} {count}" for name, count in plan.summary.items())
    return _table(("resource", "finding", ""), rows, caption or "nothing is declared")


def _indented(value: object) -> str:
    return _text(orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode(errors="replace"))


def _changes(changes: Sequence[ChangeData]) -> str:
    if not changes:
        return ""
    return f"<ul>{''.join(f'<li>{_change(one)}</li>' for one in changes)}</ul>"


def _change(one: ChangeData) -> str:
    sides = [_value(side) for side in (one.before, one.after) if side is not UNSET]
    return f"<code>{_text(one.path)}</code> {' → '.join(sides)} <small>{_text(one.rule)}</small>"


def _value(value: object) -> str:
    text = orjson.dumps(value, default=str).decode(errors="replace")
    return f"<code>{_text(text if len(text) <= _MAX_VALUE else f'{text[: _MAX_VALUE - 1]}…')}</code>"


def _table(heads: Iterable[str], rows: Iterable[str], caption: str) -> str:
    head = "".join(f"<th>{_text(one)}</th>" for one in heads)
    title = f"<caption>{_text(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{one}</td>' for one in cells)}</tr>"


def _coloured(text: str, colour: str) -> str:
    return f'<span style="color: {colour}">{_text(text)}</span>'


def _text(text: str) -> str:
    """Escaped, with characters that are invisible, or change the direction of writing, as their code."""
    return escape("".join(one if one.isprintable() or one == "\n" else f"\\u{ord(one):04x}" for one in text))

"""Results and resources as HTML, for notebooks: every text is escaped, and nothing is secret that reaches here."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

import orjson
from msgspec import UNSET

from setpoint.library.command_document import ChangeData, ResultOutcome

if TYPE_CHECKING:
    from setpoint.library.declared import DeclaredResource
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

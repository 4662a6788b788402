"""The history of a resource as text: a line for each entry, with its fields below it, and its requests if asked for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from rich.text import Text

from setpoint.cli.views.plan import recorded_value, value_text
from setpoint.cli.views.table import TextTable, one_line
from setpoint.core.plan import Action
from setpoint.core.step_record import MORE, MORE_WITHHELD, MORE_WRITES, OPERATION
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.claims.object_claims import location_text
from setpoint.engine.step.reports import HistoryEntry, HistoryType

_COLOURS: Final = {
    HistoryType.STEP: "",
    HistoryType.WRITE: "",
    HistoryType.DRIFT: "yellow",
    HistoryType.REFUSED: "red",
    HistoryType.EVENT: "dim",
}


class HistoryView:
    """A line for each entry, the oldest first. More can follow, as with `--watch`."""

    def __init__(self, *, wide: bool) -> None:
        self._columns = TextTable("WHEN", "WHAT", "BY", "RESULT")
        self._is_wide = wide

    def lines(self, entries: Iterable[HistoryEntry]) -> Text:
        """The entries; the first call also prints the header."""
        # All rows at once: the columns of one call are as wide as its widest cell.
        shown = list(entries)
        rows = self._columns.lines((_row(one), _COLOURS[one.type]) for one in shown).split("\n")
        lines = list(rows[: len(rows) - len(shown)])
        for line, one in zip(rows[len(lines) :], shown, strict=True):
            lines += [line, *(Text(f"  {one_line(text)}", style="dim") for text in self._below(one))]
        return Text("\n").join(lines)

    def _below(self, one: HistoryEntry) -> Iterator[str]:
        yield from _field_lines(one.data)
        if self._is_wide:
            yield from map(_request_line, _objects(one.data.get("requests")))


def _row(one: HistoryEntry) -> tuple[str, ...]:
    return (one.at, one.type.value, _text(one.data, "trigger") or "-", _result(one))


def _result(one: HistoryEntry) -> str:
    data = one.data
    match one.type:
        case HistoryType.STEP:
            return _step_result(data)
        case HistoryType.WRITE:
            failure = _text(data, "failure")
            done = f"{_text(data, 'action')} {location_text(_text(data, 'target'))}"
            return done + (f": {failure}" if failure else "")
        case HistoryType.DRIFT:
            fields = [one for one in _items(data.get("fields")) if isinstance(one, str)]
            if data.get("deleted") is True:
                return "another writer deleted the object"
            return f"another writer changed {', '.join(fields)}"
        case HistoryType.REFUSED:
            return f"{_text(data, 'error')}: {_text(data, 'message')}"
        case HistoryType.EVENT:
            return f"{_text(data, 'reason')}: {_text(data, 'message')}"


def _step_result(data: JsonObject) -> str:
    writes = _objects(data.get("writes"))
    actions = ", ".join(dict.fromkeys(_text(write, "action") for write in writes))
    decision = _text(data, "decision")
    # What is decided and written is said once.
    is_same = actions in (decision, Action.DELETE)
    parts = [actions if is_same else f"{decision}: {actions or 'nothing written'}"]
    if operation := _text(data, OPERATION):
        parts.append(f"operation {operation} begun")
    if because := _text(data, "because"):
        parts.append(because)
    if source := _text(data, "source"):
        parts.append(f"declared at {source}")
    return "; ".join(parts)


def _field_lines(data: JsonObject) -> Iterator[str]:
    """The fields that a step wrote or withheld. A write has their paths alone: its step, which follows, has values."""
    if "requests" in data:
        return
    for write in _objects(data.get("writes")):
        yield from map(_change_line, _objects(write.get("changes")))
        yield from _left_out(write, MORE, "fields")
    yield from _left_out(data, MORE_WRITES, "writes")
    yield from (f"withheld: {_change_line(change)}" for change in _objects(data.get("withheld")))
    yield from _left_out(data, MORE_WITHHELD, "withheld fields")


def _left_out(part: JsonObject, name: str, what: str) -> Iterator[str]:
    if isinstance(count := part.get(name), int):
        yield f"… and {count:,} more {what}"


def _change_line(change: JsonObject) -> str:
    before, after = (value_text(recorded_value(change, side)) for side in ("before", "after"))
    return f"{_text(change, 'path')}: {before if before == after else f'{before} → {after}'} ({_text(change, 'rule')})"


def _request_line(request: JsonObject) -> str:
    answer = request.get("status") or _text(request, "error") or "no answer"
    return f"{_text(request, 'method')} {_text(request, 'url')} {answer} {request.get('seconds', 0)} s"


def _text(data: JsonObject, name: str) -> str:
    found = data.get(name)
    return found if isinstance(found, str) else ""


def _items(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list | tuple) else ()


def _objects(value: Json) -> list[JsonObject]:
    return [one for one in _items(value) if isinstance(one, Mapping)]

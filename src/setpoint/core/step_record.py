"""The record of a step within a size that no plan decides: values are shortened, and what does not fit is counted.

A record is JSON: a plan (`Plan.to_data`), and when and why it was made. It is stored in a status, which has room for
little beside a large spec.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from operator import le
from typing import Final

import orjson

from setpoint.core.redaction import redact_untyped
from setpoint.core.values.canonical import canonical, digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import Path, PathStep, Selector
from setpoint.core.values.shortening import beginning, short_value
from setpoint.errors import ManifestInvalid

MAX_RECORD_BYTES: Final = 4096
# What a record leaves out is counted: changes of a write, withheld, kept and retained fields, and writes.
MORE: Final = "more"
MORE_WITHHELD: Final = "moreWithheld"
MORE_KEPT: Final = "moreKept"
MORE_RETAINED: Final = "moreRetained"
MORE_WRITES: Final = "moreWrites"
# In a change: the names of the sides whose values are shortened texts.
SHORTENED: Final = "shortened"
# The long-running operation that the step began, by its name.
OPERATION: Final = "operation"
# The digest of the paths of all withheld fields, where some are left out or shortened.
WITHHELD_PATHS: Final = "withheldPaths"
_SIDES: Final = ("before", "after")
_MAX_WRITES: Final = 8
_MAX_STEP_BYTES: Final = 64
_MAX_PATH_BYTES: Final = 200
_MAX_VALUE_BYTES: Final = 200
# The most characters of the texts of a change; and what else a member takes: its name, four quotes, a colon, and a
# comma or bracket.
_LONGEST: Final = {
    "path": _MAX_PATH_BYTES - 2,
    "rule": _MAX_STEP_BYTES - 2,
    "before": _MAX_VALUE_BYTES - 2,
    "after": _MAX_VALUE_BYTES - 2,
}
_HEADS: Final = {name: len(name) + 6 for name in _LONGEST}
_ONLY_TEXT: Final = frozenset((str,))
# What else a record says, with the most bytes of each.
_TEXTS: Final = {"at": 40, "trigger": 100, "decision": 40}
_MAX_OPERATION_BYTES: Final = 200
_OPTIONAL_TEXTS: Final = {"because": 400, "reason": 40, "source": 200, OPERATION: _MAX_OPERATION_BYTES}
_MAX_COOKIE_BYTES: Final = 131
_ELLIPSIS: Final = "…"
_LISTS: Final = (list, tuple)
# What takes one byte in JSON.
_is_plain: Final = re.compile(r"[ !#-\[\]-~]*").fullmatch


def bounded_record(record: JsonObject) -> JsonObject:
    """The record in at most MAX_RECORD_BYTES of canonical JSON; the record itself when it fits.

    Of every list of changes the first ones are kept, as many as fit, and of withheld fields at least one.
    """
    if len(canonical(record)) <= MAX_RECORD_BYTES:
        return record
    writes, rest = _objects(record.get("writes")), _rest(record)
    of_writes = [_ChangeList.of(write.get("changes")) for write in writes[:_MAX_WRITES]]
    withheld, kept = _ChangeList.of(record.get("withheld")), _ChangeList.of(record.get("kept"))
    retained = _ChangeList.of(record.get("retained"))
    lists = (withheld, *of_writes, retained, kept)

    def assembled() -> JsonObject:
        heads = [_write(write, of) for write, of in zip(writes, of_writes, strict=False)]
        return {
            **rest,
            **_counted("writes", heads, MORE_WRITES, len(writes)),
            **_fields(withheld, kept, retained),
        }

    _fill(lists, MAX_RECORD_BYTES - len(canonical(assembled())))
    return assembled()


def withheld_paths(record: JsonObject) -> str:
    """The digest of the paths of all fields that a record has as withheld."""
    noted = record.get(WITHHELD_PATHS)
    return noted if isinstance(noted, str) else paths_digest(_paths(record.get("withheld")))


def paths_digest(paths: Sequence[str]) -> str:
    """The digest of paths, in their order."""
    return digest(list(paths))[:16]


def operation_text(name: str) -> str:
    """The name of an operation as a record has it."""
    return _short(name, _MAX_OPERATION_BYTES)


def written_paths(record: JsonObject) -> list[str]:
    """The paths of the fields that a record has as written, the first ones of many."""
    return [path for write in _objects(record.get("writes")) for path in _paths(write.get("changes"))]


@dataclass(slots=True)
class _ChangeList:
    """The changes of one list, and the first of them, in short form, that the record has room for."""

    changes: Sequence[JsonObject]
    shown: list[Json] = field(default_factory=list)

    @staticmethod
    def of(data: Json) -> "_ChangeList":
        return _ChangeList(_objects(data))


def _fill(lists: Sequence[_ChangeList], room: int) -> None:
    """Adds one change to each list in turn, as long as there is room; a list ends with the first that does not fit."""
    filling = list(lists)
    while filling:
        still: list[_ChangeList] = []
        for one in filling:
            if len(one.shown) == len(one.changes):
                continue
            change = one.changes[len(one.shown)]
            size = plain_size(change)
            if size is None:
                change = _short_change(change)
                size = len(canonical(change))
            # And a comma.
            if size + 1 <= room:
                one.shown.append(change)
                room -= size + 1
                still.append(one)
        filling = still


def plain_size(change: JsonObject) -> int | None:
    """The bytes of a change that is in short form, as most are: of a few short texts, without quotes. Else None."""
    texts = change.values()
    if not ("path" in change and "rule" in change and _LONGEST.keys() >= change.keys()):
        return None
    if not _ONLY_TEXT.issuperset(map(type, texts)):
        return None
    lengths = [*map(len, texts)]  # type: ignore[arg-type] # all are texts
    if not all(map(le, lengths, map(_LONGEST.__getitem__, change))):
        return None
    size = 1 + sum(lengths) + sum(map(_HEADS.__getitem__, change))
    try:
        # Then each character takes one byte.
        return size if len(orjson.dumps(change)) == size else None
    except TypeError:
        return None


def _rest(record: JsonObject) -> dict[str, Json]:
    """What a record says beside its changes."""
    cookie = record.get("cookie")
    sides = cookie if isinstance(cookie, Mapping) else {}
    cookies: dict[str, Json] = {
        name: None if sides.get(name) is None else _short(sides[name], _MAX_COOKIE_BYTES) for name in _SIDES
    }
    rest: dict[str, Json] = {name: _short(record.get(name), limit) for name, limit in _TEXTS.items()}
    rest["cookie"] = cookies
    for name, limit in _OPTIONAL_TEXTS.items():
        if name in record:
            rest[name] = _short(record[name], limit)
    return rest


def _fields(withheld: _ChangeList, kept: _ChangeList, retained: _ChangeList) -> dict[str, Json]:
    found = _counted("kept", kept.shown, MORE_KEPT, len(kept.changes))
    if retained.changes:
        found |= _counted("retained", retained.shown, MORE_RETAINED, len(retained.changes))
    if withheld.changes:
        found |= _counted("withheld", withheld.shown, MORE_WITHHELD, len(withheld.changes))
        found[WITHHELD_PATHS] = paths_digest(_paths(withheld.changes))
    return found


def _write(write: JsonObject, changes: _ChangeList) -> JsonObject:
    head = {name: _short(write.get(name), _MAX_STEP_BYTES) for name in ("action", "name")}
    return {**head, **_counted("changes", changes.shown, MORE, len(changes.changes))}


def _counted(name: str, shown: Sequence[Json], more: str, count: int) -> dict[str, Json]:
    """A list, and how many entries it leaves out."""
    left_out: dict[str, Json] = {more: count - len(shown)} if count > len(shown) else {}
    return {name: list(shown), **left_out}


def _short_change(change: JsonObject) -> JsonObject:
    short: dict[str, Json] = {
        "path": short_path(_text(change.get("path"))),
        "rule": _short(change.get("rule"), _MAX_STEP_BYTES),
    }
    cut: list[Json] = []
    for side in _SIDES:
        value = change.get(side, MISSING)
        if isinstance(value, Missing):
            continue
        if not _fits(value, _MAX_VALUE_BYTES):
            # Redacted before it becomes a text, in which members cannot be recognised any more.
            value = short_value(redact_untyped(value))
            cut.append(side)
        short[side] = value
    if cut:
        short[SHORTENED] = cut
    return {**short, "immutable": True} if change.get("immutable") is True else short


def short_path(text: str) -> str:
    """A path in few bytes, which can be parsed: a long name is cut, and of many steps the middle is left out."""
    # Mostly it is so short that it fits, whatever its characters are.
    if 6 * len(text) + 2 <= _MAX_PATH_BYTES or _fits(text, _MAX_PATH_BYTES):
        return text
    try:
        steps = tuple(map(_short_step, Path.parse(text).steps))
    except ManifestInvalid:
        # A status may hold anything.
        steps = (_short(text, _MAX_STEP_BYTES),)
    short = str(Path(steps))
    return short if len(canonical(short)) <= _MAX_PATH_BYTES else str(Path((steps[0], _ELLIPSIS, steps[-1])))


def _short_step(step: PathStep) -> PathStep:
    match step:
        case Selector(pairs):
            return Selector(
                tuple((_short(name, _MAX_STEP_BYTES), _short(value, _MAX_STEP_BYTES)) for name, value in pairs[:1])
            )
        case str():
            return _short(step, _MAX_STEP_BYTES)
        case _:
            return step


def _short(value: Json, limit: int) -> str:
    """The text in at most `limit` bytes of JSON, by its beginning."""
    text = value if type(value) is str else _text(value)
    if _fits(text, limit):
        return text
    # Two quotes, and three bytes for the ellipsis.
    room = limit - 5
    begun = beginning(text, room)
    # A control character takes six bytes.
    return f"{begun if len(canonical(begun)) <= room + 2 else beginning(text, room // 6)}{_ELLIPSIS}"


def _fits(value: Json, limit: int) -> bool:
    """Whether the value takes at most `limit` bytes of JSON."""
    if isinstance(value, str):
        size = len(value) + 2
        # A character takes one to six bytes, and one of plain text one.
        if not size <= limit < 6 * size - 10 or _is_plain(value):
            return size <= limit
    return len(canonical(value)) <= limit


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _paths(changes: Json) -> list[str]:
    return [_text(change.get("path")) for change in _objects(changes)]


def _objects(data: Json) -> list[JsonObject]:
    # The first check is for speed: nearly all are of that type.
    return [one for one in data if type(one) is dict or isinstance(one, Mapping)] if isinstance(data, _LISTS) else []

"""The timeline of a resource: its history and its events as one list, and how often each field drifted when."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import UNSET

from setpoint.core.conditions import ConditionType
from setpoint.core.redaction import redact_record
from setpoint.core.values.durations import rfc3339
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.dashboard.api.resource_models import Entry, FieldChangeModel, Heat, RequestModel, Timeline
from setpoint.dashboard.views.details import change_models
from setpoint.dashboard.views.rows import objects_in, text_in
from setpoint.engine.claims.object_claims import location_text
from setpoint.engine.ports import EventRecord
from setpoint.engine.step.reports import HistoryEntry, HistoryType
from setpoint.library.inspection.records import moved_digests

DEFAULT_ENTRIES: Final = 100
MAX_ENTRIES: Final = 500
_BUCKETS: Final = 24
_MAX_HEAT_FIELDS: Final = 30
# Where the next page of a merged timeline begins: a time, and how many of its entries were shown.
_CURSOR: Final = re.compile(r"(?P<time>[0-9T:.Z+-]{1,40})~(?P<shown>[0-9]{1,6})")
_DRIFT_DECISIONS: Final = frozenset({"drifted", "both", "differs", "revised, live changed"})


def timeline_of(history: Sequence[HistoryEntry], events: Sequence[EventRecord], *, most: int, now: str) -> Timeline:
    """The timeline of one page of a history, which has one entry more than `most` if there are more."""
    shown, has_more = history[:most], len(history) > most
    since = shown[-1].at if has_more and shown else ""
    entries = entries_of(shown) + [event_entry(one) for one in reversed(events) if one.at >= since]
    return _timeline(entries, str(shown[-1].number) if has_more and shown else None, now)


def merged_timeline(entries: Sequence[Entry], before: str, *, most: int, now: str) -> Timeline:
    """The timeline of one page of entries from several sources; `before` is the `next` of the page before, or empty."""
    found = sorted(entries, key=lambda one: one.time, reverse=True)
    if (cursor := _CURSOR.fullmatch(before)) is not None:
        older = [one for one in found if one.time < cursor["time"]]
        found = [one for one in found if one.time == cursor["time"]][int(cursor["shown"]) :] + older
    page = found[:most]
    if len(found) <= most:
        return _timeline(page, None, now)
    last = page[-1].time
    shown = sum(one.time == last for one in page)
    if cursor is not None and cursor["time"] == last:
        shown += int(cursor["shown"])
    return _timeline(page, f"{last}~{shown}", now)


def _timeline(entries: Sequence[Entry], following: str | None, now: str) -> Timeline:
    start, seconds, heat = _heat(entries, now)
    return Timeline(
        # What is of the same second stays in its order, steps first, each of them with the newest first.
        entries=tuple(sorted(entries, key=lambda one: one.time, reverse=True)),
        next=following,
        heat=heat,
        bucket_seconds=seconds,
        bucket_start=start,
    )


def is_cursor(text: str) -> bool:
    """Whether a text may be the `next` of a merged timeline."""
    return _CURSOR.fullmatch(text) is not None


def entries_of(history: Iterable[HistoryEntry]) -> list[Entry]:
    """The entries of a history: a step of a changed spec follows the change."""
    found: list[Entry] = []
    for one in history:
        found.append(entry_of(one))
        if one.type is HistoryType.STEP and "intent" in moved_digests(one.data):
            found.append(_spec_entry(one))
    return found


def _spec_entry(step: HistoryEntry) -> Entry:
    """The change of the spec that a step found."""
    source = text_in(step.data, "source")
    text = "the spec had changed since the step before" + (f": {source}" if source else "")
    return Entry(time=step.at, type="specChanged", who=source or "author", text=text)


def entry_of(one: HistoryEntry) -> Entry:
    """An entry of a history."""
    data = redact_record(one.data, whole=False)
    assert isinstance(data, dict)
    match one.type:
        case HistoryType.STEP:
            return _step_entry(one.at, data)
        case HistoryType.WRITE:
            return _write_entry(one.at, data)
        case HistoryType.DRIFT:
            return _drift_entry(one.at, data)
        case HistoryType.REFUSED:
            return Entry(time=one.at, type="refused", who=text_in(data, "trigger"), text=text_in(data, "message"))
        case HistoryType.EVENT:
            return Entry(time=one.at, type="event", who="setpoint", text=text_in(data, "message"))


def _step_entry(at: str, data: JsonObject) -> Entry:
    writes = objects_in(data.get("writes"))
    fields = tuple(field for write in writes for field in change_models(write.get("changes")))
    withheld = change_models(data.get("withheld"))
    actions = ", ".join(dict.fromkeys(text_in(write, "action") for write in writes))
    decision = text_in(data, "decision")
    text = f"{actions} of {_number_of(fields)}" if writes else "nothing written"
    if withheld:
        text += f"; {_number_of(withheld)} withheld"
    if because := text_in(data, "because"):
        text += f" ({because})"
    return Entry(
        time=at,
        type="step",
        who=text_in(data, "trigger"),
        text=text,
        decision=decision,
        fields=(*fields, *withheld),
    )


def _number_of(fields: Sequence[FieldChangeModel]) -> str:
    return "1 field" if len(fields) == 1 else f"{len(fields)} fields"


def _write_entry(at: str, data: JsonObject) -> Entry:
    failure = text_in(data, "failure")
    text = f"{text_in(data, 'action')} {location_text(text_in(data, 'target'))}" + (f": {failure}" if failure else "")
    return Entry(
        time=at,
        type="write",
        who=text_in(data, "trigger"),
        text=text,
        decision=text_in(data, "decision"),
        fields=change_models(data.get("changes")),
        requests=tuple(_request(one) for one in objects_in(data.get("requests"))),
    )


def _drift_entry(at: str, data: JsonObject) -> Entry:
    paths = _texts(data.get("fields"))
    text = "deleted the object" if data.get("deleted") is True else "changed the object"
    return Entry(
        time=at,
        type="drift",
        who="another writer",
        text=text,
        fields=tuple(FieldChangeModel(path=path) for path in paths),
    )


def _request(data: JsonObject) -> RequestModel:
    status, seconds = data.get("status"), data.get("seconds")
    return RequestModel(
        method=text_in(data, "method"),
        url=text_in(data, "url"),
        status=status if isinstance(status, int) else None,
        seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
    )


def event_entry(event: EventRecord) -> Entry:
    """An event as an entry."""
    type_ = "contested" if event.reason == ConditionType.CONTESTED else "event"
    times = f" ({event.count} times)" if event.count > 1 else ""
    text = f"{event.reason}: {event.message}{times}"
    return Entry(time=event.at, type="contested" if type_ == "contested" else "event", who="setpoint", text=text)


def _heat(entries: Iterable[Entry], now: str) -> tuple[str | None, int, tuple[Heat, ...]]:
    """When the first bucket begins, the seconds of each, and the fields that drifted most."""
    drifts = [(_seconds(one.time), path) for one in entries for path in _drifted(one)]
    if not drifts:
        return None, 0, ()
    end = _seconds(now) + 1
    seconds = max(60, -(-(end - min(at for at, _ in drifts)) // _BUCKETS))
    # The last of them ends now.
    first = end - seconds * _BUCKETS
    counts = Counter((path, max(0, min(_BUCKETS - 1, (at - first) // seconds))) for at, path in drifts)
    totals = Counter(path for _, path in drifts)
    heat = (
        Heat(path=path, buckets=tuple(counts[path, bucket] for bucket in range(_BUCKETS)))
        for path, _ in totals.most_common(_MAX_HEAT_FIELDS)
    )
    return rfc3339(first), seconds, tuple(heat)


def _drifted(one: Entry) -> Sequence[str]:
    """The fields that another writer had changed: of a step that corrected them, or withheld the correction."""
    if one.type != "step" or one.decision not in _DRIFT_DECISIONS or one.fields is UNSET:
        return ()
    return list(dict.fromkeys(field.path for field in one.fields))


def _seconds(at: str) -> int:
    try:
        return int(datetime.fromisoformat(at).timestamp())
    except ValueError:
        return 0


def _texts(value: Json) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list | tuple) else []

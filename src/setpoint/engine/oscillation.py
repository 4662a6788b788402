"""Oscillation: a field that another writer keeps changing and that the engine keeps reverting.

A revert is on record before it is sent and counted once it is done, so that a killed process neither forgets one
nor counts one twice. After a few reverts the next ones back off. Everything comes in as an argument: times as RFC
3339 text, the live object as a digest of the bytes it came in.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from setpoint.core.backoff import exponential_delay
from setpoint.core.diff import FieldChange
from setpoint.core.redaction import REDACTED
from setpoint.core.values.canonical import canonical, digest
from setpoint.core.values.json_types import Json, Missing

# Up to so many reverts may be accidents; from then on another writer insists, and the oscillation is reported.
REPORTED_AFTER: Final = 3
FIRST_BACKOFF, LONGEST_BACKOFF = 60.0, 3600.0
# A field that has stayed as declared for so long does not oscillate any more.
EXPIRES_AFTER: Final = 6 * 3600.0
_MAX_VALUE_LENGTH: Final = 200
_PREFIX_LENGTH: Final = 80
_MAX_VALUES: Final = 3
# The text of a field without a value; values are JSON, in which text has quotes.
UNSET: Final = "unset"


@dataclass(frozen=True, slots=True)
class Oscillation:
    """How often the field at `path` was reverted, since when, and the values other writers gave it, newest first."""

    path: str
    foreign_values: tuple[str, ...]
    count: int
    since: str
    # The end of the last revert; before there was one, the beginning of the first.
    last: str
    # The mark of the live object that a revert was about to change; None when none is under way.
    begun: str | None = None

    @property
    def is_reported(self) -> bool:
        """Whether the oscillation is reported: it is no accident any more."""
        return self.count >= REPORTED_AFTER

    @property
    def not_before(self) -> str:
        """When the next revert may begin."""
        backoff = 0.0 if self.begun is not None else backoff_after(self.count)
        return _text(_time(self.last) + timedelta(seconds=backoff))

    def wait(self, now: str) -> float:
        """The seconds until the next revert may begin."""
        return max(0.0, _seconds(now, self.not_before))

    def expires_in(self, now: str) -> float:
        """The seconds until this is dropped."""
        since = _seconds(self.last, now)
        # A time that far ahead was written by a clock that was wrong.
        return 0.0 if since < -LONGEST_BACKOFF else max(0.0, EXPIRES_AFTER - since)

    def done(self, now: str) -> "Oscillation":
        """The oscillation once the revert that was under way is done."""
        return self if self.begun is None else replace(self, count=self.count + 1, last=now, begun=None)

    def seen(self, mark: str, now: str) -> "Oscillation":
        """The oscillation after an observation: an object that changed since a revert was begun proves it was sent."""
        return self if self.begun == mark else self.done(now)


def backoff_after(count: int) -> float:
    """The least seconds between revert number `count` and the next one."""
    if count < REPORTED_AFTER:
        return 0.0
    return exponential_delay(count - REPORTED_AFTER, FIRST_BACKOFF, LONGEST_BACKOFF)


@dataclass(frozen=True, slots=True)
class Oscillations:
    """The oscillations of one resource under one intent: an edit of the author is a new beginning for every field."""

    intent: str = ""
    fields: tuple[Oscillation, ...] = ()

    @property
    def reported(self) -> tuple[Oscillation, ...]:
        """Those that are reported."""
        return tuple(oscillation for oscillation in self.fields if oscillation.is_reported)

    def still_active(self, intent: str, mark: str, now: str) -> "Oscillations":
        """Those that are still active under this intent, now that the live object was observed."""
        if not self.fields or self.intent != intent:
            return NO_OSCILLATIONS
        return self._each(lambda one: one.seen(mark, now) if one.expires_in(now) else None)

    def waiting(self, changes: Iterable[FieldChange], now: str) -> tuple[Oscillation, ...]:
        """The oscillations of fields that are among `changes` and may not be reverted yet."""
        paths = {str(change.path) for change in changes} if self.fields else set()
        return tuple(oscillation for oscillation in self.fields if oscillation.path in paths and oscillation.wait(now))

    def begin(self, intent: str, changes: Iterable[FieldChange], mark: str, now: str) -> "Oscillations":
        """With the revert of these changes under way; where one is already, nothing changes."""
        oscillations = {oscillation.path: oscillation for oscillation in self.fields}
        for change in changes:
            if change.before == change.after == REDACTED:
                # A secret that is sent again: that it was changed cannot be observed.
                continue
            path, value = str(change.path), short_text(change.before)
            known = oscillations.get(path) or Oscillation(path, (), 0, now, now)
            if known.begun is None:
                values = dict.fromkeys((value, *known.foreign_values))
                oscillations[path] = replace(known, foreign_values=tuple(values)[:_MAX_VALUES], begun=mark)
        return Oscillations(intent, tuple(oscillations.values())) if oscillations else self

    def done(self, now: str) -> "Oscillations":
        """With every revert that was under way done."""
        return self._each(lambda one: one.done(now))

    def aborted(self) -> "Oscillations":
        """With no revert under way: one that was begun had no effect, and does not count."""
        return self._each(lambda one: replace(one, begun=None))

    def expires_in(self, now: str) -> float | None:
        """The seconds until the first of them is forgotten; None when there is none."""
        return min((oscillation.expires_in(now) for oscillation in self.fields), default=None)

    def _each(self, change: Callable[[Oscillation], Oscillation | None]) -> "Oscillations":
        changed = tuple(one for one in map(change, self.fields) if one is not None)
        return replace(self, fields=changed) if changed else NO_OSCILLATIONS

    @staticmethod
    def of(data: Json) -> "Oscillations":
        """The oscillations in a status; what cannot be read is forgotten."""
        match data:
            case {"intent": str(intent), "fields": list() | tuple() as entries}:
                fields = tuple(one for one in map(_read, entries) if one is not None)
                return Oscillations(intent, fields) if fields else NO_OSCILLATIONS
            case _:
                return NO_OSCILLATIONS

    def to_data(self) -> Json:
        """The oscillations as a status keeps them."""
        return {"intent": self.intent, "fields": [_entry(oscillation) for oscillation in self.fields]}


NO_OSCILLATIONS: Final = Oscillations()


def short_text(value: Json | Missing) -> str:
    """A value on one line: as JSON, a long one by its beginning and its digest; `unset` where there is none."""
    if isinstance(value, Missing):
        return UNSET
    text = canonical(value)
    if len(text) <= _MAX_VALUE_LENGTH:
        return text.decode()
    return f"{text.decode()[:_PREFIX_LENGTH]}… ({len(text)} bytes, SHA-256 {digest(value)[:12]}…)"


# --- Plain data ------------------------------------------------------------------------------------------------------


def _entry(oscillation: Oscillation) -> Json:
    entry: dict[str, Json] = {
        "path": oscillation.path,
        "theirs": list(oscillation.foreign_values),
        "count": oscillation.count,
        "since": oscillation.since,
        "last": oscillation.last,
    }
    return entry if oscillation.begun is None else {**entry, "begun": oscillation.begun}


def _read(entry: Json) -> Oscillation | None:
    match entry:
        case {
            "path": str(path),
            "theirs": list() | tuple() as theirs,
            "count": int(count),
            "since": str(since),
            "last": str(last),
            **rest,
        } if count >= 0 and _is_time(since) and _is_time(last):
            values = tuple(value for value in theirs if isinstance(value, str)) or (UNSET,)
            begun = rest.get("begun")
            return Oscillation(path, values, count, since, last, begun if isinstance(begun, str) else None)
        case _:
            return None


def _is_time(text: str) -> bool:
    try:
        return _time(text).utcoffset() == timedelta()
    except ValueError:
        return False


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _seconds(since: str, until: str) -> float:
    return (_time(until) - _time(since)).total_seconds()

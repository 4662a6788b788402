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

# So many put-backs are an accident each; after that somebody insists.
REPORTED_AFTER: Final = 3
FIRST_BACKOFF, LONGEST_BACKOFF = 60.0, 3600.0
# Whatever has stayed as declared for so long is not contested any more.
EXPIRES_AFTER: Final = 6 * 3600.0
_LONGEST_VALUE: Final = 200
_HEAD_OF_A_VALUE: Final = 80
_MOST_VALUES: Final = 3
_UNSET: Final = "unset"


@dataclass(frozen=True, slots=True)
class Oscillation:
    """How often the field at `path` was put back, since when, and the values that others gave it, newest first."""

    path: str
    theirs: tuple[str, ...]
    count: int
    since: str
    # The end of the last put-back; before there was one, the beginning of the first.
    last: str
    # The mark of the live object that a put-back was about to change; None when none is under way.
    begun: str | None = None

    @property
    def is_reported(self) -> bool:
        """Whether this is no accident any more."""
        return self.count >= REPORTED_AFTER

    @property
    def not_before(self) -> str:
        """When the next put-back may begin."""
        pause = 0.0 if self.begun is not None else backoff_after(self.count)
        return _text(_time(self.last) + timedelta(seconds=pause))

    def wait(self, now: str) -> float:
        """The seconds until the next put-back may begin."""
        return max(0.0, _seconds(now, self.not_before))

    def expires_in(self, now: str) -> float:
        """The seconds until this is forgotten."""
        since = _seconds(self.last, now)
        # A time that far ahead was written by a clock that was wrong.
        return 0.0 if since < -LONGEST_BACKOFF else max(0.0, EXPIRES_AFTER - since)

    def done(self, now: str) -> "Oscillation":
        """The contest once the put-back that was under way is done."""
        return self if self.begun is None else replace(self, count=self.count + 1, last=now, begun=None)

    def seen(self, mark: str, now: str) -> "Oscillation":
        """The contest after a look: an object that moved since a put-back was begun says that it was sent."""
        return self if self.begun == mark else self.done(now)


def backoff_after(count: int) -> float:
    """The least seconds between put-back number `count` and the next one."""
    if count < REPORTED_AFTER:
        return 0.0
    return exponential_delay(count - REPORTED_AFTER, FIRST_BACKOFF, LONGEST_BACKOFF)


@dataclass(frozen=True, slots=True)
class Oscillations:
    """The contests of one resource under one intent: an edit of the author is a new beginning for every field."""

    intent: str = ""
    fields: tuple[Oscillation, ...] = ()

    @property
    def reported(self) -> tuple[Oscillation, ...]:
        """Those that people should hear of."""
        return tuple(contest for contest in self.fields if contest.is_reported)

    def standing(self, intent: str, mark: str, now: str) -> "Oscillations":
        """Those that go on under this intent, now that the live object was seen."""
        if not self.fields or self.intent != intent:
            return NO_OSCILLATIONS
        return self._each(lambda one: one.seen(mark, now) if one.expires_in(now) else None)

    def waiting(self, changes: Iterable[FieldChange], now: str) -> tuple[Oscillation, ...]:
        """The contests whose field is among `changes` and may not be put back yet."""
        paths = {str(change.path) for change in changes} if self.fields else set()
        return tuple(contest for contest in self.fields if contest.path in paths and contest.wait(now))

    def next_in(self, changes: Iterable[FieldChange], now: str) -> float | None:
        """The seconds until the first of these may be put back; None when none of them waits."""
        return min((contest.wait(now) for contest in self.waiting(changes, now)), default=None)

    def begin(self, intent: str, changes: Iterable[FieldChange], mark: str, now: str) -> "Oscillations":
        """With the put-back of these changes under way; where one is already, nothing is new."""
        contests = {contest.path: contest for contest in self.fields}
        for change in changes:
            if change.before == change.after == REDACTED:
                # A secret that is sent again: nobody can have seen that it was changed.
                continue
            path, value = str(change.path), short_text(change.before)
            known = contests.get(path) or Oscillation(path, (), 0, now, now)
            if known.begun is None:
                theirs = dict.fromkeys((value, *known.theirs))
                contests[path] = replace(known, theirs=tuple(theirs)[:_MOST_VALUES], begun=mark)
        return Oscillations(intent, tuple(contests.values())) if contests else self

    def done(self, now: str) -> "Oscillations":
        """With every put-back that was under way done."""
        return self._each(lambda one: one.done(now))

    def aborted(self) -> "Oscillations":
        """With no put-back under way: whatever was came to nothing, and does not count."""
        return self._each(lambda one: replace(one, begun=None))

    def expires_in(self, now: str) -> float | None:
        """The seconds until the first of them is forgotten; None when there is none."""
        return min((contest.expires_in(now) for contest in self.fields), default=None)

    def _each(self, change: Callable[[Oscillation], Oscillation | None]) -> "Oscillations":
        changed = tuple(one for one in map(change, self.fields) if one is not None)
        return replace(self, fields=changed) if changed else NO_OSCILLATIONS

    @staticmethod
    def of(data: Json) -> "Oscillations":
        """The contests in a status; what cannot be read is forgotten."""
        match data:
            case {"intent": str(intent), "fields": list() | tuple() as entries}:
                fields = tuple(one for one in map(_read, entries) if one is not None)
                return Oscillations(intent, fields) if fields else NO_OSCILLATIONS
            case _:
                return NO_OSCILLATIONS

    def to_data(self) -> Json:
        """The contests as a status keeps them."""
        return {"intent": self.intent, "fields": [_entry(contest) for contest in self.fields]}


NO_OSCILLATIONS: Final = Oscillations()


def short_text(value: Json | Missing) -> str:
    """A value on one line: as JSON, a long one by its beginning and its digest; `unset` where there is none."""
    if isinstance(value, Missing):
        return _UNSET
    text = canonical(value)
    if len(text) <= _LONGEST_VALUE:
        return text.decode()
    return f"{text.decode()[:_HEAD_OF_A_VALUE]}… ({len(text)} bytes, SHA-256 {digest(value)[:12]}…)"


# --- Plain data ------------------------------------------------------------------------------------------------------


def _entry(contest: Oscillation) -> Json:
    entry: dict[str, Json] = {
        "path": contest.path,
        "theirs": list(contest.theirs),
        "count": contest.count,
        "since": contest.since,
        "last": contest.last,
    }
    return entry if contest.begun is None else {**entry, "begun": contest.begun}


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
            values = tuple(value for value in theirs if isinstance(value, str)) or (_UNSET,)
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

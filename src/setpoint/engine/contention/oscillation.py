"""Oscillation: a field that another writer keeps changing and that the engine keeps reverting.

A revert is on record before it is sent and counted once it is done, so that a killed process neither forgets one
nor counts one twice. After a few reverts the next ones back off. Everything comes in as an argument: times as RFC
3339 text, the live object as a digest of the bytes it came in.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from setpoint.core.backoff import exponential_delay
from setpoint.core.diff import FieldChange
from setpoint.core.redaction import REDACTED
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path
from setpoint.core.values.shortening import UNSET_TEXT, short_value
from setpoint.errors import ManifestInvalid

# Up to so many reverts may be accidents; from then on another writer insists, and the oscillation is reported.
REPORTED_AFTER: Final = 3
FIRST_BACKOFF, LONGEST_BACKOFF = 60.0, 3600.0
# A field that has stayed as declared for so long does not oscillate any more.
EXPIRES_AFTER: Final = 6 * 3600.0
_MAX_VALUES: Final = 3
# So many fields have an oscillation of their own; more share one, at their common ancestor.
_MAX_FIELDS: Final = 16
_MAX_PATH_BYTES: Final = 200


@dataclass(frozen=True, slots=True)
class Oscillation:
    """How often the field at `path` was reverted, since when, and the values other writers gave it, newest first.

    With `is_subtree`, it stands for all fields at or below `path` that have none of their own, without their values.
    """

    path: str
    foreign_values: tuple[str, ...]
    count: int
    since: str
    # The end of the last revert; before there was one, the beginning of the first.
    last: str
    # The mark of the live object that a revert was about to change; None when none is under way.
    begun: str | None = None
    is_subtree: bool = False

    @property
    def is_reported(self) -> bool:
        """Whether the oscillation is reported: it is no accident any more."""
        return self.count >= REPORTED_AFTER

    @property
    def not_before(self) -> str:
        """When the next revert may begin."""
        backoff = 0.0 if self.begun is not None else backoff_after(self.count)
        return _text(_time(self.last) + timedelta(seconds=backoff))

    def covers(self, path: Path) -> bool:
        """Whether this counts reverts of the field at `path`; one of its own comes first."""
        return _parsed(self.path).covers(path) if self.is_subtree else self.path == str(path)

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

    def at(self, path: Path) -> Oscillation | None:
        """The oscillation that counts reverts of the field at `path`, if there is one."""
        covering = [one for one in self.fields if one.covers(path)]
        return min(covering, key=lambda one: one.is_subtree, default=None)

    def waiting(self, changes: Iterable[FieldChange], now: str) -> tuple[tuple[str, Oscillation], ...]:
        """The paths of `changes` that may not be reverted yet, each with its oscillation."""
        found = ((str(change.path), self.at(change.path)) for change in changes) if self.fields else ()
        return tuple((path, one) for path, one in found if one is not None and one.wait(now))

    def begin(self, intent: str, changes: Iterable[FieldChange], mark: str, now: str) -> "Oscillations":
        """With the revert of these changes under way; where one is already, nothing changes."""
        # Of a secret that is sent again it cannot be observed that it was changed.
        observed = [change for change in changes if not change.before == change.after == REDACTED]
        known = self._with_new([change.path for change in observed], now)
        begun = {(one.path, one.is_subtree): one for one in known}
        for change in observed:
            one = Oscillations(intent, known).at(change.path)
            assert one is not None
            if one.begun is None:
                newer = replace(one, foreign_values=_newer_values(one, change.before), begun=mark)
                begun[one.path, one.is_subtree] = newer
        return Oscillations(intent, tuple(begun.values())) if begun else self

    def _with_new(self, paths: Sequence[Path], now: str) -> tuple[Oscillation, ...]:
        """With an oscillation for every path: one of its own, or, where they are many, one for all that are new."""
        new = [path for path in paths if self.at(path) is None]
        if not new:
            return self.fields
        is_short = all(len(str(path).encode()) <= _MAX_PATH_BYTES for path in new)
        if is_short and len(self.fields) + len(new) <= _MAX_FIELDS:
            return (*self.fields, *(Oscillation(str(path), (), 0, now, now) for path in new))
        shared = next((one for one in self.fields if one.is_subtree), Oscillation("", (), 0, now, now, is_subtree=True))
        own = [one for one in self.fields if not one.is_subtree]
        within = new if shared not in self.fields else [_parsed(shared.path), *new]
        return (*own, replace(shared, path=_common_ancestor(within)))

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
                fields = _bounded([one for one in map(_read, entries) if one is not None])
                return Oscillations(intent, fields) if fields else NO_OSCILLATIONS
            case _:
                return NO_OSCILLATIONS

    def to_data(self) -> Json:
        """The oscillations as a status keeps them."""
        return {"intent": self.intent, "fields": [_entry(oscillation) for oscillation in self.fields]}


# A path is compared with every field of a plan.
_parsed: Final = lru_cache(maxsize=64)(Path.parse)

NO_OSCILLATIONS: Final = Oscillations()


def _newer_values(known: Oscillation, value: Json | Missing) -> tuple[str, ...]:
    if known.is_subtree:
        return ()
    return tuple(dict.fromkeys((short_value(value), *known.foreign_values)))[:_MAX_VALUES]


def _common_ancestor(paths: Sequence[Path]) -> str:
    """The longest path that covers all of them and is short enough to be kept."""
    found = paths[0]
    while not all(found.covers(path) for path in paths) or len(str(found).encode()) > _MAX_PATH_BYTES:
        found = found.parent
    return str(found)


# --- Plain data ------------------------------------------------------------------------------------------------------


def _bounded(fields: Sequence[Oscillation]) -> tuple[Oscillation, ...]:
    """Those that are kept: of more than there is room for, as an earlier version wrote them, the most reverted."""
    own = [one for one in fields if not one.is_subtree and len(one.path.encode()) <= _MAX_PATH_BYTES]
    most = own if len(own) <= _MAX_FIELDS else sorted(own, key=lambda one: -one.count)[:_MAX_FIELDS]
    return (*most, *[one for one in fields if one.is_subtree][:1])


def _entry(oscillation: Oscillation) -> Json:
    entry: dict[str, Json] = {
        "path": oscillation.path,
        "theirs": list(oscillation.foreign_values),
        "count": oscillation.count,
        "since": oscillation.since,
        "last": oscillation.last,
    }
    if oscillation.is_subtree:
        entry["below"] = True
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
            is_subtree = rest.get("below") is True and _is_path(path)
            values = () if is_subtree else tuple(value for value in theirs if isinstance(value, str)) or (UNSET_TEXT,)
            begun = rest.get("begun")
            return Oscillation(path, values, count, since, last, begun if isinstance(begun, str) else None, is_subtree)
        case _:
            return None


def _is_path(text: str) -> bool:
    try:
        _parsed(text)
    except ManifestInvalid:
        return False
    return True


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

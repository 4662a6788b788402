"""Contested intents: writers of one spec that disagree, each of which puts its own values back again and again.

An intent that was applied before, and is to be applied again soon after another one, is a return. A few returns are an
author who changes the mind. From then on it is a contest, sooner where the returns are by different field managers:
it is reported, and each further return backs off as reverts of drift do. An intent that is new is applied at once.
Everything comes in as an argument: times as RFC 3339 text, intents by their digests.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Final

from setpoint.core.backoff import exponential_delay
from setpoint.core.diff import FieldChange
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.json_types import Json
from setpoint.core.values.shortening import short_value
from setpoint.engine.contention.oscillation import EXPIRES_AFTER, FIRST_BACKOFF, LONGEST_BACKOFF

# So many returns are a contest: by different field managers, or by writers that cannot be told apart.
CONTESTED_AFTER, CONTESTED_BY_ONE_AFTER = 3, 12
# Returns with more time between them are changes of mind.
CLOSE_SECONDS: Final = 600.0
_MAX_SIDES: Final = 4
_MAX_FIELDS: Final = 4
_MAX_PATH_BYTES: Final = 200
_MAX_MANAGER_BYTES: Final = 128
_DIGEST_LENGTH: Final = 16
_UNKNOWN_MANAGER: Final = "one writer"


@dataclass(frozen=True, slots=True)
class IntentSide:
    """One of the intents: its digest, the field manager that wrote it, and the values of the contested fields."""

    intent: str
    manager: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IntentFlips:
    """The intents of one resource that were applied last, the newest at the end, and how many of them were returns."""

    sides: tuple[IntentSide, ...] = ()
    count: int = 0
    since: str = ""
    last: str = ""

    @property
    def is_contested(self) -> bool:
        """Whether the returns are no changes of mind any more."""
        # Mostly there are fewer returns than any limit.
        return self.count >= CONTESTED_AFTER and self.count >= self._limit

    @property
    def _limit(self) -> int:
        managers = {side.manager for side in self.sides if side.manager}
        return CONTESTED_AFTER if len(managers) > 1 else CONTESTED_BY_ONE_AFTER

    @property
    def not_before(self) -> str:
        """When the next return may be applied."""
        backoff = exponential_delay(self.count - self._limit, FIRST_BACKOFF, LONGEST_BACKOFF)
        return (datetime.fromisoformat(self.last) + timedelta(seconds=backoff)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def is_return(self, intent: str) -> bool:
        """Whether this intent was applied before the newest one."""
        key = intent[:_DIGEST_LENGTH]
        return bool(self.sides) and key != self.sides[-1].intent and any(key == side.intent for side in self.sides)

    def held_until(self, intent: str, now: str) -> str:
        """The time before which a contested intent is not applied; empty for one that may be applied now."""
        is_held = self.is_contested and self.is_return(intent) and _seconds(now, self.not_before) > 0
        return self.not_before if is_held else ""

    def expires_in(self, now: str) -> float:
        """The seconds until this is dropped."""
        since = _seconds(self.last, now)
        longest = EXPIRES_AFTER if self.is_contested else CLOSE_SECONDS
        # A time that far ahead was written by a clock that was wrong.
        return 0.0 if since < -LONGEST_BACKOFF else max(0.0, longest - since)

    def still_active(self, now: str) -> "IntentFlips":
        """Itself, or none when it is too long ago."""
        return self if self.sides and self.expires_in(now) else NO_FLIPS

    def applied(self, intent: str, changes: Iterable[FieldChange], now: str, *, manager: str = "") -> "IntentFlips":
        """After this intent was applied by these changes; `manager` is only asked for at a return."""
        key, flips = intent[:_DIGEST_LENGTH], self.still_active(now)
        if flips.sides and flips.sides[-1].intent == key:
            return flips
        is_return = flips.is_return(intent)
        # Of a new intent no field is shown.
        shown = _shown(changes) if is_return else ()
        values = {str(one.path): short_value(one.after) for one in shown}
        side = IntentSide(key, manager.encode()[:_MAX_MANAGER_BYTES].decode(errors="ignore"), values)
        # Only of the last two it is told what they disagree about.
        others = [replace(one, values={}) for one in flips.sides if one.intent != key]
        if is_return:
            before = {str(one.path): short_value(one.before) for one in shown}
            others[-1] = replace(others[-1], values=before)
        sides = (*others, side)[-_MAX_SIDES:]
        return IntentFlips(sides, flips.count + is_return, flips.since or now, now)

    def message(self) -> str:
        """What is contested, and what to do about it."""
        ours, theirs = self.sides[-1], self.sides[-2]
        fields = ", ".join(
            f"{path} ({theirs.values.get(path, '')} by {_named(theirs)}, {value} by {_named(ours)})"
            for path, value in ours.values.items()
        )
        return (
            f"the spec was changed back {self.count} times since {self.since}: {fields or 'fields of the spec'}. Find "
            "out which two writers disagree, and let one of them own the field. The live object follows less and less "
            "often now, once an hour in the end"
        )

    @staticmethod
    def of(data: Json) -> "IntentFlips":
        """The flips in a status; what cannot be read is forgotten."""
        match data:
            case {
                "sides": list() | tuple() as sides,
                "count": int(count),
                "since": str(since),
                "last": str(last),
            } if _is_time(since) and _is_time(last):
                found = tuple(side for side in map(_side, sides) if side is not None)[-_MAX_SIDES:]
                is_whole = len(found) > 1 or (found and not count)
                return IntentFlips(found, max(count, 0), since, last) if is_whole else NO_FLIPS
            case _:
                return NO_FLIPS

    def to_data(self) -> Json:
        """The flips as a status keeps them."""
        sides = [_side_data(side) for side in self.sides]
        return {"sides": sides, "count": self.count, "since": self.since, "last": self.last}


NO_FLIPS: Final = IntentFlips()


def _shown(changes: Iterable[FieldChange]) -> Sequence[FieldChange]:
    """The first changes, of fields that can be named in a status."""
    return [one for one in changes if len(str(one.path).encode()) <= _MAX_PATH_BYTES][:_MAX_FIELDS]


def _named(side: IntentSide) -> str:
    return side.manager or _UNKNOWN_MANAGER


def _side_data(side: IntentSide) -> Json:
    data: dict[str, Json] = {"intent": side.intent}
    if side.manager:
        data["manager"] = side.manager
    return {**data, "values": dict(side.values)} if side.values else data


def _side(data: Json) -> IntentSide | None:
    match data:
        case {"intent": str(intent), **rest}:
            values, manager = rest.get("values"), rest.get("manager")
            pairs = values.items() if isinstance(values, Mapping) else ()
            kept = {path: text for path, text in pairs if isinstance(text, str)}
            return IntentSide(intent, manager if isinstance(manager, str) else "", kept)
        case _:
            return None


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).utcoffset() == timedelta()
    except ValueError:
        return False


def _seconds(since: str, until: str) -> float:
    return (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds()

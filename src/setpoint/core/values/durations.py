"""Durations in Go's syntax: `1h30m`, `90s`, `500ms`; a plain number is seconds. And times as text."""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from setpoint.core.values.json_types import Json
from setpoint.errors import ManifestInvalid

_NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # the micro sign
    "μs": 10**3,  # the Greek letter
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART: Final = re.compile(rf"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)({'|'.join(_NANOSECONDS)})")
# In RE2 as well.
DURATION_PATTERN: Final = rf"(?:{_PART.pattern})+"
DURATION_ADVICE: Final = "1h30m, 90s, 500ms or a number of seconds"
_WHOLE: Final = re.compile(DURATION_PATTERN)
# The longest duration that Go can represent.
MAX_SECONDS: Final = 2**63 / 10**9


# A number on a command line, without a unit.
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def parse_duration_text(text: str) -> float:
    """The seconds of a duration above 0 in text, where a number without a unit is seconds: `30`, `1.5`."""
    if _NUMBER.fullmatch(text) and 0 < float(text) < MAX_SECONDS:
        return float(text)
    return parse_duration(text)


def parse_duration(duration: Json) -> float:
    """The seconds of a duration above 0; ManifestInvalid for anything else."""
    seconds: int | float = 0
    if isinstance(duration, str) and _WHOLE.fullmatch(duration):
        seconds = sum(float(count) * _NANOSECONDS[unit] for count, unit in _PART.findall(duration)) / 10**9
    elif isinstance(duration, int | float) and not isinstance(duration, bool):
        seconds = duration
    if not 0 < seconds < MAX_SECONDS:
        raise ManifestInvalid(f"{duration!r} is no duration above 0: write {DURATION_ADVICE}")
    return float(seconds)


@lru_cache(maxsize=1)
def rfc3339(seconds: int) -> str:
    """The time so many seconds after 1970, in UTC. A step asks for it many times within a second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

"""Versions of `setpoint` as somebody types them and as pip takes them (PEP 440)."""

import re
from typing import Final

_VERSION: Final = re.compile(
    r"(?P<release>\d+(?:\.\d+)*)(?P<rest>(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?)"
    r"(?P<local>\+[a-z0-9]+(?:\.[a-z0-9]+)*)?"
)


def is_version(word: str) -> bool:
    """Whether a word is a version, and not the name of a folder."""
    return _VERSION.fullmatch(word) is not None


def means(asked: str, found: str) -> bool:
    """Whether `found` is what pip takes for `asked`: 0.2 is 0.2.0, and 0.2+ours is a build of 0.2."""
    one, other = _VERSION.fullmatch(asked), _VERSION.fullmatch(found)
    if one is None or other is None:
        return False
    same_build = one["local"] in (None, other["local"])
    return same_build and (_release(one), one["rest"]) == (_release(other), other["rest"])


def _release(version: "re.Match[str]") -> list[int]:
    numbers = [int(one) for one in version["release"].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers

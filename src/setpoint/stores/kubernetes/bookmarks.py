"""The bookmark of a watch over several kinds: one resource version for each, in one text.

The API server orders events only within one kind, so a single number is not enough.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from setpoint.core.unstructured import GroupKind
from setpoint.engine.resource import Revision
from setpoint.errors import RevisionExpired

_MAX_DIGITS: Final = 20
# The bookmark of a watch of no kind.
_NO_KINDS: Final = Revision("0")


def to_revision(positions: Mapping[GroupKind, str]) -> Revision:
    """`SQLInstance.sql.cnrm.cloud.google.com=17,Secret.=19`: the kinds in order, each with its resource version."""
    if not positions:
        return _NO_KINDS
    return Revision(",".join(f"{kind}.{group}={at}" for (group, kind), at in sorted(positions.items())))


def from_revision(since: Revision, kinds: Iterable[GroupKind]) -> dict[GroupKind, str]:
    """The positions of these kinds; a bare number, such as an object's own revision, is the position of each.

    RevisionExpired for a text that lacks one of them, or is no bookmark.
    """
    if _is_version(since):
        return dict.fromkeys(kinds, since)
    found: dict[GroupKind, str] = {}
    for part in since.split(","):
        name, equals, at = part.partition("=")
        kind, dot, group = name.partition(".")
        if not (equals and dot and kind and _is_version(at)):
            raise _unknown(since)
        found[group, kind] = at
    wanted = tuple(kinds)
    if any(kind not in found for kind in wanted):
        raise _unknown(since)
    return {kind: found[kind] for kind in wanted}


def _is_version(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS


def _unknown(since: Revision) -> RevisionExpired:
    return RevisionExpired(f"{since!r} is no revision of these kinds: list again, then watch from there")

"""Where a watch of several kinds stands: a resource version for each, in one text.

The cluster promises order within one kind only, so a single number will not do.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from setpoint.engine.resource import Revision
from setpoint.errors import RevisionExpired

KindName = tuple[str, str]
_MAX_DIGITS: Final = 20
# Where a watch of no kind at all stands.
_NOWHERE: Final = Revision("0")


def to_revision(positions: Mapping[KindName, str]) -> Revision:
    """`SQLInstance.sql.cnrm.cloud.google.com=17,Secret.=19`: the kinds in order, each with its resource version."""
    if not positions:
        return _NOWHERE
    return Revision(",".join(f"{kind}.{group}={at}" for (group, kind), at in sorted(positions.items())))


def from_revision(since: Revision, kinds: Iterable[KindName]) -> dict[KindName, str]:
    """The positions of these kinds; a bare number, such as an object's own revision, is the position of each.

    RevisionExpired for a text that lacks one of them, or that no cluster gave out.
    """
    if _is_version(since):
        return dict.fromkeys(kinds, since)
    found: dict[KindName, str] = {}
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

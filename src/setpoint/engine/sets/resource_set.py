"""A set of resources that are declared together: its record, its declaration, and the store that keeps both.

Which set a resource belongs to is on record in the resource itself, as an annotation that no author can write: a
declaration and its membership are one write.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol, runtime_checkable

import msgspec

from setpoint.core.schema.annotations import SET, SOURCE
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import ManifestInvalid

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
# Of a commit or a digest, in tables and messages.
_SHORT: Final = 12


class SetState(StrEnum):
    """How far the last good version of a set is declared."""

    # All of it is declared, and what left it is gone, or is kept.
    CURRENT = "current"
    # What left it is being deleted. It shows by the resources, and is not on record.
    PRUNING = "pruning"
    # A resource of it is still being deleted from an earlier version: it is declared once that is gone.
    WAITING = "waiting"
    # The newest version cannot be declared; the one before stands.
    FAILED = "failed"


class SetRecord(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What is on record about a set: the last good version, and why a newer one was refused."""

    name: str
    # Where its manifests are: a folder, a repository, or files of a command.
    source: str = ""
    # The commit, or the digest of the files.
    revision: str = ""
    declared_at: str = ""
    count: int = 0
    state: SetState = SetState.CURRENT
    error: str = ""
    failed_revision: str = ""
    failed_at: str = ""


class SetMember(msgspec.Struct, frozen=True):
    """A manifest of a set, and where it is: revision and file. `seen` is the set that the resource was in before."""

    manifest: JsonObject
    set_name: str
    source: str
    seen: str = ""


class SetDeclaration(msgspec.Struct, frozen=True):
    """The manifests of sets, the resources that left them, and the records: all in one commit."""

    members: tuple[SetMember, ...]
    # Each with the set that it leaves: those that are to be pruned, and those that stay and belong to no set then.
    leaving: tuple[tuple[ResourceRef, str], ...]
    released: tuple[tuple[ResourceRef, str], ...]
    records: tuple[SetRecord, ...]


@runtime_checkable
class SetStore(Protocol):
    """A store that keeps sets."""

    async def declare(self, declaration: SetDeclaration) -> tuple[Resource, ...]:
        """The resources of the members, in order, once all of it is committed: all, or nothing.

        Each member is applied as `apply` does. A member whose manifest says nothing new keeps the revision that it was
        declared at. WriteConflict when a resource has come into another set than the one that was seen.
        """
        ...

    async def prune(self, ref: ResourceRef, set_name: str) -> Resource | None:
        """Deletes a resource as `delete` does, if it is still to be pruned from this set. None when it is gone."""
        ...

    async def keep_set(self, record: SetRecord) -> None:
        """Replaces the record of a set; one that says nothing new is not written."""
        ...

    async def sets(self) -> tuple[SetRecord, ...]:
        """The records of all sets, sorted by name."""
        ...


def set_of(annotations: Mapping[str, str]) -> str:
    """The set that a resource belongs to; empty for none."""
    return annotations.get(SET, "")


def sets_as_they_are(records: Sequence[SetRecord], resources: Iterable[Resource]) -> tuple[SetRecord, ...]:
    """The records with the number of members that there are, and whether there is something left to prune."""
    counts, leaving = Counter[str](), set[str]()
    for one in resources:
        if is_leaving(one.annotations):
            leaving.add(set_of(one.annotations))
        else:
            counts[set_of(one.annotations)] += 1
    found = (msgspec.structs.replace(one, count=counts[one.name]) for one in records)
    return tuple(
        msgspec.structs.replace(one, state=SetState.PRUNING)
        if one.name in leaving and one.state is SetState.CURRENT
        else one
        for one in found
    )


def is_leaving(annotations: Mapping[str, str]) -> bool:
    """Whether a resource is no longer declared by its set, and is to be pruned: then no source of it is on record."""
    return SET in annotations and SOURCE not in annotations


def source_of(annotations: Mapping[str, str]) -> str:
    """Where a resource was declared as it is: revision and file; empty outside of sets."""
    return annotations.get(SOURCE, "")


def source_text(revision: str, path: str) -> str:
    """A file of a revision. Of a commit, it is what `git show` takes."""
    return f"{revision}:{path}" if path else revision


def revision_of(source: str) -> str:
    """The revision in a source text."""
    start = len("sha256:") if source.startswith("sha256:") else 0
    return source[:start] + source[start:].partition(":")[0]


def file_of(source: str) -> str:
    """The file in a source text."""
    return source[len(revision_of(source)) :].removeprefix(":")


def short_revision(revision: str) -> str:
    """The beginning of a commit or a digest, which tells it from others."""
    start = len("sha256:") if revision.startswith("sha256:") else 0
    return revision[: start + _SHORT]


def short_source(source: str) -> str:
    """A source text with the beginning of its revision."""
    revision = revision_of(source)
    return short_revision(revision) + source[len(revision) :]


def require_set_name(name: str) -> str:
    """The name of a set; ManifestInvalid for one that is none."""
    if not _NAME.fullmatch(name):
        raise ManifestInvalid(
            f'a set cannot be called {name!r}: write letters, digits, "-", "_" and ".", at most 63, with a letter or '
            "digit at both ends"
        )
    return name

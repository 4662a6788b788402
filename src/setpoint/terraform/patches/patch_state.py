"""What is kept of a patch between calls: private state, notes of writes that may not be in the state, planned patches.

A note says what was there before a patch, and is on disk before the patch is written. It goes once a read shows that
the state has the same. Only its owner can read it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path as Directory
from typing import TYPE_CHECKING

import msgspec

from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.file_creation import create_file
from setpoint.terraform.cty.values import AttributeValues, CtyValue
from setpoint.terraform.resources.object_state import PrivateState

if TYPE_CHECKING:
    from setpoint.objects.patch import PatchSession
    from setpoint.objects.patch_record import PatchRecord


class PatchPrivateState(PrivateState, frozen=True, omit_defaults=True):
    """The private state of a patch: no values, which are in the attribute `before`."""

    id: str = ""
    uid: str = ""
    marks: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)


def read_patch_private(private: bytes) -> PatchPrivateState:
    """The state that `to_bytes` wrote; an empty one when the bytes cannot be decoded."""
    try:
        return msgspec.json.decode(private, type=PatchPrivateState) if private else PatchPrivateState()
    except msgspec.DecodeError:
        return PatchPrivateState()


def record_of(values: AttributeValues, private: PatchPrivateState) -> "PatchRecord":
    """The record of a patch, from its attribute `before` and its private state."""
    from setpoint.objects.patch_record import PatchRecord

    before = values.get("before")
    values_before = before if isinstance(before, Mapping) else {}
    texts = {path: one if isinstance(one, str) else None for path, one in values_before.items()}
    return PatchRecord.of(private.uid, texts, private.marks)


def private_of(id_: str, record: "PatchRecord") -> PatchPrivateState:
    """The private state of a patch with this record."""
    return PatchPrivateState(id=id_, uid=record.uid, marks=record.marks())


def fields_text(of: Json, paths: Sequence[Path]) -> dict[str, CtyValue]:
    """The attribute `projection`: the values at these paths, as text."""
    from setpoint.objects.object_fields import fields_at

    return dict(fields_at(of, sorted(str(path) for path in paths)))


# --- Notes -----------------------------------------------------------------------------------------------------------


class _Note(msgspec.Struct, frozen=True):
    uid: str
    values: dict[str, str | None]
    marks: dict[str, tuple[str, str]]


class PatchNotes:
    """The records of patches that were written, or were about to be: of one working directory of Terraform."""

    def __init__(self, directory: Directory | None, working_directory: str) -> None:
        self._directory = directory
        self._working_directory = working_directory

    def write(self, place: str, id_: str, record: "PatchRecord") -> None:
        """Notes a record on disk, for later processes."""
        if (folder := self._folder(place)) is None:
            return
        # Without a home directory, or with a read-only one, only the state knows of it.
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            beside = folder / f".{id_}.{os.getpid()}"
            beside.unlink(missing_ok=True)
            create_file(beside, [msgspec.json.encode(_Note(record.uid, record.values(), record.marks()))])
            beside.replace(folder / id_)

    def read(self, place: str, id_: str) -> "PatchRecord | None":
        """The noted record of one patch."""
        from setpoint.objects.patch_record import PatchRecord

        if (folder := self._folder(place)) is not None:
            with suppress(OSError, msgspec.DecodeError):
                note = msgspec.json.decode((folder / id_).read_bytes(), type=_Note)
                return PatchRecord.of(note.uid, note.values, note.marks)
        return None

    def all(self, place: str) -> "Iterator[tuple[str, PatchRecord]]":
        """The noted records of all patches of one object, by ID."""
        folder = self._folder(place)
        names = sorted(one.name for one in folder.iterdir()) if folder is not None and folder.is_dir() else []
        for id_ in (name for name in names if not name.startswith(".")):
            if (record := self.read(place, id_)) is not None:
                yield id_, record

    def forget(self, place: str, id_: str) -> None:
        """The state has the record, or there is none."""
        if (folder := self._folder(place)) is not None:
            with suppress(OSError):
                (folder / id_).unlink(missing_ok=True)
                # Of a process that was killed while it wrote the note.
                for unfinished in folder.glob(f".{id_}.*"):
                    unfinished.unlink(missing_ok=True)
                folder.rmdir()

    def _folder(self, place: str) -> Directory | None:
        return (
            None if self._directory is None else self._directory / "patches" / digest([self._working_directory, place])
        )


async def place_of(session: "PatchSession") -> str:
    """The object of a patch, in which cluster it is included."""
    return f"{session.connection.server} {await session.location()}"


# --- Patches of one plan ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _PlannedPatch:
    id: str
    config: str
    paths: frozenset[Path]


@dataclass(slots=True)
class PlannedPatches:
    """The patches that this process has read, planned and created: two of one plan may not own the same field."""

    read_ids: set[str] = field(default_factory=set)
    created_ids: set[str] = field(default_factory=set)
    _planned: dict[str, list[_PlannedPatch]] = field(default_factory=dict)

    def add(self, place: str, id_: str, config: str, paths: Sequence[Path]) -> list[Path]:
        """Adds a planned patch; the fields that another planned one has already.

        Terraform plans a replacement twice: the same configuration, or ID, is the same patch.
        """
        one = _PlannedPatch(id_, config, frozenset(paths))
        here = self._planned.setdefault(place, [])
        others = [other for other in here if other.config != config and (not id_ or other.id != id_)]
        here.append(one)
        return [path for path in paths if any(_overlaps(path, other.paths) for other in others)]

    def may_be_replaced(self, id_: str) -> bool:
        """Whether a patch of this state may be the one that is replaced: it was read, and is not planned to stay."""
        planned = {one.id for every in self._planned.values() for one in every}
        return id_ in self.read_ids and id_ not in planned


def _overlaps(path: Path, others: frozenset[Path]) -> bool:
    from setpoint.objects.patch_record import is_key

    return not is_key(path) and any(one.covers(path) or path.covers(one) for one in others)

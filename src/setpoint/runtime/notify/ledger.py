"""What receivers were told: on record, so that a process that starts anew neither repeats nor forgets a message."""

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable
from uuid import uuid4

import orjson

from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import Json
from setpoint.engine.resource import ResourceRef
from setpoint.errors import StoreError
from setpoint.file_creation import create_file
from setpoint.runtime.notify.messages import Incident

SUFFIX: Final = ".notified"
_VERSION: Final = 1


class LedgerStorage(Protocol):
    """Keeps the texts of a ledger: one, or one for each shard."""

    async def read(self, part: int) -> bytes | None:
        """The text of a part; None when there is none yet. StoreError when it cannot be read."""
        ...

    async def write(self, part: int, content: bytes) -> None:
        """Replaces the text of a part, as a whole or not at all. StoreError when that is not possible."""
        ...


@runtime_checkable
class LedgerStore(Protocol):
    """A store that keeps ledgers as well: those of several processes, which have no file in common."""

    @property
    def ledgers(self) -> LedgerStorage:
        """Where they are kept."""
        ...


class Ledger:
    """The open incidents that each receiver was told of, in parts: those of the shards that this process holds."""

    def __init__(self, storage: LedgerStorage | None, part_of: Callable[[ResourceRef], int]) -> None:
        self._storage, self._part_of = storage, part_of
        # By part, and by receiver.
        self._parts: dict[int, dict[str, dict[ResourceRef, Incident]]] = {}
        # One write at a time: the newest text is the last.
        self._writing = asyncio.Lock()

    async def hold(self, parts: Collection[int]) -> None:
        """Reads the parts that are new, and forgets those of other processes; StoreError for a damaged one."""
        for part in [one for one in self._parts if one not in parts]:
            del self._parts[part]
        for part in [one for one in parts if one not in self._parts]:
            content = None if self._storage is None else await self._storage.read(part)
            self._parts[part] = {} if content is None else self._decoded(content)

    def _decoded(self, content: bytes) -> dict[str, dict[ResourceRef, Incident]]:
        try:
            document: Any = orjson.loads(content)
            if document["version"] != _VERSION:
                raise ValueError(f"its version is {document['version']!r}")
            found = {name: list(map(Incident.from_data, entries)) for name, entries in document["receivers"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StoreError(
                f"the record of sent notifications is damaged ({type(error).__name__}: {error}): remove "
                f"{self._storage}, and receivers are told of every problem again"
            ) from error
        return {name: {one.ref: one for one in entries} for name, entries in found.items()}

    def is_held(self, ref: ResourceRef) -> bool:
        """Whether the part of a resource is read."""
        return self._part_of(ref) in self._parts

    def told(self, receiver: str, ref: ResourceRef) -> Incident | None:
        """The incident of a resource that a receiver knows as open."""
        return self._parts.get(self._part_of(ref), {}).get(receiver, {}).get(ref)

    def open_of(self, receiver: str) -> list[ResourceRef]:
        """The resources of which a receiver knows an open incident."""
        return [ref for part in self._parts.values() for ref in part.get(receiver, ())]

    async def raised(self, receiver: str, incident: Incident) -> None:
        """A receiver was told that an incident began."""
        self._of(receiver, incident.ref)[incident.ref] = incident
        await self._save(self._part_of(incident.ref))

    async def resolved(self, receiver: str, incident: Incident) -> None:
        """A receiver was told that an incident is over."""
        self._of(receiver, incident.ref).pop(incident.ref, None)
        await self._save(self._part_of(incident.ref))

    def _of(self, receiver: str, ref: ResourceRef) -> dict[ResourceRef, Incident]:
        return self._parts.setdefault(self._part_of(ref), {}).setdefault(receiver, {})

    async def _save(self, part: int) -> None:
        if self._storage is None:
            return
        async with self._writing:
            receivers: dict[str, Json] = {
                name: [one.to_data() for one in incidents.values()]
                for name, incidents in self._parts.get(part, {}).items()
                if incidents
            }
            await self._storage.write(part, canonical({"version": _VERSION, "receivers": receivers}))


class FileStorage:
    """A ledger in a file beside that of the store, which only its owner can read."""

    def __init__(self, store: Path) -> None:
        self._path = store.with_name(f"{store.name}{SUFFIX}")

    def __str__(self) -> str:
        return str(self._path)

    async def read(self, part: int) -> bytes | None:  # as in the protocol
        """See LedgerStorage."""
        try:
            return await asyncio.to_thread(self._path.read_bytes)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{self._path} cannot be read: {error.strerror}") from error

    async def write(self, part: int, content: bytes) -> None:  # as in the protocol
        """See LedgerStorage."""
        await asyncio.to_thread(self._replace, content)

    def _replace(self, content: bytes) -> None:
        fresh = self._path.with_name(f"{self._path.name}.{uuid4().hex}")
        try:
            create_file(fresh, [content])
            fresh.replace(self._path)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise StoreError(f"{self._path} cannot be written: {error.strerror}") from error

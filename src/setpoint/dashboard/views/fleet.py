"""The rows of all resources, kept up to date by one watch of the store; and what changed since a revision.

A stream keeps nothing but the number of the last change that it has sent: however slow its reader is, it costs no
memory, and gets the newest state of what changed meanwhile.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, Protocol

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.access.viewer import Scope
from setpoint.dashboard.api.encoding import encode
from setpoint.dashboard.api.models import Row
from setpoint.dashboard.views.rows import id_of, row_of, sort_key
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import Dependency
from setpoint.engine.ports import ResourceChange, ResourceChangeType
from setpoint.engine.references import dependencies_of, is_ready, may_have_dependencies
from setpoint.engine.requeue import error_backoff
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import RevisionExpired, StoreError, UserError

_log: Final = logging.getLogger(__name__)
# The event loop gets its turn after so many rows.
_ROWS_BEFORE_YIELD: Final = 200
# So many deletions are kept for streams that resume; an older stream loads everything anew.
_MAX_DELETIONS: Final = 10_000
_WORKS_AFTER_SECONDS: Final = 5.0
_NEXT_STEP: Final = b'"nextStep":'


@dataclass(frozen=True, slots=True)
class EncodedRow:
    """A row and its JSON: many streams send the same bytes. And what the resource depends on, and its owner."""

    row: Row
    json: bytes
    needs: tuple[Dependency, ...] = ()
    owner: ResourceRef | None = None
    # Whether what depends on it may proceed.
    is_ready: bool = True

    def json_with(self, next_step: str | None) -> bytes:
        """Its JSON with the time that a process says for the next step; None leaves the one on record."""
        if next_step is None:
            return self.json
        # The last member is the time on record, or null.
        return self.json[: self.json.rindex(_NEXT_STEP)] + _NEXT_STEP + encode(next_step) + b"}"


@dataclass(frozen=True, slots=True)
class FleetChanges:
    """What changed between two revisions: the newest rows, and the resources that are gone."""

    number: int
    changed: Mapping[ResourceRef, EncodedRow]
    deleted: Sequence[ResourceRef]


class FleetRows:
    """The rows by resource, in memory, and the order of their changes. Numbers of changes only grow."""

    def __init__(self) -> None:
        # Tells the numbers of this process from those of another.
        self._epoch = secrets.token_hex(4)
        self._rows: dict[ResourceRef, EncodedRow] = {}
        # The last change of each resource, the oldest first; and of those that are gone.
        self._numbers: dict[ResourceRef, int] = {}
        self._deletions: dict[ResourceRef, int] = {}
        self._order: list[ResourceRef] | None = None
        # How many resources each kind has in each namespace.
        self.scopes: Counter[Scope] = Counter()
        # No change up to this number is forgotten before.
        self._forgotten = 0
        self.number = 0
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, ref: object) -> bool:
        return ref in self._rows

    def __iter__(self) -> Iterator[ResourceRef]:
        return iter(self._rows)

    def get(self, ref: ResourceRef) -> EncodedRow | None:
        """The row of a resource; None when it is not declared."""
        return self._rows.get(ref)

    def revision_of(self, number: int, steps: int) -> str:
        """The revision of a change of rows, and of one of next steps, as a stream resumes from both."""
        return f"{self._epoch}.{number}.{steps}"

    def numbers_of(self, revision: str) -> tuple[int, int] | None:
        """The numbers of a revision; None when what followed it is not known any more, or it is of another process."""
        epoch, *texts = revision.split(".")
        if epoch != self._epoch or len(texts) != 2 or not all(map(_is_number, texts)):
            return None
        number, steps = map(int, texts)
        return (number, steps) if self._forgotten <= number <= self.number else None

    def sorted(self) -> Sequence[ResourceRef]:
        """All resources, in the order of the list."""
        if self._order is None:
            self._order = sorted(self._rows, key=sort_key)
        return self._order

    def put(
        self,
        ref: ResourceRef,
        row: Row,
        needs: tuple[Dependency, ...] = (),
        owner: ResourceRef | None = None,
        *,
        is_ready: bool = True,
    ) -> None:
        """The row of a resource, and what it depends on; the same again is no change."""
        before = self._rows.get(ref)
        found = (row, needs, owner, is_ready)
        if before is not None and (before.row, before.needs, before.owner, before.is_ready) == found:
            return
        if before is None:
            self._order = None
            self.scopes[Scope.of(ref)] += 1
            self._deletions.pop(ref, None)
        self._rows[ref] = EncodedRow(row, encode(row), needs, owner, is_ready)
        self._count(self._numbers, ref)

    def drop(self, ref: ResourceRef) -> None:
        """The resource is gone."""
        if self._rows.pop(ref, None) is None:
            return
        self._order, scope = None, Scope.of(ref)
        self.scopes[scope] -= 1
        if not self.scopes[scope]:
            del self.scopes[scope]
        self._numbers.pop(ref, None)
        self._count(self._deletions, ref)
        if len(self._deletions) > _MAX_DELETIONS:
            oldest = next(iter(self._deletions))
            self._forgotten = self._deletions.pop(oldest)

    def _count(self, numbers: dict[ResourceRef, int], ref: ResourceRef) -> None:
        self.number += 1
        numbers.pop(ref, None)
        numbers[ref] = self.number
        self.notify()

    def since(self, number: int) -> FleetChanges | None:
        """What changed after that number; None when deletions since then are forgotten."""
        if number < self._forgotten:
            return None
        changed = {ref: self._rows[ref] for ref in newest_first(self._numbers, number)}
        return FleetChanges(self.number, changed, list(newest_first(self._deletions, number)))

    def notify(self) -> None:
        """Wakes the streams: a row, or something else that they show, has changed."""
        event, self._changed = self._changed, asyncio.Event()
        event.set()

    def next_change(self) -> asyncio.Event:
        """Set with the next change after this call."""
        return self._changed


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 18


def newest_first(numbers: dict[ResourceRef, int], number: int) -> Iterator[ResourceRef]:
    """Those with a higher number than that: it takes no longer than there are."""
    for ref in reversed(numbers):
        if numbers[ref] <= number:
            return
        yield ref


class ResourceListener(Protocol):
    """Is told of the resources that a watch reads, in the order of their changes."""

    def put(self, resource: Resource) -> None:
        """The resource is new, or has changed."""
        ...

    def drop(self, ref: ResourceRef) -> None:
        """The resource is gone."""
        ...


class FleetWatch:
    """Keeps rows up to date with a store, from the first use on."""

    def __init__(
        self, engine: EngineContext, rows: FleetRows, *, is_live: bool = True, listener: ResourceListener | None = None
    ) -> None:
        """What is not `is_live`, as a recording, is listed once. `listener` is told of every change."""
        self._engine = engine
        self.rows = rows
        self._listener = listener
        self._is_live = is_live
        self._loaded = asyncio.Event()
        self._wanted = asyncio.Event()
        # Set once the store was read, or could not be, and why it could not.
        self._tried = asyncio.Event()
        self._trouble = ""

    async def loaded(self) -> FleetRows:
        """The rows, once all of them are there. StoreError while the store cannot be read at all."""
        self.begin()
        if not self._loaded.is_set():
            await self._tried.wait()
        if not self._loaded.is_set():
            raise StoreError(self._trouble)
        return self.rows

    def begin(self) -> None:
        """Loads the rows now, before the first use."""
        self._wanted.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watches in the background; nothing is read before the first use."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        await self._wanted.wait()
        backoff, since = error_backoff(), None
        while True:
            try:
                since = await self._list() if since is None else since
                if not self._is_live:
                    return
                async with self._clearing_trouble():
                    async for change in self._engine.store.watch(since):
                        since = change.revision
                        backoff.reset()
                        self._handle(change)
            except StoreError as error:
                if isinstance(error, RevisionExpired):
                    since = None
                else:
                    self._set_trouble(str(error))
                self._tried.set()
                delay = backoff.next()
                _log.warning("watch of the dashboard broke off", extra={"why": str(error), "seconds": round(delay, 3)})
                await self._engine.clock.sleep(delay)

    @property
    def trouble(self) -> str:
        """Why the rows may be old by now; empty while changes are read."""
        return self._trouble

    def _set_trouble(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            self.rows.notify()

    @asynccontextmanager
    async def _clearing_trouble(self) -> AsyncIterator[None]:
        """A watch says nothing while nothing changes: one that lasts for a while can be read."""

        async def clear() -> None:
            await self._engine.clock.sleep(_WORKS_AFTER_SECONDS)
            self._set_trouble("")

        task = asyncio.create_task(clear()) if self._trouble else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()

    async def _list(self) -> Revision:
        gone, since, seen = set(self.rows), Revision(""), 0
        async for page in self._engine.store.pages():
            since = page.revision
            for resource in page.resources:
                gone.discard(resource.ref)
                self._put(resource)
                seen += 1
                if seen % _ROWS_BEFORE_YIELD == 0:
                    await asyncio.sleep(0)
        for ref in gone:
            self._drop(ref)
        self._loaded.set()
        self._tried.set()
        return since

    def _handle(self, change: ResourceChange) -> None:
        if change.change is ResourceChangeType.DELETED:
            self._drop(change.resource.ref)
        else:
            self._put(change.resource)

    def _drop(self, ref: ResourceRef) -> None:
        self.rows.drop(ref)
        if self._listener is not None:
            self._listener.drop(ref)

    def _put(self, resource: Resource) -> None:
        """Only of kinds that are reconciled: others are part of the graph, and of their owners."""
        if resource.ref.group_kind in self._engine.resource_types:
            needs, owner = self._needs(resource), resource.controller
            self.rows.put(resource.ref, row_of(resource), needs, owner, is_ready=is_ready(resource))
            if self._listener is not None:
                self._listener.put(resource)

    def _needs(self, resource: Resource) -> tuple[Dependency, ...]:
        if not may_have_dependencies(resource):
            return ()
        try:
            return dependencies_of(resource, self._engine.resource_types)
        except UserError:
            # Its status says what is wrong with it.
            return ()


def joined_rows(rows: Mapping[ResourceRef, EncodedRow], next_step: Callable[[ResourceRef], str | None]) -> bytes:
    """The rows as a JSON list, each with the time of its next step, where a process says it."""
    return b"[" + b",".join(one.json_with(next_step(ref)) for ref, one in rows.items()) + b"]"


def json_ids(refs: Sequence[ResourceRef]) -> bytes:
    """The ids as a JSON list."""
    return encode([id_of(ref) for ref in refs])

"""The engines of a session: opened when they are first needed, and closed with it; and whose turn it is to write."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from setpoint.app import (
    AppSettings,
    OpenedEngine,
    StoreAccess,
    is_shared_store,
    open_app,
    open_engine_read_only,
    store_file,
)
from setpoint.clients.write_guard import BlockedWrites
from setpoint.engine.claims.object_claims import ObjectClaims
from setpoint.engine.contention.operation_queue import OperationQueues
from setpoint.engine.context import EngineContext
from setpoint.engine.ports import Store
from setpoint.errors import UserError

if TYPE_CHECKING:
    from setpoint.library.executors import ControllerLink
    from setpoint.preview import PreviewListener, PreviewSession, WorldRecording

# How often it is looked for a file that another process may make.
_FILE_POLL_SECONDS: Final = 1.0


class SessionEngines:
    """The engine that writes, one that only reads, and those of plans.

    A store in a file is read without a lock until something is written; from then on this session holds it to its end.
    """

    def __init__(
        self,
        settings: AppSettings,
        *,
        owns_process: bool = False,
        opened: OpenedEngine | None = None,
        plans_for_tenants: bool = False,
    ) -> None:
        """`opened` is an engine that is open already, and stays open.

        `plans_for_tenants`: beside controllers of a cluster, plans of the whole store read as their steps do.
        """
        self.settings = settings
        self._owns_process = owns_process
        self._plans_for_tenants = plans_for_tenants
        self.is_shared = is_shared_store(settings)
        self.file = store_file(settings)
        self.closed, self._written = asyncio.Event(), asyncio.Event()
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._writer: OpenedEngine | None = opened
        self._reader: EngineContext | None = None

    async def writer(self) -> OpenedEngine:
        """The engine that writes. StoreInUse while another process, or another session, writes to the same file."""
        self._require_open()
        async with self._opening:
            if self._writer is None:
                self._require_open()
                opened = open_app(self.settings, StoreAccess.WRITE)
                self._writer = await self._stack.enter_async_context(opened)
                self._written.set()
            return self._writer

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[EngineContext]:
        """An engine to read with; without a file yet, that of an empty store."""
        self._require_open()
        if self._writer is not None or self.file is None:
            yield (await self.writer()).engine
            return
        if not self.file.exists():
            async with open_app(self.settings, StoreAccess.READ) as opened:
                yield opened.engine
            return
        async with self._opening:
            if self._reader is None:
                self._require_open()
                reader = open_app(self.settings, StoreAccess.READ)
                self._reader = (await self._stack.enter_async_context(reader)).engine
        yield self._reader

    @asynccontextmanager
    async def planning(self) -> AsyncIterator[EngineContext]:
        """An engine whose clients can only read; of this session's own store, if it is open."""
        # Commands that plan nothing do without.
        from setpoint.clients.ratelimit.read_retries import reads_retried

        store = await self._open_store()
        # Threads of a program that has a session are not ours to guard.
        guarded = open_engine_read_only(self.settings, BlockedWrites(), store, guards_threads=self._owns_process)
        with reads_retried():
            async with guarded as engine:
                yield engine

    @asynccontextmanager
    async def previewing(self, world: Path | None = None) -> "AsyncIterator[PreviewSession]":
        """The whole store at one point in time, or a recorded world, in which nothing can be written."""
        from setpoint.preview import open_preview, open_recorded
        from setpoint.replay.world_file import read_world

        if world is None:
            store = await self._open_store()
            opened = open_preview(
                self.settings,
                store=store,
                guards_threads=self._owns_process,
                lists=True,
                for_tenants=self._plans_for_tenants,
            )
        else:
            opened = open_recorded(self.settings, read_world(world), guards_threads=self._owns_process)
        async with opened as preview:
            yield preview

    async def record(self, listener: "PreviewListener") -> "WorldRecording":
        """A recording of the whole store, and of what its services answer."""
        from setpoint.preview import make_recording

        store = await self._open_store()
        return await make_recording(self.settings, listener, store=store, guards_threads=self._owns_process)

    async def _open_store(self) -> Store | None:
        """This session's own store, if it is open; a store in memory always is."""
        self._require_open()
        if self.file is None and not self.is_shared:
            await self.writer()
        return None if self._writer is None or self.is_shared else self._writer.engine.store

    @asynccontextmanager
    async def running(self) -> AsyncIterator[OpenedEngine]:
        """The engine of controllers: of a cluster one of its own, which watches; else the one that writes."""
        if not self.is_shared:
            yield await self.writer()
            return
        self._require_open()
        async with open_app(self.settings, StoreAccess.RUN) as opened:
            yield opened

    async def wait_for_file(self) -> bool:
        """Returns once there is something to watch; False when it was there before."""
        if self.file is None or self._writer is not None or self.file.exists():
            return False
        while not (self._written.is_set() or self.closed.is_set() or self.file.exists()):
            waits = [self._written.wait(), self.closed.wait(), self.settings.clock.sleep(_FILE_POLL_SECONDS)]
            tasks = [asyncio.ensure_future(one) for one in waits]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
        return True

    async def close(self) -> None:
        """Closes stores and clients; idempotent. A watch ends then."""
        self.closed.set()
        async with self._opening:
            await self._stack.aclose()

    def _require_open(self) -> None:
        if self.closed.is_set():
            raise UserError("the session is closed: open another one")


class RecordedEngines(SessionEngines):
    """The engines of a recorded world: no service is asked, and nothing can be written."""

    def __init__(self, settings: AppSettings, world: Path) -> None:
        super().__init__(settings)
        self._world = world
        self._recorded: PreviewSession | None = None
        # There is no file of a store, nor another process that writes to it.
        self.is_shared, self.file = False, None

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[EngineContext]:
        """See SessionEngines."""
        self._require_open()
        async with self._opening:
            if self._recorded is None:
                self._recorded = await self._stack.enter_async_context(self.previewing())
        yield self._recorded.engine

    @asynccontextmanager
    async def planning(self) -> AsyncIterator[EngineContext]:
        """See SessionEngines."""
        async with self.reading() as engine:
            yield engine

    @asynccontextmanager
    async def previewing(self, world: Path | None = None) -> "AsyncIterator[PreviewSession]":
        """See SessionEngines."""
        async with super().previewing(world or self._world) as preview:
            yield preview


def for_one_call(engine: EngineContext) -> EngineContext:
    """The engine with the memory of one call: which operations take turns, and which objects are claimed.

    A call may end while an operation goes on, and other writers may change claims before the next.
    """
    return replace(engine, claims=ObjectClaims(), operations=OperationQueues())


class WriteTurns:
    """Calls that take steps in this process have turns; while controllers run, they hand over to these instead."""

    def __init__(self) -> None:
        self._link: ControllerLink | None = None
        self._is_taken = False
        self._changed = asyncio.Event()

    @property
    def are_handed_over(self) -> bool:
        """Whether controllers are running."""
        return self._link is not None

    @asynccontextmanager
    async def taken(self) -> AsyncIterator["ControllerLink | None"]:
        """Waits for the turn; with controllers running, it is not needed, and this is the way to them."""
        while self._link is None and self._is_taken:
            self._changed.clear()
            await self._changed.wait()
        if self._link is not None:
            yield self._link
            return
        self._is_taken = True
        try:
            yield None
        finally:
            self._is_taken = False
            self._changed.set()

    @asynccontextmanager
    async def handed_to(self, link: "ControllerLink") -> AsyncIterator[None]:
        """Inside, by the holder of the turn: every call is handed to the controllers behind `link`."""
        self._link = link
        self._changed.set()
        try:
            yield
        finally:
            self._link = None

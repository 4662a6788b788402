"""What the handlers read: a session on a store or a cluster, or a recorded world, and the rows of its resources."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from setpoint.app import OpenedEngine
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.durations import rfc3339
from setpoint.dashboard.api.models import DashboardSource, Row
from setpoint.dashboard.histories import NO_SOURCES, Histories, HistorySources
from setpoint.dashboard.plans import PlanMaker
from setpoint.dashboard.stream import StreamHub, StreamLimits
from setpoint.dashboard.views.fleet import EncodedRow, FleetRows, FleetWatch
from setpoint.dashboard.views.next_steps import NextSteps
from setpoint.dashboard.views.search import FieldSearch, SearchTexts
from setpoint.dashboard.views.summary import NoProcess, ProcessSource, Summaries
from setpoint.engine.context import EngineContext
from setpoint.engine.history.memory_history import HistoryStore
from setpoint.engine.ports import Clock
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.store_decorators import OverlayStore
from setpoint.library.executors import has_controller
from setpoint.library.inspection.fields import FieldListing, read_fields
from setpoint.library.inspection.records import ResourceDescription, StepExplanation
from setpoint.library.session_reads import SessionReads, declared
from setpoint.library.targets import get_declared

# In a cluster, where each user may ask for a plan, one is shown to all for so long.
PLAN_KEPT_SECONDS: Final = 60.0
DEFAULT_STREAM_LIMITS: Final = StreamLimits()


@dataclass(frozen=True, slots=True)
class Backend:
    """The data of one dashboard."""

    session: SessionReads
    engine: EngineContext
    source: DashboardSource
    fleet: FleetWatch
    hub: StreamHub
    plans: PlanMaker
    search: FieldSearch
    # The fields of a resource, with its live object read now.
    fields: Callable[[ResourceRef], Awaitable[FieldListing]]
    histories: Histories
    upgrade_report: bytes | None = None
    is_live: bool = True
    # Whether controllers run in this process.
    is_running: bool = False

    async def described(self, ref: ResourceRef) -> tuple[ResourceDescription, StepExplanation]:
        """What is on record about one resource, without secret values; ManifestInvalid when it is not declared."""
        engine = self.engine
        found = declared(await get_declared(ref, engine), engine.secret_fields)
        is_resynced = self.is_running or (self.is_live and await has_controller(self.session.settings, engine))
        explained = StepExplanation.of(
            found.resource, is_resynced=is_resynced, is_owner=ref.group_kind in engine.owners
        )
        return ResourceDescription(found, await engine.store.events(ref)), explained

    async def next_step_of(self, ref: ResourceRef, token: str | None) -> str | None:
        """When the next step of a resource is due: by this process, or one that is asked with the token of a user."""
        seconds = self.hub.summaries.process.seconds_until_step(ref)
        if seconds is not None:
            return rfc3339(int(datetime.fromisoformat(self.engine.clock.now()).timestamp() + seconds))
        asked = None if token is None else await self.histories.next_step_of(ref, token)
        return asked or self.hub.steps.get(ref)

    def row_of(self, ref: ResourceRef, found: EncodedRow, next_step: str | None = None) -> Row:
        """The row with the time of the next step, as far as a process says it."""
        known = next_step or self.hub.steps.get(ref)
        return found.row if known is None else msgspec.structs.replace(found.row, next_step=known)


@asynccontextmanager
async def open_backend(
    session: SessionReads,
    source: DashboardSource,
    *,
    process: ProcessSource | None = None,
    running: OpenedEngine | None = None,
    beside: HistorySources = NO_SOURCES,
    upgrade_report: bytes | None = None,
    limits: StreamLimits = DEFAULT_STREAM_LIMITS,
) -> AsyncIterator[Backend]:
    """The data of a session, kept up to date while this is open; streams end with it.

    `running` is the engine of controllers in this process, whose clients act for tenants, and which keep histories.
    """
    is_live = source.type != "recording"
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(session.reading())
        rows, texts = FleetRows(), SearchTexts(engine)
        fleet = FleetWatch(engine, rows, is_live=is_live, listener=texts)
        plans = PlanMaker(session, engine.clock, rows.notify, _plan_kept_seconds(running))
        stack.push_async_callback(plans.close)
        await stack.enter_async_context(fleet.running())
        hub = await stack.enter_async_context(_streaming(fleet, plans, process or NoProcess(), engine.clock, limits))
        yield Backend(
            session,
            engine,
            source,
            fleet,
            hub,
            plans,
            FieldSearch(texts, rows),
            session.fields if running is None else partial(_read_fields, running.engine),
            _histories(engine, running, beside),
            upgrade_report,
            is_live,
            running is not None,
        )


@asynccontextmanager
async def _streaming(
    fleet: FleetWatch, plans: PlanMaker, process: ProcessSource, clock: Clock, limits: StreamLimits
) -> AsyncIterator[StreamHub]:
    """What streams send, until this is closed."""
    rows, closed = fleet.rows, asyncio.Event()
    steps, summaries = NextSteps(rows, process, clock), Summaries(rows, process)
    hub = StreamHub(rows, summaries, steps, plans, lambda: fleet.trouble, clock, limits, closed)
    async with AsyncExitStack() as stack:
        stack.callback(closed.set)
        for work in (hub.watch_process(), hub.watch_steps(), hub.watch_others()):
            await stack.enter_async_context(in_background(work))
        yield hub


def _plan_kept_seconds(running: OpenedEngine | None) -> float:
    return PLAN_KEPT_SECONDS if running is not None and running.shared else 0.0


def _histories(engine: EngineContext, running: OpenedEngine | None, beside: HistorySources) -> Histories:
    store = engine.store if running is None else running.engine.store
    return Histories(engine, store if isinstance(store, HistoryStore) else None, beside.audit, beside.peers)


async def _read_fields(engine: EngineContext, ref: ResourceRef) -> FieldListing:
    """The fields of a resource by the clients of the controllers; the store refuses writes."""
    planning = replace(engine, store=OverlayStore(engine.store, {}))
    return await read_fields(await get_declared(ref, planning), planning)


@asynccontextmanager
async def in_background(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Does the work beside what is inside, and ends it then."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

"""What the handlers read: a session on a store or a cluster, or a recorded world, and the rows of its resources."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.api.models import Source
from setpoint.dashboard.fleet import FleetRows, FleetWatch
from setpoint.dashboard.plans import PlanMaker
from setpoint.dashboard.search import FieldSearch
from setpoint.dashboard.stream import StreamHub, StreamLimits
from setpoint.dashboard.summary import NoProcess, ProcessSource, Summaries
from setpoint.engine.context import EngineContext
from setpoint.engine.history.memory_history import HistoryStore
from setpoint.engine.ports import Store
from setpoint.library.session_reads import SessionReads

DEFAULT_STREAM_LIMITS: Final = StreamLimits()


@dataclass(frozen=True, slots=True)
class Backend:
    """The data of one dashboard."""

    session: SessionReads
    engine: EngineContext
    source: Source
    fleet: FleetWatch
    hub: StreamHub
    plans: PlanMaker
    search: FieldSearch
    # Where histories are kept; in a cluster, the store of the controllers of this process.
    history: HistoryStore | None
    upgrade_report: bytes | None = None
    is_live: bool = True


@asynccontextmanager
async def open_backend(
    session: SessionReads,
    source: Source,
    *,
    process: ProcessSource | None = None,
    history: Store | None = None,
    upgrade_report: bytes | None = None,
    limits: StreamLimits = DEFAULT_STREAM_LIMITS,
) -> AsyncIterator[Backend]:
    """The data of a session, kept up to date while this is open; streams end with it.

    `history` is the store that keeps histories, where it is not that of the session.
    """
    is_live = source.type != "recording"
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(session.reading())
        rows = FleetRows()
        fleet = FleetWatch(engine, rows, is_live=is_live)
        summaries = Summaries(rows, process or NoProcess())
        closed = asyncio.Event()
        stack.callback(closed.set)
        plans = PlanMaker(session, engine.clock, rows.notify)
        stack.push_async_callback(plans.close)
        hub = StreamHub(rows, summaries, plans, engine.clock, limits, closed)
        store = history or engine.store
        await stack.enter_async_context(fleet.running())
        await stack.enter_async_context(in_background(hub.watch_process()))
        yield Backend(
            session,
            engine,
            source,
            fleet,
            hub,
            plans,
            FieldSearch(engine, rows),
            store if isinstance(store, HistoryStore) else None,
            upgrade_report,
            is_live,
        )


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

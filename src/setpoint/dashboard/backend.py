"""What the handlers read: a session on a store or a cluster, or a recorded world, and the rows of its resources."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.api.models import PlanProgress, Source
from setpoint.dashboard.fleet import FleetRows, FleetWatch
from setpoint.dashboard.stream import StreamHub, StreamLimits
from setpoint.dashboard.summary import NoProcess, ProcessSource, Summaries
from setpoint.engine.context import EngineContext
from setpoint.library.session_reads import SessionReads

DEFAULT_STREAM_LIMITS: Final = StreamLimits()


class NoPlan:
    """For a page without a plan."""

    progress: PlanProgress | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """The data of one dashboard."""

    session: SessionReads
    engine: EngineContext
    source: Source
    fleet: FleetWatch
    hub: StreamHub
    is_live: bool = True


@asynccontextmanager
async def open_backend(
    session: SessionReads,
    source: Source,
    *,
    process: ProcessSource | None = None,
    limits: StreamLimits = DEFAULT_STREAM_LIMITS,
) -> AsyncIterator[Backend]:
    """The data of a session, kept up to date while this is open; streams end with it."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(session.reading())
        rows = FleetRows()
        fleet = FleetWatch(engine, rows)
        summaries = Summaries(rows, process or NoProcess())
        closed = asyncio.Event()
        stack.callback(closed.set)
        hub = StreamHub(rows, summaries, NoPlan(), engine.clock, limits, closed)
        await stack.enter_async_context(fleet.running())
        yield Backend(session, engine, source, fleet, hub)

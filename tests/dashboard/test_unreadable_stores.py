"""A store that cannot be read: the page is told why, and gets everything once it can be read again."""

import asyncio
from contextlib import nullcontext

import pytest

from setpoint.dashboard.views.fleet import FleetRows, FleetWatch
from setpoint.errors import StoreError
from tests.dashboard.pages import dashboard_on
from tests.dashboard.test_stream import Events
from tests.dashboard.watched_store import watched
from tests.library.worlds import bucket, until, world


def test_requests_are_answered_with_the_reason_until_the_store_can_be_read() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session, session.reading() as engine:
            await session.apply(bucket(), wait=False)
            engine, store = watched(engine)
            store.can_be_read.clear()
            fleet = FleetWatch(engine, FleetRows())
            async with fleet.running():
                with pytest.raises(StoreError, match="the cluster does not answer"):
                    await fleet.loaded()
                store.can_be_read.set()
                await until(lambda: len(fleet.rows) > 0)

                assert len(await fleet.loaded()) == 1

    asyncio.run(main())


def test_a_page_is_told_that_what_it_shows_may_be_old_until_changes_are_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        async with world() as here, here.open() as session, session.reading() as engine:
            await session.apply(bucket(), wait=False)
            engine, store = watched(engine)
            monkeypatch.setattr(session, "reading", lambda: nullcontext(engine))
            async with dashboard_on(session) as page:
                events = Events(page)
                await until(lambda: events.of("summary"))
                store.can_be_read.clear()
                await session.apply(bucket("second"), wait=False)
                await until(lambda: events.of("trouble"))
                store.can_be_read.set()
                await until(lambda: len(events.of("trouble")) == 2)
                await until(lambda: "second" in events.names)

                assert events.of("trouble") == [{"message": "the cluster does not answer"}, {"message": None}]

    asyncio.run(main())

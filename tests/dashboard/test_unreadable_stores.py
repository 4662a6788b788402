"""A store that cannot be read: the page is told why, and gets everything once it can be read again."""

import asyncio

import pytest

from setpoint.dashboard.views.fleet import FleetRows, FleetWatch
from setpoint.errors import StoreError
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

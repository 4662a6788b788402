"""A store that cannot be read: the page is told why, and gets everything once it can be read again."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from setpoint.dashboard.views.fleet import FleetRows, FleetWatch
from setpoint.engine.ports import ResourceList
from setpoint.errors import StoreError
from tests.library.worlds import bucket, world


def test_requests_are_answered_with_the_reason_until_the_store_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with world() as here, here.open() as session, session.reading() as engine:
            await session.apply(bucket(), wait=False)
            can_be_read, pages = asyncio.Event(), type(engine.store).pages

            async def guarded(store: Any, *arguments: Any) -> AsyncIterator[ResourceList]:
                if not can_be_read.is_set():
                    raise StoreError("the cluster does not answer")
                async for page in pages(store, *arguments):
                    yield page

            monkeypatch.setattr(type(engine.store), "pages", guarded)
            fleet = FleetWatch(engine, FleetRows())
            async with fleet.running():
                with pytest.raises(StoreError, match="the cluster does not answer"):
                    await fleet.loaded()
                can_be_read.set()
                while not len(fleet.rows):
                    await asyncio.sleep(0.01)

                assert len(await fleet.loaded()) == 1

    asyncio.run(main())

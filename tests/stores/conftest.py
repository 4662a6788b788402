"""An event loop, a clock, and each embedded store."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from setpoint.engine.ports import Store
from setpoint.stores.journal import StoreLimits
from setpoint.stores.memory import MemoryStore
from setpoint.stores.sqlite.store import open_sqlite
from tests.engine.clock import FakeClock

LIMITS = StoreLimits(changes=1_000, notes=8, notes_per_resource=3)


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def new_uid() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"uid-{next(numbers)}"


@pytest.fixture(params=["memory", "sqlite"])
def store(
    request: pytest.FixtureRequest,
    loop: asyncio.Runner,
    clock: FakeClock,
    new_uid: Callable[[], str],
    tmp_path: Path,
) -> Iterator[Store]:
    opened: Store
    if request.param == "memory":
        opened = MemoryStore(clock, new_uid, LIMITS)
    else:
        opened = loop.run(open_sqlite(tmp_path / "state.db", clock, new_uid, limits=LIMITS))
    yield opened
    loop.run(opened.close())

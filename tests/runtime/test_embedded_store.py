"""A manager over a SQLite store: how much of the store an edit and a creation touch, whatever else is in it."""

import asyncio
import itertools
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from setpoint.engine.context import EngineContext
from setpoint.engine.ports import SystemClock
from setpoint.runtime.controller import Controller
from setpoint.runtime.manager import Manager
from setpoint.runtime.predicates import RESYNC
from setpoint.stores.journal import StoreLimits
from setpoint.stores.sqlite.store import SqliteStore, open_sqlite
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GadgetKind, Service, gadget_ref
from tests.runtime.manager_harness import RecordingMetrics, running_manager

_VALUE: Final = re.compile(r"x'[^']*'|'(?:[^']|'')*'|\b\d+\b")


@dataclass(slots=True)
class Counts:
    """The statements of the connection that writes, without values, and SQLite's instructions for all of them."""

    statements: list[str] = field(default_factory=list)
    instructions: int = 0

    def add_statement(self, text: str) -> None:
        self.statements.append(" ".join(_VALUE.sub("?", text).split()))

    def add_instruction(self) -> int:
        self.instructions += 1
        return 0

    @property
    def commits(self) -> int:
        return self.statements.count("COMMIT")


@dataclass(slots=True)
class Connections:
    """Takes note of the connection that writes, and of the one that reads."""

    connect: Callable[..., sqlite3.Connection]
    writing: sqlite3.Connection | None = None
    reading: sqlite3.Connection | None = None

    def __call__(self, address: str, **options: Any) -> sqlite3.Connection:
        connection = self.connect(address, **options)
        if address.endswith("mode=rw"):
            self.writing = connection
        else:
            self.reading = connection
        return connection

    @contextmanager
    def every_statement(self) -> Iterator[list[str]]:
        """The statements of both inside."""
        statements: list[str] = []
        assert self.writing is not None
        assert self.reading is not None
        for one in (self.writing, self.reading):
            one.set_trace_callback(statements.append)
        try:
            yield statements
        finally:
            for one in (self.writing, self.reading):
                one.set_trace_callback(None)

    @contextmanager
    def counted(self) -> Iterator[Counts]:
        """Counts what the connection does inside."""
        assert self.writing is not None
        counts = Counts()
        self.writing.set_trace_callback(counts.add_statement)
        self.writing.set_progress_handler(counts.add_instruction, 1)
        try:
            yield counts
        finally:
            self.writing.set_trace_callback(None)
            self.writing.set_progress_handler(None, 0)


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Connections:
    found = Connections(sqlite3.connect)
    monkeypatch.setattr(sqlite3, "connect", found)
    return found


@dataclass(slots=True)
class Embedded:
    store: SqliteStore
    manager: Manager
    service: Service

    async def settle(self, name: str, size: int) -> None:
        """Applies a gadget, and waits until the watch shows that it is settled."""
        applied = await self.store.apply(gadget(name, {"size": size}))
        while not self._is_settled(name, applied.generation):
            await asyncio.sleep(0)

    async def settle_others(self, count: int) -> None:
        """Applies so many gadgets, and waits until the watch shows that all are settled."""
        await asyncio.gather(*(self.store.apply(gadget(f"other-{number}", {"size": 1})) for number in range(count)))
        while sum(number for (*_, ready), number in self.manager.index.counts.items() if ready) < count:
            await asyncio.sleep(0)

    async def resync(self, controller: Controller, name: str) -> None:
        """Takes a step as if the resync were due."""
        controller.enqueue(gadget_ref(name), RESYNC)
        while any((queue := controller.queue.snapshot()).depth.values()) or queue.processing:
            await asyncio.sleep(0)

    def _is_settled(self, name: str, generation: int) -> bool:
        entry = self.manager.index.get(gadget_ref(name))
        return entry is not None and entry.is_ready and entry.generation == generation


@asynccontextmanager
async def embedded(path: Path, limits: StoreLimits = StoreLimits()) -> AsyncIterator[Embedded]:  # noqa: B008 - frozen
    numbers, clock, service = itertools.count(1), SystemClock(), Service()
    kind = GadgetKind(service)
    store = await open_sqlite(path, clock, lambda: f"uid-{next(numbers)}", limits=limits)
    manager = Manager(EngineContext(store, clock, {(kind.group, kind.name): kind}), RecordingMetrics())
    async with running_manager(manager):
        yield Embedded(store, manager, service)
    await store.close()


def counts_of(
    path: Path, connections: Connections, others: int, scenario: Callable[[Embedded], Awaitable[None]]
) -> Counts:
    """What `scenario` takes of a store with so many other resources, after the gadget `mine` was settled there."""

    async def main() -> Counts:
        async with embedded(path) as process:
            await process.settle_others(others)
            await process.settle("mine", 1)
            with connections.counted() as counts:
                await scenario(process)
            return counts

    return asyncio.run(main())


async def edit(process: Embedded) -> None:
    await process.settle("mine", 2)


async def create(process: Embedded) -> None:
    await process.settle("new", 1)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [edit, create])
def test_an_edit_and_a_creation_take_the_same_among_2000_resources_as_among_10(
    scenario: Callable[[Embedded], Awaitable[None]], tmp_path: Path, connections: Connections
) -> None:
    few = counts_of(tmp_path / "few.db", connections, 10, scenario)
    many = counts_of(tmp_path / "many.db", connections, 2_000, scenario)

    assert many.statements == few.statements
    # A scan of a table would take some instructions for each of its rows.
    assert many.instructions == few.instructions
    # To count a whole table is one instruction, and reads all of it.
    assert not [one for one in many.statements if "count(*)" in one and "WHERE" not in one]


def test_an_edit_takes_the_commit_of_the_author_and_one_more(tmp_path: Path, connections: Connections) -> None:
    assert counts_of(tmp_path / "state.db", connections, 1, edit).commits == 2


def test_a_resync_of_an_idle_resource_takes_one_request_and_nothing_of_the_store(
    tmp_path: Path, connections: Connections
) -> None:
    async def main() -> tuple[list[str], list[tuple[str, str]]]:
        async with embedded(tmp_path / "state.db") as process:
            await process.settle("mine", 1)
            (controller,) = process.manager.controllers.values()
            # The step after its own write finds nothing left to do; from then on the resource is idle.
            for _ in range(2):
                await process.resync(controller, "mine")
            before = len(process.service.calls)
            with connections.every_statement() as statements:
                await process.resync(controller, "mine")
            return statements, process.service.calls[before:]

    assert asyncio.run(main()) == ([], [("get", "mine")])


def test_a_creation_takes_the_commit_of_the_author_one_before_the_request_and_one_after(
    tmp_path: Path, connections: Connections
) -> None:
    assert counts_of(tmp_path / "state.db", connections, 1, create).commits == 3

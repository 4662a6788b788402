"""Group commit: writes share a transaction, and fail alone."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from setpoint.engine.ports import EventRecord
from setpoint.errors import StoreError, WriteConflict
from setpoint.stores.journal import StoreLimits
from setpoint.stores.sqlite.database_file import connect_to_write, prepare_file
from setpoint.stores.sqlite.schema import migrate
from setpoint.stores.sqlite.tables import EventAndLeaseTables
from setpoint.stores.sqlite.writer import GroupCommitWriter
from tests.stores.samples import REF


class WriterHarness:
    """A writer on a table of numbers that counts its commits."""

    def __init__(
        self, path: Path, tidy: Callable[[], None] = lambda: None, scrub: Callable[[], None] = lambda: None
    ) -> None:
        prepare_file(path)
        self.connection = connect_to_write(path)
        self.connection.execute("CREATE TABLE numbers (n)")
        self.commits = 0
        # The results of the writes that are on disk, as the event loop is told them.
        self.told: list[object] = []
        self.writer = GroupCommitWriter(self.connection, path, tidy, self._count, scrub=scrub)
        self.path = path

    def add(self, number: object) -> object:
        self.connection.execute("INSERT INTO numbers VALUES (?)", (number,))
        return number

    def add_then_fail(self, number: int) -> None:
        self.add(number)
        raise WriteConflict("no")

    def on_disk(self) -> list[object]:
        connection = sqlite3.connect(self.path)
        rows = connection.execute("SELECT n FROM numbers ORDER BY n").fetchall()
        connection.close()
        return [number for (number,) in rows]

    def _count(self, results: Sequence[object]) -> None:
        self.commits += 1
        self.told += results


def test_a_write_is_on_disk_when_it_is_acknowledged(tmp_path: Path, loop: asyncio.Runner) -> None:
    async def scenario() -> tuple[object, object]:
        harness = WriterHarness(tmp_path / "numbers.db")
        log = harness.connection.execute("PRAGMA journal_mode").fetchone()
        care = harness.connection.execute("PRAGMA synchronous").fetchone()
        await harness.writer.close()
        return log, care

    full = 2
    assert loop.run(scenario()) == (("wal",), (full,))


def test_a_write_is_acknowledged_whatever_becomes_of_the_scrubbing_after_its_commit(
    tmp_path: Path, loop: asyncio.Runner
) -> None:
    scrubbed = list[bool]()

    async def scenario() -> tuple[object, list[object]]:
        def scrub() -> None:
            scrubbed.append(harness.connection.in_transaction)
            raise sqlite3.OperationalError("database is locked")

        harness = WriterHarness(tmp_path / "numbers.db", scrub=scrub)
        answer = await harness.writer.run(partial(harness.add, 1))
        await harness.writer.close()
        return answer, harness.on_disk()

    assert loop.run(scenario()) == (1, [1])
    # After the commit, and before the connection is closed.
    assert scrubbed == [False, False]


def test_concurrent_writes_share_one_commit(tmp_path: Path, loop: asyncio.Runner) -> None:
    async def scenario() -> tuple[list[object], int]:
        harness = WriterHarness(tmp_path / "numbers.db")
        answers = await asyncio.gather(*(harness.writer.run(partial(harness.add, n)) for n in range(100)))
        commits = harness.commits
        await harness.writer.close()
        return answers, commits

    assert loop.run(scenario()) == (list(range(100)), 1)


def test_a_failed_write_is_rolled_back_without_the_rest_of_its_batch(tmp_path: Path, loop: asyncio.Runner) -> None:
    async def scenario() -> tuple[list[object], list[object]]:
        harness = WriterHarness(tmp_path / "numbers.db")
        answers = await asyncio.gather(
            harness.writer.run(lambda: harness.add(1)),
            harness.writer.run(lambda: harness.add_then_fail(2)),
            harness.writer.run(lambda: harness.add(3)),
            return_exceptions=True,
        )
        await harness.writer.close()
        return [type(answer) for answer in answers], harness.on_disk()

    assert loop.run(scenario()) == ([int, WriteConflict, int], [1, 3])


def test_a_full_disk_fails_only_the_write_that_does_not_fit(tmp_path: Path, loop: asyncio.Runner) -> None:
    async def scenario() -> list[object]:
        harness = WriterHarness(tmp_path / "numbers.db")
        harness.connection.execute("PRAGMA max_page_count = 4")
        with pytest.raises(StoreError, match="the disk is full: make room and try again"):
            await harness.writer.run(lambda: harness.add("x" * 100_000))
        await harness.writer.run(lambda: harness.add(1))
        await harness.writer.close()
        return harness.on_disk()

    assert loop.run(scenario()) == [1]


def test_a_failed_transaction_fails_every_write_in_it(tmp_path: Path, loop: asyncio.Runner) -> None:
    def fail() -> None:
        raise sqlite3.OperationalError("disk I/O error")

    async def scenario() -> tuple[list[object], list[object]]:
        harness = WriterHarness(tmp_path / "numbers.db", tidy=fail)
        answers = await asyncio.gather(
            *(harness.writer.run(partial(harness.add, n)) for n in range(2)), return_exceptions=True
        )
        await harness.writer.close()
        return [type(answer) for answer in answers], harness.on_disk()

    assert loop.run(scenario()) == ([StoreError, StoreError], [])


def test_closing_finishes_queued_writes(tmp_path: Path, loop: asyncio.Runner) -> None:
    async def scenario() -> list[object]:
        harness = WriterHarness(tmp_path / "numbers.db")
        tasks = [asyncio.create_task(harness.writer.run(partial(harness.add, n))) for n in range(3)]
        await asyncio.sleep(0)
        await harness.writer.close()
        await asyncio.gather(*tasks)
        return harness.on_disk()

    assert loop.run(scenario()) == [0, 1, 2]


def test_a_cancelled_caller_does_not_affect_other_writes(tmp_path: Path, loop: asyncio.Runner) -> None:
    async def scenario() -> tuple[object, list[object]]:
        harness = WriterHarness(tmp_path / "numbers.db")
        impatient = asyncio.create_task(harness.writer.run(lambda: harness.add(1)))
        patient = asyncio.create_task(harness.writer.run(lambda: harness.add(2)))
        await asyncio.sleep(0)
        impatient.cancel()
        answer = await patient
        await harness.writer.close()
        return answer, harness.on_disk()

    assert loop.run(scenario()) == (2, [1, 2])


@pytest.mark.parametrize("companions", [0, 1])
def test_event_records_are_counted_again_after_a_write_that_was_rolled_back(
    companions: int, tmp_path: Path, loop: asyncio.Runner
) -> None:
    first, second, third = (EventRecord(REF, "uid", "Normal", "r", text, "2026-01-01T00:00:00Z") for text in "abc")

    async def scenario() -> list[str]:
        path = tmp_path / "state.db"
        prepare_file(path)
        connection = connect_to_write(path)
        migrate(connection, path)
        tables = EventAndLeaseTables(connection, StoreLimits(notes=2))
        writer = GroupCommitWriter(connection, path, nothing, ignore, rolled_back=tables.forget_count)

        def fail() -> None:
            # These two put the first one out, until they are undone.
            tables.record_event(second)
            tables.record_event(third)
            raise WriteConflict("too late")

        await writer.run(partial(tables.record_event, first))
        others = (writer.run(nothing) for _ in range(companions))
        await asyncio.gather(writer.run(fail), *others, return_exceptions=True)
        await writer.run(partial(tables.record_event, second))
        left = [one.message for one in await writer.run(lambda: tables.events(None))]
        await writer.close()
        return left

    assert loop.run(scenario()) == ["a", "b"]


def nothing() -> None:
    """Does nothing."""


def ignore(results: Sequence[object]) -> None:
    """Does nothing with the results of a transaction."""

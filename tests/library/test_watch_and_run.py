"""Changes as a session sees them, and the controllers in the process of the caller."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import setpoint
from setpoint import DeclaredChange, ResultOutcome
from setpoint.engine.resource import Revision
from setpoint.errors import UserError
from setpoint.localcloud.faults import FailRequest
from tests.library.worlds import bucket, until, world


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


@pytest.fixture(params=["memory", "file"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Where the file of the store is; None for a store in memory."""
    return tmp_path if request.param == "file" else None


class Watching:
    """Keeps every change that a watch yields."""

    def __init__(self, session: setpoint.Session, *targets: str, since: Revision | None = None) -> None:
        self.seen: list[DeclaredChange] = []
        self.task = asyncio.ensure_future(self._watch(session, targets, since))

    async def _watch(self, session: setpoint.Session, targets: tuple[str, ...], since: Revision | None) -> None:
        async for change in session.watch(*targets, since=since):
            self.seen.append(change)

    @property
    def words(self) -> list[str]:
        """What happened to which resource, without repetitions."""
        return list(dict.fromkeys(f"{one.change} {one.ref.name}" for one in self.seen))


def test_a_watch_shows_every_change_and_ends_with_the_session(folder: Path | None) -> None:
    async def main() -> None:
        async with world(folder) as here, here.open() as session:
            await session.apply(bucket("first"))
            since = (await session.list()).revision
            watching = Watching(session, "StorageBucket", since=since)
            await session.apply(bucket())
            await session.delete("StorageBucket/logs")
            await until(lambda: "deleted logs" in watching.words)
            await session.close()
            await watching.task

            assert watching.words == ["added logs", "modified logs", "deleted logs"]

    run(main())


def test_a_watch_is_resumed_after_the_last_change_it_showed(folder: Path | None) -> None:
    async def main() -> None:
        async with world(folder) as here, here.open() as session:
            await session.apply(bucket("first"))
            since = (await session.list()).revision
            await session.apply(bucket())
            whole = Watching(session, since=since)
            await until(lambda: len(whole.seen) > 1 and whole.seen[-1].resource.is_ready)
            rest = Watching(session, since=whole.seen[0].revision)
            await until(lambda: len(rest.seen) == len(whole.seen) - 1)
            for one in (whole, rest):
                one.task.cancel()
                with suppress(asyncio.CancelledError):
                    await one.task

            assert [one.revision for one in rest.seen] == [one.revision for one in whole.seen[1:]]

    run(main())


def test_a_watch_of_a_file_that_is_not_there_yet_waits_for_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path) as here, here.open() as session, here.open() as other:
            watching = [Watching(session), Watching(other)]
            await asyncio.sleep(0)
            await session.apply(bucket())
            await until(lambda: all(one.seen and one.seen[-1].resource.is_ready for one in watching))
            await session.close()
            await other.close()
            await asyncio.gather(*(one.task for one in watching))

            assert {one.words[0] for one in watching} == {"added logs"}

    run(main())


# --- Controllers ------------------------------------------------------------------------------------------------------


class Running:
    """Controllers in the background: `async with Running(session)`."""

    def __init__(self, session: setpoint.Session, **options: Any) -> None:
        self.stop = asyncio.Event()
        self._work = session.run(stop=self.stop, **options)

    async def __aenter__(self) -> "Running":
        self.task = asyncio.ensure_future(self._work)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop.set()
        await self.task


def test_calls_are_handed_to_the_controllers_of_the_session(folder: Path | None) -> None:
    async def main() -> None:
        async with world(folder) as here, here.open() as session:
            await session.apply(bucket("before"))
            async with Running(session):
                applied = await session.apply(bucket())
                here.drift()
                reconciled = await session.reconcile("StorageBucket/logs")
                waited = await session.wait()
                deleted = await session.delete("StorageBucket/logs")
            after = await session.apply(bucket("after"))

            assert [one[0].outcome for one in (applied, reconciled, deleted, after)] == [
                *(ResultOutcome.CREATED, ResultOutcome.UPDATED, ResultOutcome.DELETED, ResultOutcome.CREATED),
            ]
            assert (waited.summary, here.buckets) == ({"unchanged": 2}, ["after", "before"])

    run(main())


def test_controllers_go_on_with_what_was_not_done() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            here.cloud.inject(FailRequest(503, method="POST", times=1))
            await session.apply(bucket(), wait=False)
            async with Running(session):
                await until(lambda: here.buckets == ["logs"])
                assert (await session.wait("StorageBucket/logs")).is_done

    run(main())


def test_cancelled_controllers_leave_the_store_usable(folder: Path | None) -> None:
    async def main() -> None:
        async with world(folder) as here, here.open() as session:
            task = asyncio.ensure_future(session.run())
            applying = asyncio.ensure_future(session.apply(bucket()))
            await until(lambda: here.cloud.journal.counts()["total"] > 0 or applying.done())
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await applying

            assert ((await session.apply(bucket())).is_done, here.buckets) == (True, ["logs"])

    run(main())


def test_controllers_run_once_in_a_session() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session, Running(session):
            await until(lambda: session.is_running)
            with pytest.raises(UserError, match="this session runs the controllers already"):
                await session.run()

    run(main())


def test_other_processes_are_served_when_that_is_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path) as here, here.open() as session, here.open() as other:
            async with Running(session, admin=True, metrics="127.0.0.1:0"):
                await until(lambda: (tmp_path / "state.db.sock").exists())
                result = await other.apply(bucket())

            assert (result[0].outcome, here.buckets) == (ResultOutcome.CREATED, ["logs"])
            assert not (tmp_path / "state.db.sock").exists()

    run(main())


def test_only_the_kinds_of_the_session_are_reconciled() -> None:
    async def main() -> None:
        async with world() as here, here.open(kinds=["SQLDatabase"]) as session, Running(session):
            await until(lambda: session.is_running)
            with pytest.raises(UserError, match="handles only SQLDatabase"):
                await session.apply(bucket())

    run(main())

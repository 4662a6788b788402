"""The stream: batches of changes, resumption, and what idle and slow readers cost."""

import asyncio
import json
from collections.abc import Collection, Coroutine, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.dashboard.access.viewer import Scope
from setpoint.dashboard.api.models import ActionName, Row
from setpoint.dashboard.stream import EventStream, StreamLimits
from setpoint.dashboard.views.fleet import FleetRows
from setpoint.engine.resource import ResourceRef
from tests.dashboard.pages import Page, dashboard_on
from tests.library.worlds import bucket, until, world

NEVER = 3600.0


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


class Events:
    """The events of a stream, in the background."""

    def __init__(self, page: Page, query: str = "", headers: dict[str, str] | None = None) -> None:
        self.seen: list[tuple[str, Any, str]] = []
        self.task = asyncio.ensure_future(self._read(page, query, headers or {}))

    async def _read(self, page: Page, query: str, headers: dict[str, str]) -> None:
        async with page.browser.get(f"{page.url}/api/v1/stream{query}", headers=headers) as response:
            fields: dict[str, str] = {}
            async for line in response.content:
                name, _, text = line.decode().rstrip("\n").partition(": ")
                if name in ("id", "event", "data"):
                    fields[name] = text
                elif not name and fields:
                    self.seen.append((fields["event"], json.loads(fields["data"]), fields.get("id", "")))
                    fields = {}

    def of(self, event: str) -> list[Any]:
        """The data of these events."""
        return [data for name, data, _ in self.seen if name == event]

    @property
    def names(self) -> list[str]:
        """The resources that changed, in order, once each time."""
        return [row["name"] for data in self.of("resources") for row in data["changed"]]


def test_changes_arrive_as_rows_and_deletions_as_ids() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket("first"))
            async with dashboard_on(session) as page:
                revision = (await page.get("/resources"))["revision"]
                events = Events(page, f"?since={revision}")
                await until(lambda: events.of("summary"))
                await session.apply(bucket())
                await until(lambda: "logs" in events.names)
                await session.delete("StorageBucket/logs")
                await until(lambda: any(data["deleted"] for data in events.of("resources")))
                await until(lambda: events.of("summary")[-1]["total"] == 1)

                assert "first" not in events.names
                (gone,) = [one for data in events.of("resources") for one in data["deleted"]]
                assert gone == "StorageBucket.storage.cnrm.cloud.google.com/default/logs"

    run(main())


def test_a_stream_resumes_after_the_last_event_that_its_reader_has() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket("first"))
            async with dashboard_on(session) as page:
                revision = (await page.get("/resources"))["revision"]
                await session.apply(bucket("second"), wait=False)
                await until(lambda: len(page.backend.fleet.rows) == 2)
                resumed = Events(page, headers={"Last-Event-ID": revision})
                fresh = Events(page)
                await until(lambda: "second" in resumed.names)
                await until(lambda: fresh.of("summary"))

                assert fresh.names == []

    run(main())


def test_a_reader_that_leaves_before_its_stream_begins_is_no_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with world() as here, here.open() as session, dashboard_on(session) as page:
            begun, may_go_on = asyncio.Event(), asyncio.Event()

            async def loaded(_watch: object) -> None:
                begun.set()
                await may_go_on.wait()

            monkeypatch.setattr(type(page.backend.fleet), "loaded", loaded)
            reader = Events(page)
            await begun.wait()
            reader.task.cancel()
            await page.browser.close()
            (handler,) = [one for one in asyncio.all_tasks() if "RequestHandler.start" in repr(one)]
            # Until the server has read that the connection is closed.
            for _ in range(20):
                await asyncio.sleep(0)
            may_go_on.set()
            await until(handler.done)

    run(main())

    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("revision", ["elsewhere.3", "nonsense", "0.999999999", "a.b.c"])
def test_a_reader_with_a_revision_of_another_process_is_told_to_load_anew(revision: str) -> None:
    async def main() -> None:
        async with world() as here, here.open() as session, dashboard_on(session) as page:
            events = Events(page, headers={"Last-Event-ID": revision})
            await until(lambda: events.seen)

            assert events.seen[0][0] == "reset"

    run(main())


def test_idle_streams_wake_up_for_nothing() -> None:
    async def main() -> None:
        limits = StreamLimits(rows_seconds=0.0, summary_seconds=0.0, heartbeat_seconds=NEVER, process_seconds=NEVER)
        async with world() as here, here.open() as session:
            await session.apply(bucket("first"))
            async with dashboard_on(session, limits=limits) as page:
                hub = page.backend.hub
                streams = [Events(page) for _ in range(200)]
                await until(lambda: all(one.of("summary") for one in streams))
                # Every stream sleeps from here on: turns of the loop wake none of them.
                before = hub.wakeups
                for _ in range(1_000):
                    await asyncio.sleep(0)

                assert (hub.open, hub.wakeups) == (200, before)
                await session.apply(bucket(), wait=False)
                await until(lambda: all("logs" in one.names for one in streams))
                # A few batches each, whatever the number of streams.
                assert hub.wakeups - before <= 200 * 20

    run(main())


def test_streams_beyond_the_limit_are_refused_and_those_that_end_make_room() -> None:
    async def main() -> None:
        limits = StreamLimits(streams=2, rows_seconds=0.0, summary_seconds=0.0, heartbeat_seconds=0.05)
        async with world() as here, here.open() as session, dashboard_on(session, limits=limits) as page:
            first, second = Events(page), Events(page)
            await until(lambda: page.backend.hub.open == 2)
            refused = await page.send("GET", "/api/v1/stream")
            first.task.cancel()
            await until(lambda: page.backend.hub.open == 1)
            third = Events(page)
            await until(lambda: third.of("summary"))

            assert (refused.status, refused.code) == (503, "tooManyStreams")
            assert not second.task.done()

    run(main())


def test_a_reader_that_takes_nothing_holds_no_memory_and_is_cut_off() -> None:
    async def main() -> None:
        limits = StreamLimits(rows_seconds=0.0, summary_seconds=0.0, heartbeat_seconds=0.05, write_seconds=0.2)
        async with world() as here, here.open() as session:
            await session.apply(bucket("first"))
            async with dashboard_on(session, limits=limits) as page:
                hub, rows = page.backend.hub, page.backend.fleet.rows
                await page.get("/resources")
                port = int(page.url.rpartition(":")[2])
                cookie = next(iter(page.browser.cookie_jar))
                _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
                head = f"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                writer.write(f"{head}Cookie: {cookie.key}={cookie.value}\r\n\r\n".encode())
                await until(lambda: hub.open == 1)
                row = rows.get(next(iter(rows)))
                assert row is not None
                number = 0
                # Large rows that change until the buffers of both sides are full.
                while hub.open:
                    number += 1
                    for name in range(100):
                        ref = ResourceRef("g", "K", "n", str(name))
                        rows.put(ref, _row(name, "x" * 10_000, number))
                    await asyncio.sleep(0)

                assert len(rows) == 101
                writer.close()

    run(main())


class ChangingRights:
    """A user whose rights to one namespace change."""

    user = "alice"
    is_unrestricted = False
    token = None

    def __init__(self) -> None:
        self.namespaces = {"default"}

    async def is_current(self) -> bool:
        return True

    async def decide(self, scopes: Collection[Scope]) -> Mapping[Scope, bool]:
        return {scope: scope.namespace in self.namespaces for scope in scopes}

    async def sees_processes(self) -> bool:
        return False

    async def act(self, ref: ResourceRef, action: ActionName) -> None:
        raise AssertionError("nothing is done here")


def test_a_user_who_loses_or_gains_rights_is_told_to_load_anew() -> None:
    async def main() -> None:
        async with world() as here, here.open() as session:
            await session.apply(bucket("first"))
            async with dashboard_on(session) as page:
                rows, viewer = await page.backend.fleet.loaded(), ChangingRights()
                written: asyncio.Queue[bytes] = asyncio.Queue()

                async def current() -> ChangingRights:
                    return viewer

                stream = asyncio.ensure_future(EventStream(page.backend.hub, current, None).run(written.put))
                first = await written.get()
                viewer.namespaces = set()
                rows.notify()
                lost = await written.get()
                stream.cancel()

                assert b'"total":1' in first
                assert b"event: reset" in lost
                assert b"first" not in lost

    run(main())


def test_a_session_that_ends_ends_its_streams() -> None:
    async def main() -> None:
        limits = StreamLimits(rows_seconds=0.0, summary_seconds=0.0, heartbeat_seconds=0.05)
        async with world() as here, here.open() as session, dashboard_on(session, limits=limits) as page:
            events = Events(page)
            await until(lambda: events.of("summary"))
            await page.post("/logout")
            await until(lambda: page.backend.hub.open == 0)

    run(main())


# --- Rows -------------------------------------------------------------------------------------------------------------


def _row(name: int, message: str = "", generation: int = 1) -> Row:
    return Row(
        id=f"K.g/n/{name}",
        kind="K",
        group="g",
        namespace="n",
        name=str(name),
        labels={},
        state="ready",
        reason="",
        message=message,
        drifted=False,
        since=None,
        last_step=None,
        next_step=None,
        generation=generation,
        observed_generation=generation,
    )


_changes = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3) | st.none()))


@given(_changes, _changes)
def test_a_reader_that_resumes_has_the_rows_of_one_that_loads_anew(
    before: list[tuple[int, int | None]], after: list[tuple[int, int | None]]
) -> None:
    async def main() -> None:
        rows = FleetRows()
        _apply(rows, before)
        known = {ref: found.row for ref in rows if (found := rows.get(ref))}
        number = rows.number
        _apply(rows, after)
        changes = rows.since(number)
        assert changes is not None
        for ref in changes.deleted:
            known.pop(ref, None)
        known |= {ref: one.row for ref, one in changes.changed.items()}

        loaded = {ref: found.row for ref in rows if (found := rows.get(ref))}
        assert known == loaded
        assert sum(rows.scopes.values()) == len(rows)
        assert rows.numbers_of(rows.revision_of(rows.number, 7)) == (rows.number, 7)

    asyncio.run(main())


def _apply(rows: FleetRows, changes: list[tuple[int, int | None]]) -> None:
    for name, generation in changes:
        ref = ResourceRef("g", "K", "n", str(name))
        if generation is None:
            rows.drop(ref)
        else:
            rows.put(ref, _row(name, generation=generation))

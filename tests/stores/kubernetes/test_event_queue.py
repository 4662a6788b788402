"""Events are written behind the work: correlated per resource, bounded, and never in the way of a step."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.engine.ports import EventRecord, ResourceUpdate
from setpoint.errors import RemoteRefused, RemoteUnavailable
from setpoint.stores.kubernetes.event_queue import EventQueue, QueuedEvent
from setpoint.stores.kubernetes.served_kinds import ClusterScope
from setpoint.stores.kubernetes.store import KubernetesStore
from tests.cluster.access import Access
from tests.engine.clock import FakeClock
from tests.stores.samples import REF, instance

EVENT = EventRecord(REF, "uid-1", "Normal", "Updated", "set spec.tier", "2026-01-01T00:00:00Z")


def messages(number: int) -> list[EventRecord]:
    return [replace(EVENT, message=f"set field {one}") for one in range(number)]


def sent_by(records: list[EventRecord], clock: FakeClock | None = None, pause: float = 0.0) -> list[QueuedEvent]:
    """The Events that are sent for these records, with so many seconds between them."""
    sent: list[QueuedEvent] = []

    async def send(event: QueuedEvent) -> None:
        sent.append(event)

    async def main() -> None:
        now = clock or FakeClock()
        queue = EventQueue(send, now)
        for record in records:
            queue.put(record)
            now.seconds += pause
        await queue.close()

    asyncio.run(main())
    return sent


@given(st.lists(st.sampled_from(["set a", "set b", "set c"]), max_size=25))
def test_equal_records_are_one_event_with_their_count(texts: list[str]) -> None:
    sent = sent_by([replace(EVENT, message=text) for text in texts])

    assert {one.record.message: one.record.count for one in sent} == {text: texts.count(text) for text in set(texts)}
    assert len({one.key for one in sent}) == len(sent)


def test_equal_records_have_the_same_name_and_a_long_name_fits() -> None:
    ref = REF._replace(name="a" * 253)

    def name_of(uid: str, at: str) -> str:
        return QueuedEvent.of(replace(EVENT, ref=ref, uid=uid, at=at), EVENT.message).name

    assert name_of("u", "now") == name_of("u", "later")
    assert len(name_of("u", "now")) <= 253
    assert name_of("u", "now") != name_of("other", "now")


def test_more_than_ten_messages_of_one_reason_are_combined() -> None:
    sent = sent_by(messages(14))

    assert [one.record.message for one in sent[:10]] == [f"set field {one}" for one in range(10)]
    assert [(one.record.message, one.record.count) for one in sent[10:]] == [
        ("(combined from similar events): set field 13", 4)
    ]


def test_messages_that_come_slowly_are_not_combined() -> None:
    assert len(sent_by(messages(14), pause=601)) == 14


def test_a_resource_with_very_many_events_is_throttled(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        sent = sent_by(messages(100))

    assert sum(one.record.count for one in sent) == 25
    assert [getattr(line, "lost", None) for line in caplog.records] == [1, 74]


ROUTINE = replace(EVENT, is_routine=True)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["set x", "set y"])), max_size=20))
def test_routine_records_of_a_resource_are_one_event_with_the_newest_message(edits: list[tuple[str, str]]) -> None:
    records = [replace(ROUTINE, ref=REF._replace(name=name), uid=name, message=text) for name, text in edits]

    sent = sent_by(records)

    newest = dict(edits)
    names = [name for name, _ in edits]
    assert {one.record.ref.name: (one.record.message, one.record.count) for one in sent} == {
        name: (newest[name], names.count(name)) for name in newest
    }


def test_routine_records_wait_while_others_are_sent_and_are_sent_at_the_latest_with_very_many() -> None:
    sent: list[QueuedEvent] = []

    async def send(event: QueuedEvent) -> None:
        sent.append(event)

    async def until_sent(number: int) -> None:
        while len(sent) < number:
            await asyncio.sleep(0.01)

    async def main() -> None:
        queue = EventQueue(send, FakeClock())
        queue.put(ROUTINE)
        queue.put(replace(EVENT, reason="Deleted"))
        await until_sent(1)
        assert [one.record.reason for one in sent] == ["Deleted"]
        for number in range(1023):
            queue.put(replace(ROUTINE, uid=f"uid-{number}-of-many"))
        await until_sent(1 + 1024)
        await queue.close()

    asyncio.run(main())
    assert len(sent) == 1 + 1024


@pytest.mark.parametrize(("status", "sent"), [(403, {"shop": 1, "other": 3}), (400, {"shop": 3, "other": 3})])
def test_a_namespace_in_which_events_are_forbidden_gets_none_for_a_while(status: int, sent: dict[str, int]) -> None:
    tried: list[str] = []

    async def send(event: QueuedEvent) -> None:
        tried.append(event.record.ref.namespace)
        if event.record.ref.namespace == "shop":
            raise RemoteRefused("the namespace is being terminated", status)

    async def main() -> None:
        clock = FakeClock()
        queue = EventQueue(send, clock)
        for number in range(3):
            for namespace in ("shop", "other"):
                queue.put(replace(EVENT, ref=REF._replace(namespace=namespace, name=f"one-{number}")))
            await queue.flush()
        assert {one: tried.count(one) for one in tried} == sent
        clock.seconds += 11
        queue.put(replace(EVENT, ref=REF._replace(namespace="shop", name="later")))
        await queue.close()

    asyncio.run(main())
    assert tried.count("shop") == sent["shop"] + 1


@pytest.mark.parametrize(("error", "times"), [(RemoteRefused("terminating"), 1), (RemoteUnavailable("busy"), 3)])
def test_lost_events_are_one_warning_with_their_number(
    error: Exception, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[str] = []

    async def refuse(event: QueuedEvent) -> None:
        tried.append(event.name)
        raise error

    async def main() -> None:
        queue = EventQueue(refuse, FakeClock())
        for number in range(500):
            queue.put(replace(EVENT, uid=f"uid-{number}"))
        await queue.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())

    assert len(tried) == 500 * times
    assert [(line.message, getattr(line, "lost", None)) for line in caplog.records] == [
        ("events not written", 1),
        ("events not written", 499),
    ]


def test_the_queue_is_bounded_and_neither_waits_nor_raises() -> None:
    async def never(_: QueuedEvent) -> None:
        await asyncio.Event().wait()

    async def main() -> int:
        queue = EventQueue(never, FakeClock())
        for number in range(10_000):
            queue.put(replace(EVENT, uid=f"uid-{number}"))
        await queue.flush(0.01)
        return len(asyncio.all_tasks())

    # The test itself, the task of the queue and four requests.
    assert asyncio.run(main()) == 6


@pytest.fixture
def new_store(prepared: Access, cluster_scope: ClusterScope) -> Callable[[], KubernetesStore]:
    """Opens a store in the cluster, as another process would."""
    return lambda: KubernetesStore(
        KubernetesClient(connection_from_files([prepared.kubeconfig])), FakeClock(), cluster_scope
    )


def test_another_process_counts_on(
    store: KubernetesStore, loop: asyncio.Runner, new_store: Callable[[], KubernetesStore]
) -> None:
    async def record(into: KubernetesStore, times: int) -> None:
        created = await into.apply(instance())
        for _ in range(times):
            await into.update(created, ResourceUpdate(events=[EVENT]))

    async def main() -> tuple[EventRecord, ...]:
        await record(store, 2)
        await store.events()
        other = new_store()
        await record(other, 3)
        await other.close()
        return await store.events(REF)

    assert loop.run(main()) == (replace(EVENT, count=5),)


def test_a_shutdown_writes_what_is_queued(
    store: KubernetesStore, loop: asyncio.Runner, new_store: Callable[[], KubernetesStore]
) -> None:
    async def main() -> tuple[EventRecord, ...]:
        other = new_store()
        await other.record_event(EVENT)
        await other.close()
        return await store.events(REF)

    assert loop.run(main()) == (EVENT,)

"""Notifications: what is sent to whom and when, to real HTTP servers that answer, refuse, ask to wait, and hang."""

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from setpoint.clients.http import HttpClient
from setpoint.core.conditions import Condition, conditions_to_data
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import StoreError
from setpoint.runtime.notify import notifier
from setpoint.runtime.notify.ledger import FileStorage, Ledger
from setpoint.runtime.notify.notifier import Delivery, DeliveryResult, Notifier
from setpoint.runtime.notify.problems import PROBLEMS, Problem, problem_of
from setpoint.runtime.notify.receivers import receivers_of
from setpoint.testing.clock import VirtualClock
from tests.runtime.receivers import TestReceiver, receiving

TEXTS = st.text(max_size=60)


def ref(name: str) -> ResourceRef:
    return ResourceRef("storage.cnrm.cloud.google.com", "StorageBucket", "default", name)


def resource(name: str, *conditions: Condition, **more: Any) -> Resource:
    one = ref(name)
    metadata = {"name": one.name, "namespace": one.namespace, "uid": f"uid-of-{name}"}
    head: dict[str, Any] = {"apiVersion": f"{one.group}/v1beta1", "kind": one.kind, "metadata": metadata}
    return Resource({**head, **more, "status": {"conditions": conditions_to_data(conditions)}})


READY = Condition("Ready", "True", "UpToDate", "The resource is up to date", "2026-01-01T00:00:00Z")
UPDATING = Condition("Ready", "False", "Updating", "Update in progress", "2026-01-01T00:00:00Z")
FAILED = Condition("Ready", "False", "UpdateFailed", "403: no", "2026-01-01T00:00:05Z")
NOT_KEPT = Condition("Ready", "False", "NotConverged", "not kept: spec.a", "2026-01-01T00:00:05Z")
OBSERVED = Condition("Ready", "False", "Observed", "differs in spec.a", "2026-01-01T00:00:05Z")
CONTESTED = Condition("Contested", "True", "Oscillation", "spec.a", "2026-01-01T00:00:05Z")


@dataclass
class World:
    """The resources that there are, in the place of an index and a store."""

    resources: dict[ResourceRef, Resource] = field(default_factory=dict)
    held: set[int] = field(default_factory=lambda: {0})

    def put(self, *resources: Resource) -> None:
        self.resources |= {one.ref: one for one in resources}

    def problem(self, of: ResourceRef) -> Problem | None:
        found = self.resources.get(of)
        return None if found is None else problem_of(found)

    def with_problems(self) -> list[ResourceRef]:
        return [one for one in self.resources if self.problem(one) in PROBLEMS]

    def holds(self, _of: ResourceRef) -> bool:
        return 0 in self.held

    async def read(self, of: ResourceRef) -> Resource | None:
        return self.resources.get(of)


@dataclass
class Process:
    """A process with one receiver."""

    world: World
    delivery: Delivery
    clock: VirtualClock

    def changed(self, *names: str) -> None:
        for name in names:
            self.delivery.add(ref(name))


def run(
    receiver: TestReceiver,
    story: Callable[[Process], Awaitable[None]],
    *,
    address: str = "",
    storage: FileStorage | None = None,
    secret: bytes | None = None,
    world: World | None = None,
) -> Delivery:
    """Runs a story beside a delivery to the receiver."""
    (known,) = receivers_of([address or receiver.url], {})

    async def main() -> Delivery:
        clock, found = VirtualClock(), world or World()
        ledger = Ledger(storage, lambda _ref: 0)
        await ledger.hold({0})
        http = HttpClient()
        delivery = Delivery(known, found, found.read, http, clock, ledger, secret)
        task = asyncio.create_task(delivery.run(lambda: 1.0))
        try:
            await story(Process(found, delivery, clock))
            await idle(delivery)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await http.close()
        return delivery

    return asyncio.run(main())


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


async def idle(delivery: Delivery) -> None:
    await until(lambda: not delivery.pending and delivery.is_idle)


def test_a_problem_is_told_once_and_again_after_it_was_over() -> None:
    async def story(process: Process) -> None:
        for state in (READY, FAILED, UPDATING, FAILED, READY, FAILED):
            process.world.put(resource("one", state))
            process.changed("one", "one")
            await idle(process.delivery)

    with receiving() as receiver:
        delivery = run(receiver, story)

        assert receiver.told() == [
            ("raised", "failed", "one"),
            ("resolved", "failed", "one"),
            ("raised", "failed", "one"),
        ]
        assert delivery.counts == {DeliveryResult.SENT: 3}


def test_one_problem_that_takes_the_place_of_another_ends_it() -> None:
    async def story(process: Process) -> None:
        for state in (FAILED, NOT_KEPT, OBSERVED, CONTESTED):
            process.world.put(resource("one", state))
            process.changed("one")
            await idle(process.delivery)
        process.world.resources.clear()
        process.changed("one")

    with receiving() as receiver:
        run(receiver, story)

        kinds = ["failed", "notConverged", "drift", "contested"]
        assert [(type_, problem) for type_, problem, _ in receiver.told()] == [
            (type_, problem) for problem in kinds for type_ in ("raised", "resolved")
        ]
        assert receiver.received[-1].json["reason"] == "Deleted"


def test_what_a_receiver_does_not_want_is_not_sent() -> None:
    async def story(process: Process) -> None:
        process.world.put(resource("one", FAILED), resource("two", OBSERVED))
        process.changed("one", "two")

    with receiving() as receiver:
        run(receiver, story, address=f"{receiver.url}/hook#on=drift")

        assert receiver.told() == [("raised", "drift", "two")]
        assert receiver.received[0].path == "/hook"


@pytest.mark.parametrize("answer", [(500, {}), (503, {}), (429, {}), (408, {})])
def test_a_message_is_retried_until_it_is_accepted(answer: tuple[int, dict[str, str]]) -> None:
    async def story(process: Process) -> None:
        process.world.put(resource("one", FAILED))
        process.changed("one")

    with receiving(answer, answer, answer) as receiver:
        delivery = run(receiver, story)

        assert receiver.told() == [("raised", "failed", "one")] * 4
        assert len({one.json["id"] for one in receiver.received}) == 1
        assert delivery.counts == {DeliveryResult.FAILED: 3, DeliveryResult.SENT: 1}


def test_retry_after_is_honoured() -> None:
    async def story(process: Process) -> None:
        process.world.put(resource("one", FAILED))
        process.changed("one")
        await idle(process.delivery)
        assert process.clock.seconds >= 77

    with receiving((429, {"Retry-After": "77"})) as receiver:
        run(receiver, story)

        assert len(receiver.received) == 2


def test_what_a_receiver_refuses_is_not_repeated() -> None:
    async def story(process: Process) -> None:
        process.world.put(resource("one", FAILED), resource("two", FAILED))
        process.changed("one", "two", "one")

    with receiving((404, {})) as receiver:
        delivery = run(receiver, story)

        assert receiver.told() == [("raised", "failed", "one"), ("raised", "failed", "two")]
        assert delivery.counts == {DeliveryResult.REFUSED: 1, DeliveryResult.SENT: 1}


def test_a_receiver_that_is_not_there_gets_what_is_so_once_it_is() -> None:
    with receiving() as gone:
        address = gone.url
    world = World()

    async def story(process: Process) -> None:
        world.put(resource("one", FAILED), resource("two", FAILED))
        process.changed("one", "two")
        await until(lambda: process.delivery.counts[DeliveryResult.FAILED] >= 3)
        # What has passed meanwhile is not told of.
        world.put(resource("one", READY), resource("two", READY))

    delivery = run(gone, story, address=address, world=world)

    assert set(delivery.counts) == {DeliveryResult.FAILED}


def test_a_receiver_that_hangs_is_given_up_and_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "SEND_SECONDS", 0.2)

    async def story(process: Process) -> None:
        process.world.put(resource("one", FAILED))
        before = process.clock.seconds
        process.changed("one")
        # `add` is all that a step sees of it.
        assert process.clock.seconds == before

    with receiving((0, {})) as receiver:
        delivery = run(receiver, story)

        assert delivery.counts == {DeliveryResult.FAILED: 1, DeliveryResult.SENT: 1}


def test_a_queue_is_bounded_and_what_did_not_fit_is_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "MAX_PENDING", 3)
    names = [f"b{number}" for number in range(8)]

    async def main(receiver: TestReceiver) -> None:
        (known,) = receivers_of([receiver.url], {})
        world, clock, http = World(), VirtualClock(), HttpClient()
        world.put(*(resource(name, FAILED) for name in names))
        ledger = Ledger(None, lambda _ref: 0)
        delivery = Delivery(known, world, world.read, http, clock, ledger)
        running = Notifier([delivery], world, ledger, clock)

        async def synced() -> None:
            """At once."""

        task = asyncio.create_task(running.run(synced(), lambda: frozenset({0})))
        await until(lambda: len(receiver.received) == len(names))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await http.close()

    with receiving() as receiver:
        asyncio.run(main(receiver))

        assert sorted(name for _, _, name in receiver.told()) == names


def test_a_restart_neither_repeats_nor_forgets(tmp_path: Path) -> None:
    storage, world = FileStorage(tmp_path / "state.db"), World()
    world.put(resource("one", FAILED), resource("two", FAILED))

    async def first(process: Process) -> None:
        process.changed("one", "two")

    async def second(process: Process) -> None:
        # One recovered while no process ran, one is new, one is as it was.
        world.put(resource("one", READY), resource("three", OBSERVED))
        process.changed("one", "two", "three")

    with receiving() as receiver:
        run(receiver, first, storage=storage, world=world)
        run(receiver, second, storage=storage, world=world)

        assert receiver.told() == [
            ("raised", "failed", "one"),
            ("raised", "failed", "two"),
            ("resolved", "failed", "one"),
            ("raised", "drift", "three"),
        ]
        assert (tmp_path / "state.db.notified").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"version": 2}', b'{"version":1,"receivers":{"a":[{"ref":[1]}]}}']
)
def test_a_damaged_record_is_an_error_that_says_what_to_do(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state.db.notified").write_bytes(content)

    with pytest.raises(StoreError, match=r"is damaged .*: remove .*state\.db\.notified"):
        asyncio.run(Ledger(FileStorage(tmp_path / "state.db"), lambda _ref: 0).hold({0}))


def test_a_message_is_signed_with_its_time() -> None:
    async def story(process: Process) -> None:
        process.world.put(resource("one", FAILED))
        process.changed("one")

    with receiving() as receiver:
        run(receiver, story, secret=b"a secret of some length")

        (one,) = receiver.received
        fields = dict(part.split("=") for part in one.headers["setpoint-signature"].split(","))
        signed = fields["t"].encode() + b"." + one.body
        assert fields["v1"] == hmac.new(b"a secret of some length", signed, hashlib.sha256).hexdigest()
        assert fields["t"] == "1767225600"

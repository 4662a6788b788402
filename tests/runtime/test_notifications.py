"""Notifications: what is sent to whom and when, to real HTTP servers that answer, refuse, ask to wait, and hang."""

import asyncio
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orjson import loads

from setpoint.clients.http import HttpClient
from setpoint.core.conditions import Condition, conditions_to_data
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import StoreError, UserError
from setpoint.runtime.notify import notifier
from setpoint.runtime.notify.ledger import FileStorage, Ledger
from setpoint.runtime.notify.messages import (
    Incident,
    MessageFormat,
    MessageType,
    Notification,
    encode,
    header_value,
    signature,
)
from setpoint.runtime.notify.notifier import Delivery, DeliveryResult, Notifier
from setpoint.runtime.notify.problems import PROBLEMS, Problem, problem_of
from setpoint.runtime.notify.receivers import Receiver, receivers_of, signing_secret
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


# --- Formats ----------------------------------------------------------------------------------------------------------


def message(text: str = "403: no", name: str = "one", **more: Any) -> Notification:
    failed = Condition("Ready", "False", "UpdateFailed", text, "2026-01-01T00:00:05Z")
    found = resource(name, failed, **more)
    incident = Incident.of(found, Problem.FAILED)
    return Notification.of(MessageType.RAISED, incident, found, "2026-01-01T00:00:09Z")


def is_cloud_event(event: Mapping[str, Any]) -> bool:
    """The rules of the JSON format of CloudEvents 1.0, and of its context attributes."""
    required = [event["specversion"] == "1.0", *(event[name] != "" for name in ("id", "source", "type", "subject"))]
    names = all(re.fullmatch("[a-z0-9]{1,20}", name) for name in event)
    texts = all(isinstance(value, str) for name, value in event.items() if name != "data")
    time = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", event["time"]) is not None
    return all(required) and names and texts and time and "data" in event and "data_base64" not in event


def test_a_webhook_gets_the_message_as_json() -> None:
    encoded = encode(message(), MessageFormat.WEBHOOK)
    identity = message().incident.id

    assert encoded.headers == {"content-type": "application/json"}
    assert loads(encoded.body) == {
        "version": "1",
        "id": f"{identity}-raised",
        "type": "raised",
        "problem": "failed",
        "problemId": identity,
        "resource": {**ref("one")._asdict(), "uid": "uid-of-one"},
        "reason": "UpdateFailed",
        "message": "403: no",
        "since": "2026-01-01T00:00:05Z",
        "at": "2026-01-01T00:00:09Z",
    }


@given(TEXTS, st.from_regex(r"/[a-z0-9/\-]{1,20}", fullmatch=True))
def test_every_cloud_event_keeps_the_rules_in_both_modes(text: str, source: str) -> None:
    one = message(text)
    structured = encode(one, MessageFormat.CLOUDEVENTS, source)
    binary = encode(one, MessageFormat.CLOUDEVENTS_BINARY, source)

    event = loads(structured.body)
    attributes = {name.removeprefix("ce-"): unquote(value) for name, value in binary.headers.items() if "ce-" in name}

    assert structured.headers == {"content-type": "application/cloudevents+json; charset=utf-8"}
    assert is_cloud_event(event)
    assert event["data"] == loads(binary.body)
    assert attributes == {name: event[name] for name in event if name not in ("data", "datacontenttype")}
    assert binary.headers["content-type"] == event["datacontenttype"] == "application/json"


@given(TEXTS)
def test_a_header_has_printable_ascii_alone_and_reads_back(text: str) -> None:
    value = header_value(text)

    assert re.fullmatch(r"[\x21\x23-\x7e]*", value)
    assert unquote(value) == text


@given(TEXTS)
def test_no_text_gets_out_of_a_slack_message(text: str) -> None:
    body = loads(encode(message(f"a {text}"), MessageFormat.SLACK).body)
    first, second = body["text"].split("\n")

    assert list(body) == ["text"]
    assert first == ":red_circle: *failed* StorageBucket default/one"
    assert second.startswith("> UpdateFailed: a")
    assert not set("<>") & set(second[2:])


def test_the_text_of_what_holds_a_secret_is_left_out() -> None:
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "c2VjcmV0"}}
    one = message("the value c2VjcmV0 is refused", spec={"manifest": manifest})

    assert one.text == "(redacted)"


def test_a_long_text_is_shortened() -> None:
    assert len(message("x" * 100_000).text.encode()) <= 2_000


@given(st.binary(max_size=40), st.binary(min_size=1, max_size=40), st.integers(0, 10**10))
def test_a_signature_depends_on_body_secret_and_time(body: bytes, secret: bytes, at: int) -> None:
    found = {signature(body, secret, at), signature(body + b"x", secret, at), signature(body, secret, at + 1)}

    assert len({one.partition("v1=")[2] for one in found}) == 3


# --- Addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("hooks.example.com/a", "begins with ''"),
        ("ftp://example.com", "begins with 'ftp'"),
        ("teams+https://example.com", "'teams' is no format: write webhook, slack, cloudevents"),
        ("https://", "names no host"),
        ("https://example.com:port", "is no URL"),
        ("https://user:word@example.com/x", "of example.com, has a user or a password"),
        ("https://example.com/a b", "percent-encode"),
        ("https://example.com/ä", "percent-encode"),
        ("https://example.com/#on=broken", "'broken' after on= is no problem: write failed, contested"),
        ("https://example.com/#of=failed", "'of' after # is unknown"),
        ("https://example.com/#failed", "after # is unknown"),
        ("https://example.com/#source=a%20b", "no URI reference"),
        ("@/no/such/file", "/no/such/file cannot be read"),
    ],
)
def test_a_wrong_address_is_refused_at_the_start(address: str, why: str) -> None:
    with pytest.raises(UserError) as caught:
        receivers_of([address], {})

    assert why in str(caught.value)
    assert "word" not in str(caught.value).replace("password", "")


def test_addresses_come_from_options_from_a_file_and_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "receivers"
    file.write_text("# on call\nslack+https://hooks.example.com/T0/secret\n\nhttp://b.example.com:8080/x#on=failed\n")

    def names(found: tuple[Receiver, ...]) -> list[tuple[str, str, str]]:
        return [(one.name, one.format.value, one.url) for one in found]

    assert names(receivers_of([f"@{file}"], {})) == [
        ("1 hooks.example.com", "slack", "https://hooks.example.com/T0/secret"),
        ("2 b.example.com", "webhook", "http://b.example.com:8080/x"),
    ]
    assert names(receivers_of([], {"SETPOINT_NOTIFY": " cloudevents-binary+http://c/ "})) == [
        ("1 c", "cloudevents-binary", "http://c/")
    ]
    assert "secret" not in repr(receivers_of([f"@{file}"], {}))
    with pytest.raises(UserError, match="two of the addresses are the same"):
        receivers_of(["http://c/", "http://c/#on=failed"], {})


def test_a_secret_that_is_too_short_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("0123456789abcdef\n")

    assert signing_secret(str(file), {}) == b"0123456789abcdef"
    assert signing_secret(None, {"SETPOINT_NOTIFY_SECRET": "0123456789abcdef"}) == b"0123456789abcdef"
    assert signing_secret(None, {}) is None
    with pytest.raises(UserError, match="has 4 bytes: take at least 16"):
        signing_secret(None, {"SETPOINT_NOTIFY_SECRET": "word"})

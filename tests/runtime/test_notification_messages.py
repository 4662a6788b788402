"""Messages of notifications: their forms, their signature, and the addresses of receivers."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orjson import loads

from setpoint.core.conditions import Condition, conditions_to_data
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import UserError
from setpoint.runtime.notify.messages import (
    Incident,
    MessageFormat,
    MessageType,
    Notification,
    encode,
    header_value,
    signature,
)
from setpoint.runtime.notify.problems import Problem
from setpoint.runtime.notify.receivers import Receiver, receivers_of, signing_secret

TEXTS = st.text(max_size=60)
REF = ResourceRef("storage.cnrm.cloud.google.com", "StorageBucket", "default", "one")


def resource(condition: Condition, **more: Any) -> Resource:
    metadata = {"name": REF.name, "namespace": REF.namespace, "uid": "uid-of-one"}
    head: dict[str, Any] = {"apiVersion": f"{REF.group}/v1beta1", "kind": REF.kind, "metadata": metadata}
    return Resource({**head, **more, "status": {"conditions": conditions_to_data((condition,))}})


def message(text: str = "403: no", **more: Any) -> Notification:
    failed = Condition("Ready", "False", "UpdateFailed", text, "2026-01-01T00:00:05Z")
    found = resource(failed, **more)
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
        "resource": {**REF._asdict(), "uid": "uid-of-one"},
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

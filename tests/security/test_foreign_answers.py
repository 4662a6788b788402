"""What of the answers of a server reaches messages: never a page, never control characters, never without a limit."""

import asyncio
import json
import socket
from contextlib import aclosing
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.foreign_errors import error_summary, foreign_text
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.errors import error_for_response
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.clients.kubernetes.watch import WatchTimeouts, watch
from setpoint.clients.sockets import AddressPolicy
from setpoint.errors import HeldByOthers, RemoteError, RemoteInvalid, RemoteUnavailable
from tests.clients.fake_api_server import FakeCredentials, fake_api_server, sends_events
from tests.clients.loopback_servers import Conversation, raw_server, sends
from tests.clients.scripted_http import ScriptedHttp

PODS = Endpoint("", "v1", "pods", "shop")
TENANTS = ClusterConnection("context c of a Secret", "https://api.example.com", addresses=AddressPolicy())
JSON = {"Content-Type": "application/json"}
TERMINAL = "\x1b[2J\x9b31m\x07\x00\u202egnirts\u200b\u2028\r\n"


async def message_for(response: HttpResponse, connection: ClusterConnection = TENANTS) -> str:
    """The message for an error response."""
    client = KubernetesClient(connection, FakeCredentials(left=0), ScriptedHttp(response))
    with pytest.raises(RemoteError) as caught:
        await client.list(PODS)
    return str(caught.value)


def error_of(response: HttpResponse, connection: ClusterConnection = TENANTS) -> str:
    return asyncio.run(message_for(response, connection))


CONTENT_TYPES = ("text/plain", "application/json", "text/html", "application/octet-stream", "")
ERRORS = (301, 400, 401, 403, 404, 409, 410, 418, 422, 429, 500, 503)


@pytest.mark.parametrize(
    "body",
    [
        b"hunter2",
        b'"hunter2"',
        b'{"message": "hunter2", "reason": "hunter2", "details": {"name": "hunter2"}}',
        b'{"kind": "Secret", "message": "hunter2"}',
        b'{"kind": "status", "message": "hunter2"}',
        b'{"kind": ["Status"], "message": "hunter2"}',
        b'{"kind": "Status", "message": ["hunter2"]}',
        b'{"error": {"message": "hunter2"}}',
        b"\xff\xfehunter2",
    ],
)
def test_of_an_error_page_a_tenant_sees_the_status_code_alone(body: bytes) -> None:
    async def main() -> list[tuple[int, str]]:
        headers = {"Location": "https://hunter2.test", "Warning": '299 - "hunter2"'}
        return [
            (status, await message_for(HttpResponse(status, {**headers, "Content-Type": content_type}, body)))
            for status, content_type in product(ERRORS, CONTENT_TYPES)
        ]

    messages = asyncio.run(main())

    assert [one for status, one in messages if not one.startswith(f"GET /api/v1/namespaces/shop/pods: {status}")] == []
    assert [one for _, one in messages if "hunter2" in one] == []


def test_of_an_api_server_a_tenant_sees_reason_and_message() -> None:
    body = json.dumps({"kind": "Status", "reason": "Forbidden", "message": 'pods is "forbidden"'}).encode()

    message = error_of(HttpResponse(403, JSON, body))

    assert message == 'GET /api/v1/namespaces/shop/pods: 403: Forbidden: pods is "forbidden"'


def test_a_server_of_the_operator_may_answer_with_text() -> None:
    own = ClusterConnection("context prod", "https://api.example.com")

    assert error_of(HttpResponse(403, {"Content-Type": "text/plain"}, b"no quota"), own).endswith(": 403: no quota")


# --- What a message holds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 403, 404, 409, 422, 429, 500])
def test_messages_hold_no_control_characters_and_have_a_limit(status: int) -> None:
    text = TERMINAL + "x" * 1_000_000
    causes = [{"reason": "FieldManagerConflict", "message": f'conflict with "{text}"', "field": text}] * 40
    body = {"kind": "Status", "reason": text, "message": text, "details": {"kind": "pods", "causes": causes}}

    error = error_for_response("GET /x", HttpResponse(status, JSON, json.dumps(body).encode()))

    shown = [str(error)]
    if isinstance(error, RemoteInvalid):
        shown += [part for cause in error.causes for part in cause]
    if isinstance(error, HeldByOthers):
        shown += [part for field in error.held for part in field]
    assert [one for one in shown if not one.replace("\n", "").isprintable()] == []
    assert max(map(len, shown)) < 20_000


def test_a_message_that_names_many_fields_is_searched_up_to_a_limit() -> None:
    message = "failed to create typed patch object (x; v1, Kind=Pod): " + "." * 1_000_000 + ".spec.a: is wrong"

    error = error_for_response("GET /x", HttpResponse(500, JSON, json.dumps({"message": message}).encode()))

    assert isinstance(error, RemoteInvalid)
    assert sum(len(part) for cause in error.causes for part in cause) < 20_000


@pytest.mark.laws
@given(st.text(), st.integers(1, 50))
def test_foreign_text_is_one_printable_line_of_limited_length(text: str, longest: int) -> None:
    shown = foreign_text(text, longest=longest)

    assert shown.isprintable()
    assert len(shown) <= longest
    assert foreign_text(shown, longest=longest) == shown.strip()


def test_plain_text_stays_as_it_is() -> None:
    assert (
        error_summary(500, "InternalError", "größer \n als 日本", longest=100) == "500: InternalError: größer als 日本"
    )


@pytest.mark.laws
@given(st.binary())
def test_any_body_of_a_tenant_makes_an_error_of_ours(body: bytes) -> None:
    assert error_of(HttpResponse(500, JSON, body)).startswith("GET /api/v1/namespaces/shop/pods: 500")


# --- Answers that are no HTTP -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "conversation",
    [
        sends("SSH-2.0-hunter2\r\n\r\n"),
        sends("hunter2"),
        sends("HTTP/1.1 200 hunter2\r\nX-Secret: hunter2\r\n"),
        sends("HTTP/1.1 200 OK\r\nX hunter2\r\n\r\n"),
        sends("HTTP/1.1 200 OK\r\nContent-Length: hunter2\r\n\r\n"),
        sends("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhunter2"),
        sends("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhunter2\r\nhunter2\r\n"),
        sends("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 7\r\n\r\nhunter2"),
        sends("HTTP/1.1 200 OK\r\nX: " + "hunter2" * 5000 + "\r\n\r\n"),
    ],
    ids=["greeting", "text", "half", "header", "length", "short", "chunk", "encoding", "long header"],
)
@pytest.mark.parametrize("is_stream", [False, True])
def test_bytes_that_are_no_http_are_not_shown(conversation: Conversation, is_stream: bool) -> None:
    async def main() -> str:
        client = HttpClient()
        async with raw_server(conversation) as place:
            request = HttpRequest("GET", f"http://{place}/path")
            try:
                with pytest.raises(RemoteUnavailable) as caught:
                    await ((await client.open(request, 60.0)).whole() if is_stream else client.send(request))
            finally:
                await client.close()
        return str(caught.value)

    message = asyncio.run(main())

    assert message.startswith("GET /path: ")
    assert "hunter2" not in message


def test_a_failed_connection_does_not_tell_what_a_name_resolves_to(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = socket.getaddrinfo
    addresses = ("127.0.0.1", "127.0.0.2")
    monkeypatch.setattr(
        "socket.getaddrinfo", lambda _host, *rest, **more: [one for a in addresses for one in resolve(a, *rest, **more)]
    )

    async def main() -> str:
        client = HttpClient()
        try:
            with pytest.raises(RemoteUnavailable) as caught:
                await client.send(HttpRequest("GET", "https://internal.example.com:1/x"))
            return str(caught.value)
        finally:
            await client.close()

    message = asyncio.run(main())

    assert message.startswith("GET /x: cannot connect to internal.example.com:1: Connection refused: ")
    assert "127.0.0" not in message


# --- Watches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        {"type": "ERROR", "object": {"kind": "Secret", "code": 403, "message": "hunter2"}},
        {"type": "ERROR", "object": {"message": f"hunter2{TERMINAL}", "code": 10**30}},
        {"type": f"hunter2{TERMINAL}" * 1000},
    ],
)
def test_what_is_no_status_in_a_watch_is_not_shown(event: dict[str, Any]) -> None:
    async def main() -> str:
        async with fake_api_server(sends_events(event), credentials=FakeCredentials()) as (_, client):
            async with aclosing(watch(client, PODS, "1", timeouts=WatchTimeouts(retry=0.0))) as events:
                with pytest.raises(RemoteUnavailable) as caught:
                    await anext(events)
            return str(caught.value)

    message = asyncio.run(main())

    assert message in (
        "watch /api/v1/namespaces/shop/pods: 500",
        "watch /api/v1/namespaces/shop/pods: 500: this is no event of a watch",
    )

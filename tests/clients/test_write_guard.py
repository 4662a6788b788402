"""A client with a write guard writes nothing; every attempt is recorded."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.http import HttpClient, HttpInterceptor, HttpRequest, HttpResponse, intercepted_by
from setpoint.clients.ratelimit.fair_queue import on_behalf_of
from setpoint.clients.write_guard import BlockedWrite, BlockedWrites, WriteGuard
from setpoint.core.redaction import redact_untyped
from setpoint.core.values.json_types import Json
from setpoint.errors import Bug, RemoteError, RemoteUnavailable, SetpointError, WriteBlocked
from tests.clients.loopback_servers import http_server
from tests.laws.json_values import json_values

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW")
BODY = json.dumps({"labels": {"a": "b"}, "versioning": {"enabled": True}, "rootPassword": "hunter2"}).encode()


async def _sent(
    client: HttpClient, requests: Sequence[HttpRequest], path: str = "/b/logs"
) -> tuple[list[str], list[str]]:
    """The methods that arrived, and what was said to those whose requests did not."""
    arrived, told = list[str](), list[str]()

    async def handler(request: web.BaseRequest) -> web.Response:
        arrived.append(request.method)
        return web.Response(text="ok")

    async with http_server(handler) as url:
        for one in requests:
            try:
                await client.send(HttpRequest(one.method, f"{url}{path}{one.url}", body=one.body))
            except WriteBlocked as error:
                told.append(str(error))
        await client.close()
    return arrived, told


@pytest.mark.parametrize("method", METHODS)
def test_only_reads_arrive(method: str) -> None:
    blocked_writes = BlockedWrites()

    arrived, told = asyncio.run(
        _sent(HttpClient(interceptor=WriteGuard("google", blocked_writes)), [HttpRequest(method, "")])
    )

    is_read = method in ("GET", "HEAD")
    assert arrived == ([method] if is_read else [])
    assert len(told) == len(blocked_writes.writes) == (0 if is_read else 1)


def test_a_blocked_write_is_recorded_with_its_fields_and_without_secrets() -> None:
    blocked_writes = BlockedWrites()

    async def scenario() -> list[str]:
        with on_behalf_of("StorageBucket default/logs", failed=False):
            client = HttpClient(interceptor=WriteGuard("google", blocked_writes))
            return (await _sent(client, [HttpRequest("PATCH", "?key=secret", body=BODY)]))[1]

    told = asyncio.run(scenario())

    body: Json = {"labels": {"a": "b"}, "versioning": {"enabled": True}, "rootPassword": "(redacted)"}
    fields = ("labels.a", "versioning.enabled", "rootPassword")
    write = BlockedWrite("google", "PATCH", "/b/logs", "StorageBucket default/logs", body, fields)
    assert blocked_writes.writes == [write]
    assert told == ["PATCH /b/logs (google): nothing may be written here; a preview only reads"]


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"{", b"[1]", b'"text"', b"null"])
def test_whatever_the_body_is_the_write_is_stopped(body: bytes) -> None:
    blocked_writes = BlockedWrites()

    arrived, told = asyncio.run(
        _sent(HttpClient(interceptor=WriteGuard("google", blocked_writes)), [HttpRequest("POST", "", body=body)])
    )

    assert (arrived, len(told), len(blocked_writes.writes)) == ([], 1, 1)


def test_a_client_without_an_interceptor_of_its_own_is_guarded_as_well() -> None:
    blocked_writes = BlockedWrites()

    async def scenario() -> tuple[list[str], list[str]]:
        with intercepted_by(WriteGuard("elsewhere", blocked_writes)):
            # In a task of its own, too.
            return await asyncio.create_task(_sent(HttpClient(), [HttpRequest("GET", ""), HttpRequest("PUT", "")]))

    arrived, told = asyncio.run(scenario())

    assert (arrived, len(told)) == (["GET"], 1)
    assert [str(one) for one in blocked_writes.writes] == ["PUT /b/logs (elsewhere)"]


def test_an_answer_that_comes_bit_by_bit_is_asked_for_like_any_other() -> None:
    async def scenario(interceptor: HttpInterceptor) -> None:
        client = HttpClient(interceptor=interceptor)
        try:
            await client.open(HttpRequest("POST", "http://127.0.0.1:1/b"), 1.0)
        finally:
            await client.close()

    with pytest.raises(WriteBlocked):
        asyncio.run(scenario(WriteGuard("google", BlockedWrites())))
    with pytest.raises(Bug, match="a stream cannot be replayed"):
        asyncio.run(scenario(Knowing()))


# --- What a cluster only rehearses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "query", "body"),
    [("PATCH", "?dryRun=All", b""), ("POST", "?a=b&dryRun=All", b""), ("DELETE", "", b'{"dryRun": ["All"]}')],
)
def test_a_cluster_may_be_asked_what_it_would_do(method: str, query: str, body: bytes) -> None:
    def arrived(*, is_cluster: bool) -> list[str]:
        interceptor = WriteGuard("own", BlockedWrites(), is_cluster=is_cluster)
        return asyncio.run(_sent(HttpClient(interceptor=interceptor), [HttpRequest(method, query, body=body)]))[0]

    assert arrived(is_cluster=True) == [method]
    assert arrived(is_cluster=False) == []


@pytest.mark.parametrize(
    ("method", "query", "body"),
    [
        ("PATCH", "", b'{"dryRun": ["All"]}'),
        ("PATCH", "?dryRun=", b""),
        ("PATCH", "?dryRun=None", b""),
        ("PATCH", "?dryRun=All&dryRun=None", b""),
        ("PATCH", "?dryrun=All", b""),
        ("DELETE", "", b'{"dryRun": "All"}'),
        ("DELETE", "", b'{"dryRun": ["None"]}'),
        ("DELETE", "", b"[]"),
    ],
)
def test_what_is_not_surely_a_rehearsal_is_none(method: str, query: str, body: bytes) -> None:
    client = HttpClient(interceptor=WriteGuard("own", BlockedWrites(), is_cluster=True))

    assert asyncio.run(_sent(client, [HttpRequest(method, query, body=body)]))[0] == []


# --- What is behind it ------------------------------------------------------------------------------------------------


class Knowing:
    """Knows the answer to everything but `/unknown`, and hears what became of that."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        return None if request.url.endswith("/unknown") else HttpResponse(200, {}, b"known")

    def on_response(self, request: HttpRequest, answer: HttpResponse) -> HttpResponse:
        self.heard.append(answer.body.decode())
        return HttpResponse(answer.status, answer.headers, b"heard")

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        self.heard.append(type(error).__name__)


def test_reads_meet_what_is_behind_and_writes_do_not() -> None:
    async def scenario() -> tuple[list[bytes], list[str]]:
        behind = Knowing()
        client = HttpClient(interceptor=WriteGuard("google", BlockedWrites(), behind=behind))

        async def handler(_request: web.BaseRequest) -> web.Response:
            return web.Response(text="asked")

        async with http_server(handler) as url:
            read = [(await client.send(HttpRequest("GET", f"{url}{path}"))).body for path in ("/known", "/unknown")]
            with pytest.raises(WriteBlocked):
                await client.send(HttpRequest("POST", f"{url}/known"))
        with pytest.raises(RemoteUnavailable):
            await client.send(HttpRequest("GET", f"{url}/unknown"))
        await client.close()
        return read, behind.heard

    assert asyncio.run(scenario()) == ([b"known", b"heard"], ["asked", "RemoteUnavailable"])


# --- Laws -------------------------------------------------------------------------------------------------------------

SECRET = "hunter2-hunter2"
NAMES = st.sampled_from(("password", "rootPassword", "clientSecret", "access_token", "privateKey", "kubeconfig"))


@st.composite
def _bodies_with_secrets(draw: st.DrawFn) -> Json:
    """A body in which a secret stands somewhere where secrets stand."""
    members = st.sampled_from(("data", "stringData"))
    forms: tuple[st.SearchStrategy[Any], ...] = (
        st.builds(lambda name: {name: SECRET}, NAMES),
        st.builds(lambda name: {name: [SECRET]}, NAMES),
        st.builds(lambda member: {"apiVersion": "v1", "kind": "Secret", member: {"a": SECRET}}, members),
    )
    hidden: Json = draw(st.one_of(*forms))
    for _ in range(draw(st.integers(0, 3))):
        around = draw(st.dictionaries(st.sampled_from("abc"), json_values, max_size=2))
        hidden = draw(st.sampled_from(([hidden], {**around, "inside": hidden})))
    return hidden


@given(_bodies_with_secrets())
def test_no_secret_is_on_record(body: Json) -> None:
    blocked_writes = BlockedWrites()

    error = blocked_writes.stop("google", "POST", "/b", body)

    assert SECRET not in f"{error} {blocked_writes.writes}"


@given(json_values)
def test_a_body_without_secrets_is_on_record_as_it_is(body: Json) -> None:
    assert redact_untyped(body) == body


@given(st.sampled_from(METHODS), st.text(st.sampled_from("dryRunAll=&?"), max_size=20), st.booleans())
def test_what_passes_is_a_read_or_a_rehearsal(method: str, query: str, is_cluster: bool) -> None:  # drawn
    blocked_writes = BlockedWrites()
    try:
        WriteGuard("own", blocked_writes, is_cluster=is_cluster).on_request(
            HttpRequest(method, f"http://service/b?{query}")
        )
        passed = True
    except SetpointError:
        passed = False

    assert passed == (not blocked_writes.writes)
    assert not passed or method in ("GET", "HEAD") or (is_cluster and "dryRun=All" in query)

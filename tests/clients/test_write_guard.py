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
    """The methods that arrived, and the errors of blocked requests."""
    arrived, errors = list[str](), list[str]()

    async def handler(request: web.BaseRequest) -> web.Response:
        arrived.append(request.method)
        return web.Response(text="ok")

    async with http_server(handler) as url:
        for one in requests:
            try:
                await client.send(HttpRequest(one.method, f"{url}{path}{one.url}", body=one.body))
            except WriteBlocked as error:
                errors.append(str(error))
        await client.close()
    return arrived, errors


@pytest.mark.parametrize("method", METHODS)
def test_only_reads_arrive(method: str) -> None:
    blocked_writes = BlockedWrites()

    arrived, errors = asyncio.run(
        _sent(HttpClient(interceptor=WriteGuard("google", blocked_writes)), [HttpRequest(method, "")])
    )

    is_read = method in ("GET", "HEAD")
    assert arrived == ([method] if is_read else [])
    assert len(errors) == len(blocked_writes.writes) == (0 if is_read else 1)


def test_a_blocked_write_is_recorded_with_its_fields_and_without_secrets() -> None:
    blocked_writes = BlockedWrites()

    async def scenario() -> list[str]:
        with on_behalf_of("StorageBucket default/logs", failed=False):
            client = HttpClient(interceptor=WriteGuard("google", blocked_writes))
            return (await _sent(client, [HttpRequest("PATCH", "?key=secret", body=BODY)]))[1]

    errors = asyncio.run(scenario())

    body: Json = {"labels": {"a": "b"}, "versioning": {"enabled": True}, "rootPassword": "(redacted)"}
    fields = ("labels.a", "versioning.enabled", "rootPassword")
    write = BlockedWrite("google", "PATCH", "/b/logs", "StorageBucket default/logs", body, fields)
    assert blocked_writes.writes == [write]
    assert errors == ["PATCH /b/logs (google): nothing may be written here; a preview only reads"]


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"{", b"[1]", b'"text"', b"null"])
def test_a_write_with_any_body_is_blocked(body: bytes) -> None:
    blocked_writes = BlockedWrites()

    arrived, errors = asyncio.run(
        _sent(HttpClient(interceptor=WriteGuard("google", blocked_writes)), [HttpRequest("POST", "", body=body)])
    )

    assert (arrived, len(errors), len(blocked_writes.writes)) == ([], 1, 1)


def test_a_client_without_an_interceptor_of_its_own_is_guarded_as_well() -> None:
    blocked_writes = BlockedWrites()

    async def scenario() -> tuple[list[str], list[str]]:
        with intercepted_by(WriteGuard("elsewhere", blocked_writes)):
            # In another task, too.
            return await asyncio.create_task(_sent(HttpClient(), [HttpRequest("GET", ""), HttpRequest("PUT", "")]))

    arrived, errors = asyncio.run(scenario())

    assert (arrived, len(errors)) == (["GET"], 1)
    assert [str(one) for one in blocked_writes.writes] == ["PUT /b/logs (elsewhere)"]


def test_streams_are_guarded_and_cannot_be_replayed() -> None:
    async def scenario(interceptor: HttpInterceptor) -> None:
        client = HttpClient(interceptor=interceptor)
        try:
            await client.open(HttpRequest("POST", "http://127.0.0.1:1/b"), 1.0)
        finally:
            await client.close()

    with pytest.raises(WriteBlocked):
        asyncio.run(scenario(WriteGuard("google", BlockedWrites())))
    with pytest.raises(Bug, match="a stream cannot be replayed"):
        asyncio.run(scenario(ReplayingInterceptor()))


# --- Dry runs by an API server ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "query", "body"),
    [("PATCH", "?dryRun=All", b""), ("POST", "?a=b&dryRun=All", b""), ("DELETE", "", b'{"dryRun": ["All"]}')],
)
def test_dry_runs_by_an_api_server_pass(method: str, query: str, body: bytes) -> None:
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
def test_an_ambiguous_dry_run_is_blocked(method: str, query: str, body: bytes) -> None:
    client = HttpClient(interceptor=WriteGuard("own", BlockedWrites(), is_cluster=True))

    assert asyncio.run(_sent(client, [HttpRequest(method, query, body=body)]))[0] == []


# --- The next interceptor ---------------------------------------------------------------------------------------------


class ReplayingInterceptor:
    """Replays every request but `/unknown`, and records the result of that."""

    def __init__(self) -> None:
        self.results: list[str] = []

    def on_request(self, request: HttpRequest) -> HttpResponse | None:
        return None if request.url.endswith("/unknown") else HttpResponse(200, {}, b"known")

    def on_response(self, request: HttpRequest, answer: HttpResponse) -> HttpResponse:
        self.results.append(answer.body.decode())
        return HttpResponse(answer.status, answer.headers, b"changed")

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        self.results.append(type(error).__name__)


def test_reads_reach_the_next_interceptor_and_writes_do_not() -> None:
    async def scenario() -> tuple[list[bytes], list[str]]:
        behind = ReplayingInterceptor()
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
        return read, behind.results

    assert asyncio.run(scenario()) == ([b"known", b"changed"], ["asked", "RemoteUnavailable"])


# --- Laws -------------------------------------------------------------------------------------------------------------

SECRET = "hunter2-hunter2"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NAMES = st.sampled_from(
    ("password", "rootPassword", "clientSecret", "access_token", "privateKey", "clientKey", "kubeconfig")
)


@st.composite
def _bodies_with_secrets(draw: st.DrawFn) -> Json:
    """A body with a secret in a place where secrets occur."""
    members = st.sampled_from(("data", "stringData"))
    forms: tuple[st.SearchStrategy[Any], ...] = (
        st.builds(lambda name: {name: SECRET}, NAMES),
        st.builds(lambda name: {name: [SECRET]}, NAMES),
        st.builds(lambda member: {"apiVersion": "v1", "kind": "Secret", member: {"a": SECRET}}, members),
        st.just({"apiVersion": "v1", "kind": "Secret", "metadata": {"annotations": {LAST_APPLIED: SECRET}}}),
    )
    body: Json = draw(st.one_of(*forms))
    for _ in range(draw(st.integers(0, 3))):
        other = draw(st.dictionaries(st.sampled_from("abc"), json_values, max_size=2))
        body = draw(st.sampled_from(([body], {**other, "inside": body})))
    return body


@given(_bodies_with_secrets())
def test_no_secret_is_recorded(body: Json) -> None:
    blocked_writes = BlockedWrites()

    error = blocked_writes.stop("google", "POST", "/b", body)

    assert SECRET not in f"{error} {blocked_writes.writes}"


@given(json_values)
def test_a_body_without_secrets_is_recorded_unchanged(body: Json) -> None:
    assert redact_untyped(body) == body


@given(st.sampled_from(METHODS), st.text(st.sampled_from("dryRunAll=&?"), max_size=20), st.booleans())
def test_only_reads_and_dry_runs_pass(method: str, query: str, is_cluster: bool) -> None:  # drawn
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

"""A process whose clients talk to a hostile server: for each line it sends one request, and prints what came of it."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import msgspec

from setpoint.clients.google.application_default import TokenTransport
from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings, item_name, list_pages
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.http_transport import HttpLimits, ResponseStream
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.credentials import ClusterIdentity
from setpoint.clients.kubernetes.discovery import Discovery
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.clients.kubernetes.requests import Endpoint, PageRequest
from setpoint.clients.kubernetes.watch import WatchTimeouts, watch
from setpoint.clients.ratelimit.limiter import QuotaBudgets
from setpoint.clients.response_bodies import decode_response
from setpoint.errors import Bug, RemoteRefused, SetpointError
from setpoint.replay.http_recording import HttpRecorder, HttpRecording
from setpoint.replay.world_file import RecordedWorld, WorldHeader, pack_world, unpack_world

POD = Endpoint("", "v1", "pods", "default", "a")
HEADER = WorldHeader("1", "2026-01-01T00:00:00Z", "sqlite", "7", collects=False, whole=True)
_objects = msgspec.json.Decoder(dict[str, Any])
# A server that stalls is not waited for.
SECONDS = 2.0
# A request that takes longer has no end.
NO_END = 120.0


class ImpatientClient(HttpClient):
    """The client under test, with less patience: a watch is resumed once."""

    opened = 0

    async def send(self, request: HttpRequest) -> HttpResponse:
        return await super().send(replace(request, seconds=min(request.seconds, SECONDS)))

    async def open(self, request: HttpRequest, idle_timeout: float) -> ResponseStream:
        self.opened += 1
        if self.opened > 2:
            raise RemoteRefused("that was enough")
        return await super().open(replace(request, seconds=SECONDS), min(idle_timeout, SECONDS))


class SentInTheClear:
    """A token that is sent to a server without TLS, too."""

    def __init__(self, token: str) -> None:
        self._identity = ClusterIdentity({"Authorization": f"Bearer {token}"}, None)

    async def identity(self, refused: ClusterIdentity | None = None) -> ClusterIdentity:
        return self._identity


class Requests:
    """One request of each client. Rate limits and breakers are new for each: a hostile server would open them."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._connection = ClusterConnection("hostile", url)
        self._credentials = SentInTheClear(token)

    async def send(self, verb: str) -> object:
        limits = HttpLimits() if verb.startswith("google") else HttpLimits().of_tenant()
        http = ImpatientClient(limits=limits)
        try:
            return await self._verbs(http)[verb]()
        finally:
            await http.close()

    def _verbs(self, http: HttpClient) -> Mapping[str, Callable[[], Awaitable[object]]]:
        kube = KubernetesClient(self._connection, self._credentials, http, QuotaBudgets())
        google = GoogleClient(http, GoogleSettings(self._url, self._url, GoogleAuth.ANONYMOUS))
        return {
            "get": lambda: self._get(kube),
            "list": lambda: kube.list(POD, paging=PageRequest(1)),
            "delete": lambda: kube.delete(POD),
            "apply": lambda: kube.apply(POD, {"metadata": {"name": "a"}}),
            "discover": lambda: Discovery(kube).find("v1", "Pod"),
            "preferred": lambda: Discovery(kube).preferred("Pod"),
            "watch": lambda: self._watch(kube),
            "google-get": lambda: google.get(GoogleCall(GoogleService.STORAGE, ("b", "a"))),
            "google-patch": lambda: google.patch(GoogleCall(GoogleService.SQL, ("p", "a")), {}),
            "google-list": lambda: self._list(google),
            "token": self._fetch_token,
            "record": self._record,
        }

    async def _get(self, kube: KubernetesClient) -> object:
        body = await kube.get(POD)
        return None if body is None else len(decode_response(_objects, body, "GET pod"))

    async def _watch(self, kube: KubernetesClient) -> object:
        seen = 0
        async with aclosing(watch(kube, POD, "1", timeouts=WatchTimeouts(retry=0.0))) as events:
            async for _ in events:
                seen += 1
                if seen >= 1000:
                    break
        return seen

    async def _list(self, google: GoogleClient) -> object:
        call = GoogleCall(GoogleService.STORAGE, ("b",))
        names = 0
        async with aclosing(list_pages(google, call, "the buckets")) as pages:
            async for page in pages:
                for item in page:
                    item_name(item, "a bucket")
                    names += 1
                if names >= 1000:
                    break
        return names

    async def _fetch_token(self) -> object:
        def fetch() -> object:
            with TokenTransport() as transport:
                try:
                    return transport(self._url, timeout=SECONDS).status
                except Exception:
                    if transport.error is not None:
                        raise transport.error from None
                    raise

        return await asyncio.to_thread(fetch)

    async def _record(self) -> object:
        recording = HttpRecording()
        http = ImpatientClient(None, HttpRecorder("google", recording))
        try:
            await http.send(HttpRequest("GET", self._url))
        finally:
            await http.close()
            world = RecordedWorld(HEADER, (), frozenset(), frozenset(), recording)
            unpack_world(pack_world(world), "w")
        return len(recording.responses)


async def outcome_of(verb: str, requests: Requests) -> str:
    """One line: a result, one of our errors, or a crash.

    As in a step, the error is caught where it is awaited: what the frames of an error hold is freed with it.
    """
    try:
        async with asyncio.timeout(NO_END):
            found = await requests.send(verb)
    except Bug as error:
        return f"crash {error!r}"
    except SetpointError as error:
        return f"error {type(error).__name__} {json.dumps(str(error))}"
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is a crash
        return f"crash {json.dumps(repr(error)[:500])}"
    return f"done {type(found).__name__}"


def main(url: str, token: str) -> None:
    """Reads the verb of each request from standard input."""
    requests = Requests(url, token)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        sys.stdout.write(f"{asyncio.run(outcome_of(line.strip(), requests))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Lists, discovery, watches and the informer, when the other end sends too much, too deep, or the same again."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, cast

import msgspec
import pytest

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import AnonymousCredentials, GoogleClient, GoogleSettings, list_pages
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient, ObjectPage
from setpoint.clients.kubernetes.discovery import ApiResource, Discovery
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.clients.kubernetes.requests import Endpoint, PageRequest
from setpoint.clients.kubernetes.watch import WatchEventReader, WatchEventType
from setpoint.clients.kubernetes.watched_objects import WatchedObjects
from setpoint.engine.capabilities import WatchTopic
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid, RemoteExpired, RemoteUnavailable, ResponseTooLarge
from setpoint.kinds.kubernetes_object.clusters import ClusterAccess, Clusters
from setpoint.kinds.kubernetes_object.location import ObjectLocation
from setpoint.kinds.kubernetes_object.watch import watch_changes
from setpoint.replay.http_recording import HttpRecorder, HttpRecording, HttpReplayer
from setpoint.runtime.index import IndexEntry, ResourceIndex
from setpoint.runtime.informer import Informer
from setpoint.stores.memory import MemoryStore
from simulation.virtual_time import VirtualClock, run
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GadgetKind, Service, gadget_ref

PODS = Endpoint("", "v1", "pods", "default")


class SizedServer(HttpClient):
    """A server with so many objects, of which at most `fitting` fit into one response."""

    def __init__(self, count: int, fitting: int, size_parameter: str, page: Callable[[range, str], object]) -> None:
        super().__init__()
        self.count, self.fitting, self.size_parameter, self.page = count, fitting, size_parameter, page
        self.sizes: list[int] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        query = dict(pair.split("=", 1) for pair in request.url.partition("?")[2].split("&") if "=" in pair)
        size = int(query.get(self.size_parameter, self.count))
        self.sizes.append(size)
        start = int(query.get("continue", query.get("pageToken", "0")))
        end = min(start + size, self.count)
        if end - start > self.fitting:
            raise ResponseTooLarge("too large")
        body = self.page(range(start, end), str(end) if end < self.count else "")
        return HttpResponse(200, {"Content-Type": "application/json"}, msgspec.json.encode(body))


def kube_page(items: range, token: str) -> object:
    return {"metadata": {"resourceVersion": "1", "continue": token}, "items": [{"n": one} for one in items]}


def google_page(items: range, token: str) -> object:
    return {"items": [{"name": str(one)} for one in items], "nextPageToken": token}


def client(http: HttpClient) -> KubernetesClient:
    return KubernetesClient(ClusterConnection("a", "https://a.test"), http=http)


@pytest.mark.parametrize("fitting", [1, 7, 200])
def test_a_list_of_large_objects_comes_in_smaller_pages(fitting: int) -> None:
    server = SizedServer(300, fitting, "limit", kube_page)

    async def main() -> list[bytes]:
        return [bytes(item) async for page in client(server).pages(PODS) for item in page.items]

    assert asyncio.run(main()) == [b'{"n":%d}' % number for number in range(300)]
    # A size that was too large is not tried again.
    assert server.sizes == sorted(server.sizes, reverse=True)


def test_everything_on_one_page_is_a_smaller_page_when_it_is_too_large() -> None:
    server = SizedServer(300, 200, "limit", kube_page)

    found = asyncio.run(client(server).list(PODS, paging=PageRequest(0)))

    assert (len(found.items), found.token, found.is_first) == (125, "125", True)


def test_one_object_that_is_too_large_is_an_error() -> None:
    with pytest.raises(ResponseTooLarge):
        asyncio.run(client(SizedServer(2, 0, "limit", kube_page)).list(PODS))


def google_page_of_many_values(items: range, token: str) -> object:
    return {"items": [{"name": str(one), "rules": [1] * 2_500} for one in items], "nextPageToken": token}


@pytest.mark.parametrize(
    ("fitting", "page"), [(120, google_page), (300, google_page_of_many_values)], ids=["bytes", "values"]
)
def test_a_list_of_google_comes_in_smaller_pages(fitting: int, page: Callable[[range, str], object]) -> None:
    server = SizedServer(300, fitting, "maxResults", page)
    google = GoogleClient(server, GoogleSettings(), AnonymousCredentials())

    async def main() -> int:
        call = GoogleCall(GoogleService.STORAGE, ("b",))
        return sum([len(page) async for page in list_pages(google, call, "the buckets")])

    assert asyncio.run(main()) == 300
    assert server.sizes == [1000, 100, 100, 100]


def test_a_recorded_world_replays_the_smaller_pages() -> None:
    recording, request = HttpRecording(), HttpRequest("GET", "https://a.test/pods?limit=500")
    HttpRecorder("a", recording).on_error(request, ResponseTooLarge("too large"))

    with pytest.raises(ResponseTooLarge):
        HttpReplayer("a", recording).on_request(request)


def test_a_page_of_one_object_does_not_hold_a_million() -> None:
    body = b'{"metadata":{},"items":[' + b"1," * 1_000_000 + b"1]}"
    server = SizedServer(1, 1, "limit", lambda _items, _token: msgspec.Raw(body))

    with pytest.raises(RemoteUnavailable, match=r"it has more than 100,000 values$"):
        asyncio.run(client(server).list(PODS, paging=PageRequest(1)))


def test_a_deep_event_is_cut_and_the_next_one_read() -> None:
    deep = b'{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":' + b"[" * 9_000 + b"]" * 9_000 + b"}}\n"
    plain = b'{"type":"ADDED","object":{"metadata":{"name":"b"}}}\n'

    events = WatchEventReader().feed(plain + deep + plain)

    assert [one.type for one in events] == [WatchEventType.ADDED] * 3
    assert bytes(events[2].object) == b'{"metadata":{"name":"b"}}'


def test_discovery_keeps_a_limited_number_of_kinds() -> None:
    kinds = [{"name": f"kinds{number}", "kind": f"Kind{number}" + "x" * 1000} for number in range(1_000)]
    served: Any = {"resources": [*kinds, {"name": "pods", "kind": "Pod"}]}
    server = SizedServer(1, 1, "limit", lambda _items, _token: served)

    async def main() -> int:
        discovery = Discovery(client(server))
        for number in range(20):
            await discovery.find(f"group{number}/v1", "Pod")
        return len(discovery._known)

    assert asyncio.run(main()) <= 2 * 1_001


class ExpiringClient:
    """A client of a server whose every watch has expired."""

    connection = ClusterConnection("a", "https://a.test")
    lists = 0

    async def list(self, *_: object) -> ObjectPage:
        self.lists += 1
        return ObjectPage((), "1", "", is_first=True)

    async def open(self, *_: object) -> object:
        raise RemoteExpired("too old")


class OnePodCluster:
    """A cluster that serves Pods."""

    def __init__(self) -> None:
        self.client = ExpiringClient()
        self.watched = WatchedObjects()

    async def connect(self, _cluster: str) -> ClusterAccess:
        return ClusterAccess(cast(KubernetesClient, self.client), cast(Discovery, self))

    async def find(self, *_: str) -> ApiResource:
        return ApiResource("", "v1", "Pod", "pods", namespaced=True)


def in_virtual_time(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run(work())


def test_a_server_that_always_says_expired_is_not_asked_without_a_pause() -> None:
    cluster = OnePodCluster()
    topic = WatchTopic(ObjectLocation("secret:a/b/c", "v1", "Pod", "default").location)

    async def main() -> None:
        async def follow() -> None:
            async for _ in watch_changes(topic, cast(Clusters, cluster)):
                pass

        following = asyncio.create_task(follow())
        await asyncio.sleep(300)
        following.cancel()

    in_virtual_time(main)

    assert 10 < cluster.client.lists < 40


class PickyIndex(ResourceIndex):
    """An index that cannot sum up one resource."""

    def put(self, resource: Resource) -> tuple[IndexEntry | None, IndexEntry]:
        if resource.ref.name == "bad":
            raise ManifestInvalid("nested deeper than 254 levels")
        return super().put(resource)


def test_a_resource_that_cannot_be_summed_up_stops_no_other() -> None:
    store = MemoryStore(VirtualClock(), lambda: "uid")
    index = PickyIndex({("test.setpoint.dev", "Gadget"): GadgetKind(Service())})

    async def main() -> None:
        await store.apply(gadget("bad", {"size": 1}))
        informer = Informer(store, index, VirtualClock(), lambda _event: None)
        running = asyncio.create_task(informer.run())
        await informer.synced.wait()
        await store.apply(gadget("bad", {"size": 2}))
        await store.apply(gadget("good", {"size": 1}))
        while index.get(gadget_ref("good")) is None:
            await asyncio.sleep(1)
        running.cancel()

    in_virtual_time(main)

    assert list(index) == [gadget_ref("good")]


def test_the_size_of_a_page_is_that_of_the_next_request() -> None:
    page = ObjectPage((), "1", "t", is_first=True, size=7)

    assert page.next_page == PageRequest(7, "t")
    assert replace(page, size=0).next_page == PageRequest(0, "t")

"""The group `kubernetes`: our client of a cluster and peer clients, on the same stub server over the loopback."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec

from benchmarks.api_server_stub import (
    GROUP,
    LISTED,
    NAMESPACE,
    PLURAL,
    VERSION,
    WATCHED,
    body_of,
    name_of,
    running_stub,
)
from benchmarks.comparison import BenchmarkSettings, Candidate, Comparison
from benchmarks.peer_packages import ClusterClient, Peers
from setpoint.clients.http import HttpClient, HttpRequest
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.clients.kubernetes.watch import watch
from setpoint.clients.ratelimit.limiter import QuotaBudgets, QuotaKey
from setpoint.clients.ratelimit.token_bucket import AimdSettings as CallRate

GET: Final = "Kubernetes: GET of 3 KB, loopback"
LIST: Final = "Kubernetes: list, each of 500 objects of 3 KB, loopback"
WATCH: Final = "Kubernetes: watch, each event of 3 KB, loopback"
BYTES: Final = "ours: bytes"
TREE: Final = "ours: decoded into a tree"
BARE: Final = "the bare GET: HttpClient.send"
GETS: Final = 200
_CONCURRENCY: Final = 16
_ENDPOINT: Final = Endpoint(GROUP, VERSION, PLURAL, NAMESPACE)
# Without a limit in effect: the calls are measured, not the wait for the rate limiter.
_UNLIMITED: Final = CallRate(start=1e6, burst=1e6, ceiling=1e6, growth=0.0)
_tree: Final = msgspec.json.Decoder()


def benchmarks(peers: Peers, settings: BenchmarkSettings) -> Generator[Comparison, None, None]:
    """A comparison for each of GET, list and watch."""
    loop = asyncio.new_event_loop()
    with running_stub() as address:
        clients = loop.run_until_complete(_clients(address, peers))
        http = HttpClient()
        try:
            gets = settings.scaled(GETS)
            bare = Candidate(BARE, _get_all(loop, _bare_get(http, address), gets), _has_all_objects(gets), gets)
            first, *peer_candidates = [
                Candidate(name, _get_all(loop, client.get, gets), _has_all_objects(gets), gets)
                for name, client in clients.items()
            ]
            yield Comparison(GET, "", (first, bare, *peer_candidates))
            yield Comparison(
                LIST,
                "",
                tuple(_collection_candidate(loop, name, client.list, LISTED) for name, client in clients.items()),
            )
            yield Comparison(
                WATCH,
                "",
                tuple(_collection_candidate(loop, name, client.watch, WATCHED) for name, client in clients.items()),
            )
        finally:
            for client in clients.values():
                loop.run_until_complete(client.close())
            loop.run_until_complete(http.close())
            loop.close()


async def _clients(address: str, peers: Peers) -> dict[str, ClusterClient]:
    """The clients by name. Some can only be constructed while an event loop is running."""
    ours = {BYTES: _SetpointClient(address, bytes), TREE: _SetpointClient(address, _tree.decode)}
    return ours | {peer.name: peer.connect(address) for peer in peers.cluster_clients}


class _SetpointClient:
    def __init__(self, address: str, decode: Callable[[bytes | msgspec.Raw], Any]) -> None:
        budgets = QuotaBudgets()
        budgets.make(QuotaKey(f"kubernetes {address.removeprefix('http://')}", "", "reads"), _UNLIMITED, address)
        self._decode = decode
        self._client = KubernetesClient(ClusterConnection("the stub", address), budgets=budgets)

    async def get(self, name: str) -> object:
        result = await self._client.get(_ENDPOINT.named(name))
        assert result is not None
        return self._decode(result)

    async def list(self) -> Sequence[Any]:
        return [self._decode(item) async for page in self._client.pages(_ENDPOINT) for item in page.items]

    async def watch(self) -> Sequence[Any]:
        result: list[Any] = []
        async with aclosing(watch(self._client, _ENDPOINT, "1")) as events:
            async for event in events:
                result.append(self._decode(event.object))
                if len(result) == WATCHED:
                    break
        return result

    async def close(self) -> None:
        await self._client.close()


# --- Candidates -------------------------------------------------------------------------------------------------------


def _collection_candidate(
    loop: asyncio.AbstractEventLoop, name: str, call: Callable[[], Coroutine[Any, Any, Sequence[object]]], count: int
) -> Candidate:
    return Candidate(name, lambda: loop.run_until_complete(call()), _has_all_objects(count), count)


def _get_all(
    loop: asyncio.AbstractEventLoop, get: Callable[[str], Awaitable[Any]], count: int
) -> Callable[[], Sequence[Any]]:
    """`count` GETs, some of them concurrently."""

    async def get_all() -> Sequence[Any]:
        result: list[Any] = [None] * count
        remaining = iter(range(count))

        async def work() -> None:
            for number in remaining:
                result[number] = await get(name_of(number))

        await asyncio.gather(*(work() for _ in range(_CONCURRENCY)))
        return result

    return lambda: loop.run_until_complete(get_all())


def _bare_get(http: HttpClient, address: str) -> Callable[[str], Awaitable[bytes]]:
    async def get(name: str) -> bytes:
        return (await http.send(HttpRequest("GET", address + _ENDPOINT.named(name).path))).body

    return get


def _has_all_objects(count: int) -> Callable[[object], bool]:
    """Whether a result is all objects, in order, and complete."""
    expected = [_tree.decode(body_of(name_of(number)))["spec"] for number in range(count)]

    def is_correct(result: object) -> bool:
        assert isinstance(result, list)
        trees = [_tree.decode(item) if isinstance(item, bytes) else item for item in result]
        return [tree["spec"] for tree in trees] == expected

    return is_correct

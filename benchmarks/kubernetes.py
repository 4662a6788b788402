"""The group `kubernetes`: our client of a cluster beside others, each talking to the same server over the loopback."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec

from benchmarks.kube_stub import (
    GROUP,
    LISTED,
    NAMESPACE,
    PLURAL,
    VERSION,
    WATCHED,
    body_of,
    name_of,
    serving,
)
from benchmarks.measuring import Contest, Contestant, Pace
from benchmarks.opponents import ClusterClient, Opponents
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
_AT_ONCE: Final = 16
_ENDPOINT: Final = Endpoint(GROUP, VERSION, PLURAL, NAMESPACE)
# Of a server that takes everything at once: what is measured is the calls, not the wait for one's turn.
_UNLIMITED: Final = CallRate(start=1e6, burst=1e6, ceiling=1e6, growth=0.0)
_tree: Final = msgspec.json.Decoder()


def trials(opponents: Opponents, pace: Pace) -> Generator[Contest, None, None]:
    """A contest for each thing that clients do most."""
    loop = asyncio.new_event_loop()
    with serving() as address:
        clients = loop.run_until_complete(_clients(address, opponents))
        http = HttpClient()
        try:
            gets = pace.number(GETS)
            bare = Contestant(BARE, _calls(loop, _bare(http, address), gets), _are_all(gets), gets)
            first, *others = [
                Contestant(name, _calls(loop, client.get, gets), _are_all(gets), gets)
                for name, client in clients.items()
            ]
            yield Contest(GET, "", (first, bare, *others))
            yield Contest(LIST, "", tuple(_whole(loop, name, one.list, LISTED) for name, one in clients.items()))
            yield Contest(WATCH, "", tuple(_whole(loop, name, one.watch, WATCHED) for name, one in clients.items()))
        finally:
            for one in clients.values():
                loop.run_until_complete(one.close())
            loop.run_until_complete(http.close())
            loop.close()


async def _clients(address: str, opponents: Opponents) -> dict[str, ClusterClient]:
    """Made where a loop is running: some want one from the start."""
    ours = {BYTES: _Ours(address, bytes), TREE: _Ours(address, _tree.decode)}
    return ours | {one.name: one.connect(address) for one in opponents.clusters}


class _Ours:
    def __init__(self, address: str, form: Callable[[bytes | msgspec.Raw], Any]) -> None:
        budgets = QuotaBudgets()
        budgets.make(QuotaKey(f"kubernetes {address.removeprefix('http://')}", "", "reads"), _UNLIMITED, address)
        self._form = form
        self._client = KubernetesClient(ClusterConnection("the stub", address), budgets=budgets)

    async def get(self, name: str) -> object:
        found = await self._client.get(_ENDPOINT.named(name))
        assert found is not None
        return self._form(found)

    async def list(self) -> Sequence[Any]:
        return [self._form(one) async for page in self._client.pages(_ENDPOINT) for one in page.items]

    async def watch(self) -> Sequence[Any]:
        found: list[Any] = []
        async with aclosing(watch(self._client, _ENDPOINT, "1")) as events:
            async for event in events:
                found.append(self._form(event.object))
                if len(found) == WATCHED:
                    break
        return found

    async def close(self) -> None:
        await self._client.close()


# --- Contestants ------------------------------------------------------------------------------------------------------


def _whole(
    loop: asyncio.AbstractEventLoop, name: str, ask: Callable[[], Coroutine[Any, Any, Sequence[object]]], count: int
) -> Contestant:
    return Contestant(name, lambda: loop.run_until_complete(ask()), _are_all(count), count)


def _calls(
    loop: asyncio.AbstractEventLoop, get: Callable[[str], Awaitable[Any]], count: int
) -> Callable[[], Sequence[Any]]:
    """So many gets, some of them at once."""

    async def get_all() -> Sequence[Any]:
        found: list[Any] = [None] * count
        left = iter(range(count))

        async def work() -> None:
            for number in left:
                found[number] = await get(name_of(number))

        await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
        return found

    return lambda: loop.run_until_complete(get_all())


def _bare(http: HttpClient, address: str) -> Callable[[str], Awaitable[bytes]]:
    async def get(name: str) -> bytes:
        return (await http.send(HttpRequest("GET", address + _ENDPOINT.named(name).path))).body

    return get


def _are_all(count: int) -> Callable[[object], bool]:
    """Whether these are all objects, in order, and whole."""
    expected = [_tree.decode(body_of(name_of(number)))["spec"] for number in range(count)]

    def is_right(answer: object) -> bool:
        assert isinstance(answer, list)
        trees = [_tree.decode(one) if isinstance(one, bytes) else one for one in answer]
        return [tree["spec"] for tree in trees] == expected

    return is_right

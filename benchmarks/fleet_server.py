"""An API server of our own that has a fleet: found or built, started, and filled.

Models are written through its API. The others are written where the server keeps its objects: to take in ten thousand
would take it minutes, and nobody wants to know how many.
"""

import asyncio
import base64
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.buckets import NAMESPACE
from benchmarks.fleet import Copier, Fleet, Model
from setpoint.app import definitions
from setpoint.clients.http import HttpClient, HttpRequest
from setpoint.stores.kubernetes.served_kinds import ServedKind
from tests.cluster.access import Access
from tests.cluster.assets import Assets, Missing, find
from tests.cluster.polling import until
from tests.cluster.progress import Progress
from tests.cluster.server import Cluster, Settings

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_AT_ONCE: Final = 16
_LABELS: Final = b'"labels":{'


def programs(tell: Callable[[str], None]) -> Assets | Missing:
    """The programs of an API server; where there are none they are built, which takes minutes, once."""
    return find(os.environ, Progress(tell))


@contextmanager
def serving(assets: Assets, folder: Path, fleet: Fleet) -> Iterator["FleetServer"]:
    """A server that has the fleet, and is there until the end."""
    with Cluster(assets, folder, Settings()) as cluster:
        _install_kinds(cluster.access)
        server = FleetServer(cluster, fleet)
        server.fill()
        yield server


def _install_kinds(access: Access) -> None:
    """Our kinds are served when this returns."""
    found: list[Any] = list(definitions().values())
    for one in found:
        made = access.call("POST", _DEFINITIONS, one)
        assert made.status == HTTPStatus.CREATED, made
    until(lambda: all(access.call("GET", _collection(one)).status == HTTPStatus.OK for one in found))


def _collection(definition: Any) -> str:  # noqa: ANN401 - a tree as the API server takes it
    spec = definition["spec"]
    return f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"


class FleetServer:
    """An API server, and the fleet that it has."""

    def __init__(self, cluster: Cluster, fleet: Fleet) -> None:
        self.access = cluster.access
        self.fleet = fleet
        self._etcd_url = _etcd_url(cluster)
        self._edits = 0

    def fill(self) -> None:
        """Every resource is there when this returns, with its status."""
        self._call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for kind, models in zip(self.fleet.served, self.fleet.models, strict=True):
            for model in models:
                self._make(kind, model)
        asyncio.run(self._make_the_others())

    def position(self) -> str:
        """Where a watch of the first kind begins that is to tell of what comes."""
        found = self._call("GET", f"{self.fleet.served[0].all_in(None).path}?limit=1")
        position: str = found["metadata"]["resourceVersion"]
        return position

    def edit(self, count: int) -> None:
        """Another writer adds a label to so many of the first kind, all at once."""
        kinds = len(self.fleet.models)
        self._edits += 1
        asyncio.run(self._edit(range(0, count * kinds, kinds)))

    def _make(self, kind: ServedKind, model: Model) -> None:
        """As it comes about: its author writes it, the engine adds the status."""
        path = kind.all_in(NAMESPACE).path
        written = {name: value for name, value in model.resource.items() if name != "status"}
        made = self._call("POST", f"{path}?fieldManager=kubectl", written)
        settled = {**made, "status": model.resource["status"]}
        self._call("PUT", f"{path}/{model.name}/status?fieldManager=setpoint", settled)

    async def _make_the_others(self) -> None:
        fleet = self.fleet
        async with aclosing(_Etcd(self._etcd_url)) as etcd:
            stored = [
                {model.name: await etcd.get(self._key(kind, model.name)) for model in models}
                for kind, models in enumerate(fleet.models)
            ]
            copier = Copier(fleet, stored)

            async def copy(number: int) -> None:
                kind, name = fleet.kind_and_name(number)
                if name not in stored[kind]:
                    await etcd.put(self._key(kind, name), await copier.copy(number))

            await _each(copy, range(fleet.count))

    async def _edit(self, numbers: range) -> None:
        async with aclosing(_Etcd(self._etcd_url)) as etcd:

            async def edit(number: int) -> None:
                key = self._key(*self.fleet.kind_and_name(number))
                await etcd.put(
                    key, (await etcd.get(key)).replace(_LABELS, b'%b"edited-%d":"yes",' % (_LABELS, self._edits))
                )

            await _each(edit, numbers)

    def _key(self, kind: int, name: str) -> str:
        served = self.fleet.served[kind]
        return f"/registry/{served.group}/{served.plural}/{NAMESPACE}/{name}"

    def _call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - a tree as the API server answers
        answer = self.access.call(method, path, body)
        assert answer.status in (HTTPStatus.OK, HTTPStatus.CREATED), answer
        return answer.body


async def _each(do: Callable[[int], Awaitable[None]], numbers: range) -> None:
    """Some of them at once."""
    left = iter(numbers)

    async def work() -> None:
        for number in left:
            await do(number)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


def _etcd_url(cluster: Cluster) -> str:
    option = "--advertise-client-urls="
    (url,) = [word.removeprefix(option) for word in cluster.etcd.command if word.startswith(option)]
    return url


class _Etcd:
    """Where the API server keeps its objects. Each put is a change of its own, as it would be through the server."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._http = HttpClient()

    async def get(self, key: str) -> bytes:
        (found,) = (await self._ask("range", {"key": _in_base64(key.encode())}))["kvs"]
        return base64.b64decode(found["value"])

    async def put(self, key: str, value: bytes) -> None:
        await self._ask("put", {"key": _in_base64(key.encode()), "value": _in_base64(value)})

    async def aclose(self) -> None:
        await self._http.close()

    async def _ask(self, verb: str, body: Mapping[str, str]) -> Any:  # noqa: ANN401 - a tree as etcd answers
        request = HttpRequest("POST", f"{self._url}/v3/kv/{verb}", body=msgspec.json.encode(body))
        answer = await self._http.send(request)
        assert answer.status == HTTPStatus.OK, answer
        return msgspec.json.decode(answer.body)


def _in_base64(value: bytes) -> str:
    return base64.b64encode(value).decode()

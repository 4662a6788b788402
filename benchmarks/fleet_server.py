"""Starts an API server and fills it with a fleet.

Templates are created through its API. Their copies are written to etcd: creating ten thousand through the API would
take minutes.
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
from benchmarks.fleet import Fleet, Template, TemplateCopier
from setpoint.app import definitions
from setpoint.clients.http import HttpClient, HttpRequest
from setpoint.stores.kubernetes.served_kinds import ServedKind
from tests.cluster.access import Access
from tests.cluster.assets import Assets, Missing, find
from tests.cluster.polling import until
from tests.cluster.progress import Progress
from tests.cluster.server import Cluster, Settings

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CONCURRENCY: Final = 16
_LABELS: Final = b'"labels":{'


def find_assets(log: Callable[[str], None]) -> Assets | Missing:
    """The binaries of an API server; if there are none they are built, which takes minutes, once."""
    return find(os.environ, Progress(log))


@contextmanager
def running_server(assets: Assets, folder: Path, fleet: Fleet) -> Iterator["FleetServer"]:
    """An API server that holds the fleet, until the end of the block."""
    with Cluster(assets, folder, Settings()) as cluster:
        install_kinds(cluster.access)
        server = FleetServer(cluster, fleet)
        server.fill()
        yield server


def install_kinds(access: Access) -> None:
    """Creates the CRDs of setpoint; returns when they are served."""
    crds: list[Any] = list(definitions().values())
    for definition in crds:
        created = access.call("POST", _DEFINITIONS, definition)
        assert created.status == HTTPStatus.CREATED, created
    until(lambda: all(access.call("GET", _collection(definition)).status == HTTPStatus.OK for definition in crds))


def _collection(definition: Any) -> str:  # noqa: ANN401 - a tree as the API server takes it
    spec = definition["spec"]
    return f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"


class FleetServer:
    """An API server, and the fleet that it holds."""

    def __init__(self, cluster: Cluster, fleet: Fleet) -> None:
        self.access = cluster.access
        self.fleet = fleet
        self._etcd_url = _etcd_url(cluster)
        self._edits = 0

    def fill(self) -> None:
        """Creates every resource, with its status."""
        self._call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for kind, templates in zip(self.fleet.served, self.fleet.templates, strict=True):
            for template in templates:
                self._create(kind, template)
        asyncio.run(self._create_copies())

    def resource_version(self) -> str:
        """The resource version from which a watch of the first kind receives later events only."""
        listing = self._call("GET", f"{self.fleet.served[0].all_in(None).path}?limit=1")
        resource_version: str = listing["metadata"]["resourceVersion"]
        return resource_version

    def edit(self, count: int) -> None:
        """As another writer: adds a label to `count` resources of the first kind, concurrently."""
        kinds = len(self.fleet.templates)
        self._edits += 1
        asyncio.run(self._edit(range(0, count * kinds, kinds)))

    def _create(self, kind: ServedKind, template: Template) -> None:
        """Creates the resource as its author does, then writes the status as the engine does."""
        path = kind.all_in(NAMESPACE).path
        manifest = {name: value for name, value in template.resource.items() if name != "status"}
        created = self._call("POST", f"{path}?fieldManager=kubectl", manifest)
        settled = {**created, "status": template.resource["status"]}
        self._call("PUT", f"{path}/{template.name}/status?fieldManager=setpoint", settled)

    async def _create_copies(self) -> None:
        fleet = self.fleet
        async with aclosing(_Etcd(self._etcd_url)) as etcd:
            stored = [
                {template.name: await etcd.get(self._key(kind, template.name)) for template in templates}
                for kind, templates in enumerate(fleet.templates)
            ]
            copier = TemplateCopier(fleet, stored)

            async def copy(number: int) -> None:
                kind, name = fleet.kind_and_name(number)
                if name not in stored[kind]:
                    await etcd.put(self._key(kind, name), await copier.copy(number))

            await _for_each(copy, range(fleet.count))

    async def _edit(self, numbers: range) -> None:
        async with aclosing(_Etcd(self._etcd_url)) as etcd:

            async def edit(number: int) -> None:
                key = self._key(*self.fleet.kind_and_name(number))
                await etcd.put(
                    key, (await etcd.get(key)).replace(_LABELS, b'%b"edited-%d":"yes",' % (_LABELS, self._edits))
                )

            await _for_each(edit, numbers)

    def _key(self, kind: int, name: str) -> str:
        served = self.fleet.served[kind]
        return f"/registry/{served.group}/{served.plural}/{NAMESPACE}/{name}"

    def _call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - a tree as the API server answers
        response = self.access.call(method, path, body)
        assert response.status in (HTTPStatus.OK, HTTPStatus.CREATED), response
        return response.body


async def _for_each(action: Callable[[int], Awaitable[None]], numbers: range) -> None:
    """Runs `action` for each number, some of them concurrently."""
    remaining = iter(numbers)

    async def work() -> None:
        for number in remaining:
            await action(number)

    await asyncio.gather(*(work() for _ in range(_CONCURRENCY)))


def _etcd_url(cluster: Cluster) -> str:
    option = "--advertise-client-urls="
    (url,) = [argument.removeprefix(option) for argument in cluster.etcd.command if argument.startswith(option)]
    return url


class _Etcd:
    """A client of the etcd of the API server. Each put is a revision of its own, as each write through the API is."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._http = HttpClient()

    async def get(self, key: str) -> bytes:
        (entry,) = (await self._call("range", {"key": _base64(key.encode())}))["kvs"]
        return base64.b64decode(entry["value"])

    async def put(self, key: str, value: bytes) -> None:
        await self._call("put", {"key": _base64(key.encode()), "value": _base64(value)})

    async def aclose(self) -> None:
        await self._http.close()

    async def _call(self, verb: str, body: Mapping[str, str]) -> Any:  # noqa: ANN401 - a tree as etcd answers
        request = HttpRequest("POST", f"{self._url}/v3/kv/{verb}", body=msgspec.json.encode(body))
        response = await self._http.send(request)
        assert response.status == HTTPStatus.OK, response
        return msgspec.json.decode(response.body)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()

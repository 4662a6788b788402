"""Our client of a real API server, for tests."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Raw

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.clients.kubernetes.requests import ALL_OBJECTS, Endpoint, ObjectSelector
from setpoint.clients.kubernetes.watch import WatchEvent, WatchEventType, watch

T = TypeVar("T")
# In seconds, for events that should come at once.
TIMEOUT = 240.0


def with_client(kubeconfig: Path | ClusterConnection, use: Callable[[KubernetesClient], Awaitable[T]]) -> T:
    """The result of `use`, with a client for the kubeconfig."""

    async def main() -> T:
        client = KubernetesClient(
            kubeconfig if isinstance(kubeconfig, ClusterConnection) else connection_from_files([kubeconfig])
        )
        try:
            return await use(client)
        finally:
            await client.close()

    return asyncio.run(main())


async def receive_events(
    client: KubernetesClient,
    endpoint: Endpoint,
    count: int,
    meanwhile: Callable[[], Awaitable[object]],
    selection: ObjectSelector = ALL_OBJECTS,
) -> list[WatchEvent]:
    """The first `count` events while `meanwhile` runs, without bookmarks."""
    since = (await client.list(endpoint)).resource_version
    received: list[WatchEvent] = []
    async with asyncio.timeout(TIMEOUT), aclosing(watch(client, endpoint, since, selection)) as events:
        busy = asyncio.ensure_future(meanwhile())
        async for event in events:
            if event.type is not WatchEventType.BOOKMARK:
                received.append(event)
            if len(received) == count:
                break
        await busy
    return received


def summary(event: WatchEvent) -> tuple[str, str]:
    """The type of the event, and the name of its object."""
    return event.type.value, tree(bytes(event.object))["metadata"].get("name", "")


def names(items: Sequence[Raw]) -> list[str]:
    """The names of the objects of a page."""
    return [tree(bytes(item))["metadata"]["name"] for item in items]


def config_maps(namespace: str) -> Endpoint:
    return Endpoint("", "v1", "configmaps", namespace)


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def tree(body: bytes | None) -> Any:
    assert body is not None
    return json.loads(body)


def definition(group: str, plural: str, kind: str) -> dict[str, Any]:
    """A CRD with a status subresource."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema, "status": schema}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [version],
        },
    }


DEFINITIONS = Endpoint("apiextensions.k8s.io", "v1", "customresourcedefinitions")

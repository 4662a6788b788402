"""Peer clients of a cluster: the same requests as those of our client, in the cheapest way of each."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import lightkube
from kubernetes_asyncio.client import ApiClient, Configuration, CustomObjectsApi
from kubernetes_asyncio.watch import Watch
from lightkube.config.kubeconfig import KubeConfig
from lightkube.config.models import Cluster, User
from lightkube.generic_resource import create_namespaced_resource

from benchmarks.api_server_stub import GROUP, KIND, NAMESPACE, PLURAL, VERSION, WATCHED

_COLLECTION = (GROUP, VERSION, NAMESPACE, PLURAL)


class KubernetesAsyncio:
    """kubernetes_asyncio. Custom objects stay dicts: it decodes them into no models."""

    def __init__(self, address: str) -> None:
        self._client = ApiClient(Configuration(host=address))
        self._api = CustomObjectsApi(self._client)

    async def get(self, name: str) -> object:
        """The object."""
        result: object = await self._api.get_namespaced_custom_object(*_COLLECTION, name)
        return result

    async def list(self) -> Sequence[Any]:
        """All objects."""
        result: Any = await self._api.list_namespaced_custom_object(*_COLLECTION)
        items: list[Any] = result["items"]
        return items

    async def watch(self) -> Sequence[Any]:
        """The objects of all events, until the stream ends."""
        stream = Watch().stream(self._api.list_namespaced_custom_object, *_COLLECTION, timeout_seconds=60)
        return [event["object"] async for event in stream]

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()


class Lightkube:
    """lightkube. Objects of generic resources are dicts, too."""

    def __init__(self, address: str) -> None:
        config = KubeConfig.from_one(cluster=Cluster(server=address), user=User())
        self._client = lightkube.AsyncClient(config=config, trust_env=False)
        self._kind = create_namespaced_resource(GROUP, VERSION, KIND, PLURAL)

    async def get(self, name: str) -> object:
        """The object."""
        result: object = await self._client.get(self._kind, name, namespace=NAMESPACE)
        return result

    async def list(self) -> Sequence[Any]:
        """All objects."""
        return [item async for item in self._client.list(self._kind, namespace=NAMESPACE)]

    async def watch(self) -> Sequence[Any]:
        """The objects of the first `WATCHED` events: at the end of the stream it would reconnect."""
        result: list[object] = []
        async with aclosing(self._client.watch(self._kind, namespace=NAMESPACE)) as events:
            async for _, item in events:
                result.append(item)
                if len(result) == WATCHED:
                    break
        return result

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

"""Other clients of a cluster, each asked for the same as ours, in the way that gives it the least to do."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import lightkube
from kubernetes_asyncio.client import ApiClient, Configuration, CustomObjectsApi
from kubernetes_asyncio.watch import Watch
from lightkube.config.kubeconfig import KubeConfig
from lightkube.config.models import Cluster, User
from lightkube.generic_resource import create_namespaced_resource

from benchmarks.kube_stub import GROUP, KIND, NAMESPACE, PLURAL, VERSION, WATCHED

_WHERE = (GROUP, VERSION, NAMESPACE, PLURAL)


class KubernetesAsyncio:
    """Custom objects stay dicts: that spares it its own models."""

    def __init__(self, address: str) -> None:
        self._client = ApiClient(Configuration(host=address))
        self._api = CustomObjectsApi(self._client)

    async def get(self, name: str) -> object:
        """The object."""
        found: object = await self._api.get_namespaced_custom_object(*_WHERE, name)
        return found

    async def list(self) -> Sequence[Any]:
        """All of them."""
        found: Any = await self._api.list_namespaced_custom_object(*_WHERE)
        items: list[Any] = found["items"]
        return items

    async def watch(self) -> Sequence[Any]:
        """The objects of all events, until the stream ends."""
        stream = Watch().stream(self._api.list_namespaced_custom_object, *_WHERE, timeout_seconds=60)
        return [event["object"] async for event in stream]

    async def close(self) -> None:
        """Lets go of the connections."""
        await self._client.close()


class Lightkube:
    """Objects of kinds that it does not know are dicts, too."""

    def __init__(self, address: str) -> None:
        config = KubeConfig.from_one(cluster=Cluster(server=address), user=User())
        self._client = lightkube.AsyncClient(config=config, trust_env=False)
        self._kind = create_namespaced_resource(GROUP, VERSION, KIND, PLURAL)

    async def get(self, name: str) -> object:
        """The object."""
        found: object = await self._client.get(self._kind, name, namespace=NAMESPACE)
        return found

    async def list(self) -> Sequence[Any]:
        """All of them."""
        return [one async for one in self._client.list(self._kind, namespace=NAMESPACE)]

    async def watch(self) -> Sequence[Any]:
        """The objects of as many events as there are: it would begin anew after the last."""
        found: list[object] = []
        async with aclosing(self._client.watch(self._kind, namespace=NAMESPACE)) as events:
            async for _, one in events:
                found.append(one)
                if len(found) == WATCHED:
                    break
        return found

    async def close(self) -> None:
        """Lets go of the connections."""
        await self._client.close()

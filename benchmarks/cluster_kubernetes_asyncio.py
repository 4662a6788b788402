"""What kubernetes_asyncio does with a fleet in a cluster: custom objects stay dicts, which spares it its own models."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from kubernetes_asyncio.client import ApiClient, Configuration, CustomObjectsApi
from kubernetes_asyncio.config import load_kube_config
from kubernetes_asyncio.watch import Watch

from benchmarks.errands import Found, Meter, Order, Sort, wait_for_word

_PAGE: Final = 500


async def start(order: Order) -> Found:
    """Everything listed, and kept."""
    meter = Meter()
    async with _connected(order) as api:
        kept = {}
        for sort in order.resource_types:
            async for page in _pages(api, sort, order.namespace):
                for one in page["items"]:
                    kept[sort.kind, one["metadata"]["namespace"], one["metadata"]["name"]] = one
        return meter.read(len(kept))


async def _pages(api: CustomObjectsApi, sort: Sort, namespace: str | None) -> AsyncIterator[Mapping[str, Any]]:
    """One at least."""
    paging: dict[str, Any] = {"limit": _PAGE}
    while True:
        if namespace is None:
            page = await api.list_cluster_custom_object(sort.group, sort.version, sort.plural, **paging)
        else:
            where = (sort.group, sort.version, namespace, sort.plural)
            page = await api.list_namespaced_custom_object(*where, **paging)
        yield page
        if not (token := page["metadata"].get("continue")):
            return
        paging["_continue"] = token


async def storm(order: Order) -> Found:
    """What every event brings, kept."""
    sort = order.resource_types[0]
    where, since = (sort.group, sort.version, sort.plural), {"resource_version": order.since}
    async with _connected(order) as api:
        await wait_for_word()
        kept, meter = {}, Meter()
        async with Watch().stream(api.list_cluster_custom_object, *where, **since) as events:
            async for event in events:
                if event["type"] == "MODIFIED":
                    one = event["object"]
                    kept[one["metadata"]["namespace"], one["metadata"]["name"]] = one
                if len(kept) == order.events:
                    break
        return meter.read(len(kept))


@asynccontextmanager
async def _connected(order: Order) -> AsyncIterator[CustomObjectsApi]:
    configuration = Configuration()
    await load_kube_config(order.kubeconfig, client_configuration=configuration)
    async with ApiClient(configuration) as client:
        yield CustomObjectsApi(client)

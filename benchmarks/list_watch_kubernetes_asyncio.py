"""Lists and watches a fleet with kubernetes_asyncio. Custom objects stay dicts: it decodes them into no models."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from kubernetes_asyncio.client import ApiClient, Configuration, CustomObjectsApi
from kubernetes_asyncio.config import load_kube_config
from kubernetes_asyncio.watch import Watch

from benchmarks.measured_process import CustomResourceKind, Job, Usage, UsageMeter, signal_ready_and_wait

_PAGE: Final = 500


async def start(job: Job) -> Usage:
    """Lists all resources and caches them."""
    meter = UsageMeter()
    async with _connected(job) as api:
        cache = {}
        for kind in job.kinds:
            async for page in _pages(api, kind, job.namespace):
                for item in page["items"]:
                    cache[kind.kind, item["metadata"]["namespace"], item["metadata"]["name"]] = item
        return meter.read(len(cache))


async def _pages(
    api: CustomObjectsApi, kind: CustomResourceKind, namespace: str | None
) -> AsyncIterator[Mapping[str, Any]]:
    """The pages of a list, at least one."""
    paging: dict[str, Any] = {"limit": _PAGE}
    while True:
        if namespace is None:
            page = await api.list_cluster_custom_object(kind.group, kind.version, kind.plural, **paging)
        else:
            collection = (kind.group, kind.version, namespace, kind.plural)
            page = await api.list_namespaced_custom_object(*collection, **paging)
        yield page
        if not (token := page["metadata"].get("continue")):
            return
        paging["_continue"] = token


async def watch_and_cache(job: Job) -> Usage:
    """Receives the events and caches the objects."""
    kind = job.kinds[0]
    collection, position = (kind.group, kind.version, kind.plural), {"resource_version": job.resource_version}
    async with _connected(job) as api:
        await signal_ready_and_wait()
        cache, meter = {}, UsageMeter()
        async with Watch().stream(api.list_cluster_custom_object, *collection, **position) as events:
            async for event in events:
                if event["type"] == "MODIFIED":
                    item = event["object"]
                    cache[item["metadata"]["namespace"], item["metadata"]["name"]] = item
                if len(cache) == job.events:
                    break
        return meter.read(len(cache))


@asynccontextmanager
async def _connected(job: Job) -> AsyncIterator[CustomObjectsApi]:
    configuration = Configuration()
    await load_kube_config(job.kubeconfig, client_configuration=configuration)
    async with ApiClient(configuration) as client:
        yield CustomObjectsApi(client)

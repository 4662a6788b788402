"""Lists and watches a fleet with the Kubernetes client of setpoint alone, without the rest of `setpoint run`."""

import gc
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import msgspec

from benchmarks.measured_process import CustomResourceKind, Job, Usage, UsageMeter, signal_ready_and_wait
from setpoint.clients.http import HttpClient
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import KUBECONFIG, connection_from_environment
from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.clients.kubernetes.watch import WatchEventType, watch

_tree: Final = msgspec.json.Decoder(dict[str, Any])


def client_for(job: Job, http: HttpClient) -> KubernetesClient:
    """A client of the cluster of `job`."""
    return KubernetesClient(connection_from_environment({KUBECONFIG: job.kubeconfig}), http=http)


async def list_only(job: Job) -> Usage:
    """Lists all resources and discards them."""
    number, meter = 0, UsageMeter()
    async with _connected(job) as client:
        for kind in job.kinds:
            async for page in client.pages(_collection(kind, job)):
                number += len(page.items)
        return meter.read(number)


async def start(job: Job) -> Usage:
    """Lists all resources and caches them as trees."""
    meter = UsageMeter()
    async with _connected(job) as client:
        # All of these objects stay alive: collections during the list would only cost time.
        gc.disable()
        cache = await _list_trees(client, job)
        gc.enable()
        return meter.read(len(cache))


async def _list_trees(client: KubernetesClient, job: Job) -> Mapping[tuple[str, str, str], object]:
    """The resources by kind, namespace and name, without their managedFields."""
    cache = {}
    for kind in job.kinds:
        async for page in client.pages(_collection(kind, job)):
            for item in page.items:
                tree = _tree.decode(item)
                metadata = tree["metadata"]
                metadata.pop("managedFields", None)
                cache[kind.kind, metadata["namespace"], metadata["name"]] = tree
    return cache


async def watch_only(job: Job) -> Usage:
    """Receives the events and discards them."""
    async with _connected(job) as client:
        await signal_ready_and_wait()
        meter = UsageMeter()
        number = 0
        async for _ in _modified_objects(client, job):
            number += 1
        return meter.read(number)


async def watch_and_cache(job: Job) -> Usage:
    """Receives the events and caches the objects as trees."""
    async with _connected(job) as client:
        await signal_ready_and_wait()
        cache, meter = {}, UsageMeter()
        async for modified in _modified_objects(client, job):
            tree = _tree.decode(modified)
            metadata = tree["metadata"]
            metadata.pop("managedFields", None)
            cache[metadata["namespace"], metadata["name"]] = tree
        return meter.read(len(cache))


async def _modified_objects(client: KubernetesClient, job: Job) -> AsyncIterator[msgspec.Raw]:
    remaining = job.events
    async with aclosing(watch(client, _collection(job.kinds[0], job), job.resource_version)) as events:
        async for event in events:
            if event.type is WatchEventType.MODIFIED:
                yield event.object
                remaining -= 1
            if not remaining:
                return


@asynccontextmanager
async def _connected(job: Job) -> AsyncIterator[KubernetesClient]:
    client = client_for(job, HttpClient())
    try:
        yield client
    finally:
        await client.close()


def _collection(kind: CustomResourceKind, job: Job) -> Endpoint:
    return Endpoint(kind.group, kind.version, kind.plural, job.namespace)

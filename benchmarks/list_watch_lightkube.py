"""Lists and watches a fleet with lightkube. Objects of generic resources are dicts."""

from contextlib import aclosing
from typing import Any, Final

import lightkube
from lightkube.config.kubeconfig import KubeConfig
from lightkube.generic_resource import create_namespaced_resource

from benchmarks.measured_process import CustomResourceKind, Job, Usage, UsageMeter, signal_ready_and_wait

_PAGE: Final = 500


async def start(job: Job) -> Usage:
    """Lists all resources and caches them."""
    cache, meter = {}, UsageMeter()
    client, namespace = _client(job), job.namespace or "*"
    for kind in job.kinds:
        async for item in client.list(_resource(kind), namespace=namespace, chunk_size=_PAGE):
            cache[kind.kind, item["metadata"]["namespace"], item["metadata"]["name"]] = item
    usage = meter.read(len(cache))
    await client.close()
    return usage


async def watch_and_cache(job: Job) -> Usage:
    """Receives the events and caches the objects."""
    client = _client(job)
    await signal_ready_and_wait()
    cache, meter = {}, UsageMeter()
    events = client.watch(_resource(job.kinds[0]), namespace="*", resource_version=job.resource_version)
    async with aclosing(events):
        async for event_type, item in events:
            if event_type == "MODIFIED":
                cache[item["metadata"]["namespace"], item["metadata"]["name"]] = item
            if len(cache) == job.events:
                break
    usage = meter.read(len(cache))
    await client.close()
    return usage


def _client(job: Job) -> lightkube.AsyncClient:
    return lightkube.AsyncClient(config=KubeConfig.from_file(job.kubeconfig), trust_env=False)


def _resource(kind: CustomResourceKind) -> Any:  # noqa: ANN401 - a class that lightkube makes
    return create_namespaced_resource(kind.group, kind.version, kind.kind, kind.plural)

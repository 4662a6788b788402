"""What lightkube does with a fleet in a cluster: objects of kinds that it does not know are dicts."""

from contextlib import aclosing
from typing import Any, Final

import lightkube
from lightkube.config.kubeconfig import KubeConfig
from lightkube.generic_resource import create_namespaced_resource

from benchmarks.errands import Found, Meter, Order, Sort, wait_for_word

_PAGE: Final = 500


async def start(order: Order) -> Found:
    """Everything listed, and kept."""
    kept, meter = {}, Meter()
    client, place = _client(order), order.namespace or "*"
    for sort in order.resource_types:
        async for one in client.list(_resource(sort), namespace=place, chunk_size=_PAGE):
            kept[sort.kind, one["metadata"]["namespace"], one["metadata"]["name"]] = one
    found = meter.read(len(kept))
    await client.close()
    return found


async def storm(order: Order) -> Found:
    """What every event brings, kept."""
    client = _client(order)
    await wait_for_word()
    kept, meter = {}, Meter()
    events = client.watch(_resource(order.resource_types[0]), namespace="*", resource_version=order.since)
    async with aclosing(events):
        async for change, one in events:
            if change == "MODIFIED":
                kept[one["metadata"]["namespace"], one["metadata"]["name"]] = one
            if len(kept) == order.events:
                break
    found = meter.read(len(kept))
    await client.close()
    return found


def _client(order: Order) -> lightkube.AsyncClient:
    return lightkube.AsyncClient(config=KubeConfig.from_file(order.kubeconfig), trust_env=False)


def _resource(sort: Sort) -> Any:  # noqa: ANN401 - a class that lightkube makes
    return create_namespaced_resource(sort.group, sort.version, sort.kind, sort.plural)

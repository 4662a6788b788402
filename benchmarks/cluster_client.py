"""What our client of a cluster does with a fleet there, without the parts of a process that make use of it."""

import gc
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import msgspec

from benchmarks.errands import Found, Meter, Order, Sort, wait_for_word
from setpoint.clients.http import HttpClient
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import KUBECONFIG, connection_from_environment
from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.clients.kubernetes.watch import WatchEventType, watch

_tree: Final = msgspec.json.Decoder(dict[str, Any])


def client_for(order: Order, http: HttpClient) -> KubernetesClient:
    """One that reaches the cluster."""
    return KubernetesClient(connection_from_environment({KUBECONFIG: order.kubeconfig}), http=http)


async def lists(order: Order) -> Found:
    """The lists, of which nothing is kept."""
    number, meter = 0, Meter()
    async with _connected(order) as client:
        for sort in order.resource_types:
            async for page in client.pages(_all_of(sort, order)):
                number += len(page.items)
        return meter.read(number)


async def start(order: Order) -> Found:
    """The lists, kept as trees."""
    meter = Meter()
    async with _connected(order) as client:
        # What is made now stays: looking for cycles in it would only cost more.
        gc.disable()
        kept = await _trees(client, order)
        gc.enable()
        return meter.read(len(kept))


async def _trees(client: KubernetesClient, order: Order) -> Mapping[tuple[str, str, str], object]:
    """Without what the cluster notes down about authors."""
    kept = {}
    for sort in order.resource_types:
        async for page in client.pages(_all_of(sort, order)):
            for item in page.items:
                tree = _tree.decode(item)
                metadata = tree["metadata"]
                metadata.pop("managedFields", None)
                kept[sort.kind, metadata["namespace"], metadata["name"]] = tree
    return kept


async def events(order: Order) -> Found:
    """The events, of which nothing is kept."""
    async with _connected(order) as client:
        await wait_for_word()
        meter = Meter()
        number = 0
        async for _ in _changes(client, order):
            number += 1
        return meter.read(number)


async def storm(order: Order) -> Found:
    """The events, kept as trees."""
    async with _connected(order) as client:
        await wait_for_word()
        kept, meter = {}, Meter()
        async for change in _changes(client, order):
            tree = _tree.decode(change)
            metadata = tree["metadata"]
            metadata.pop("managedFields", None)
            kept[metadata["namespace"], metadata["name"]] = tree
        return meter.read(len(kept))


async def _changes(client: KubernetesClient, order: Order) -> AsyncIterator[msgspec.Raw]:
    left = order.events
    async with aclosing(watch(client, _all_of(order.resource_types[0], order), order.since)) as told:
        async for event in told:
            if event.type is WatchEventType.MODIFIED:
                yield event.object
                left -= 1
            if not left:
                return


@asynccontextmanager
async def _connected(order: Order) -> AsyncIterator[KubernetesClient]:
    client = client_for(order, HttpClient())
    try:
        yield client
    finally:
        await client.close()


def _all_of(sort: Sort, order: Order) -> Endpoint:
    return Endpoint(sort.group, sort.version, sort.plural, order.namespace)

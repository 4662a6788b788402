"""A metadata watch of all objects of a kind in a namespace, restarted with backoff."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Final

import msgspec

from setpoint.clients.http import decode_response
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Endpoint, ObjectSelector, PageRequest, Representation
from setpoint.clients.kubernetes.watch import WatchEventType, watch
from setpoint.engine.capabilities import WatchTopic
from setpoint.engine.kind import Location
from setpoint.engine.requeue import error_backoff
from setpoint.errors import KindNotServed, RemoteExpired, SetpointError
from setpoint.kinds.kubernetes_object.clusters import Clusters, ObjectLocation, parse_object_location
from setpoint.kinds.kubernetes_object.tenant_clusters import TenantClusters

_log: Final = logging.getLogger(__name__)
_METADATA: Final = ObjectSelector(representation=Representation.METADATA)
# Only the resourceVersion of the list is needed.
_ONE: Final = PageRequest(size=1)
_LONGEST_DELAY: Final = 30.0


class _Name(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Name


_names: Final = msgspec.json.Decoder(_Named)


def watch_topic(location: Location) -> WatchTopic:
    """The topic of a location: all objects of the kind in the namespace."""
    return WatchTopic(replace(parse_object_location(location), name="").location)


async def watch_changes(
    topic: WatchTopic, clusters: Clusters | TenantClusters
) -> AsyncGenerator[Location | None, None]:
    """The locations of changed objects; None whenever events may have been missed."""
    location, delays = parse_object_location(topic), error_backoff(longest=_LONGEST_DELAY)
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        try:
            async with aclosing(_watch_from_now(location, clusters)) as locations:
                async for changed in locations:
                    yield changed
        except RemoteExpired:
            # The resourceVersion has expired: relist at once, unless the server says so again and again.
            if loop.time() - began >= _LONGEST_DELAY:
                continue
        except SetpointError as error:
            if isinstance(error, KindNotServed):
                await _forget(location, clusters)
            _log.info("watch failed", extra={"topic": topic, "reason": str(error)})
        if loop.time() - began >= _LONGEST_DELAY:
            delays.reset()
        await asyncio.sleep(delays.next())


async def _watch_from_now(
    location: ObjectLocation, clusters: Clusters | TenantClusters
) -> AsyncGenerator[Location | None, None]:
    access = await clusters.connect(location.cluster)
    served = await access.discovery.find(location.api_version, location.kind)
    endpoint = served.endpoint(location.namespace)
    since = (await access.client.list(endpoint, _METADATA, _ONE)).resource_version
    yield None
    async with aclosing(_changed_names(access.client, endpoint, since)) as names:
        async for name in names:
            yield replace(location, name=name).location


async def _changed_names(client: KubernetesClient, endpoint: Endpoint, since: str) -> AsyncGenerator[str, None]:
    async with aclosing(watch(client, endpoint, since, _METADATA)) as events:
        async for event in events:
            if event.type is not WatchEventType.BOOKMARK:
                yield decode_response(_names, event.object, f"watch {endpoint.path}").metadata.name


async def _forget(location: ObjectLocation, clusters: Clusters | TenantClusters) -> None:
    (await clusters.connect(location.cluster)).discovery.forget(location.api_version)

"""A metadata watch of all objects of a kind in a namespace, restarted with backoff.

It shows the versions of the objects, so that one that has not changed need not be read.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import msgspec

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Endpoint, ObjectSelector, PageRequest, Representation
from setpoint.clients.kubernetes.watch import WatchEvent, WatchEventType, watch
from setpoint.clients.kubernetes.watched_objects import (
    ObjectVersion,
    WatchedCollection,
    WatchedObjects,
    version_of,
)
from setpoint.clients.response_bodies import decode_response
from setpoint.core.values.deferred_dataclass import replace
from setpoint.engine.capabilities import WatchTopic
from setpoint.engine.kind import Location
from setpoint.engine.requeue import error_backoff
from setpoint.errors import KindNotServed, RemoteExpired, SetpointError
from setpoint.kinds.kubernetes_object.clusters import Clusters
from setpoint.kinds.kubernetes_object.location import ObjectLocation, is_tenants_cluster, parse_object_location
from setpoint.kinds.kubernetes_object.tenant_clusters import TenantClusters

_log: Final = logging.getLogger(__name__)
_METADATA: Final = ObjectSelector(representation=Representation.METADATA)
# Only the resourceVersion of the list is needed.
_ONE: Final = PageRequest(size=1)
# So many objects are listed: in a larger collection, most are not ours.
_MAX_LISTED: Final = 10_000
_LONGEST_DELAY: Final = 30.0


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def version(self) -> ObjectVersion | None:
        return version_of(self.uid, self.resource_version)


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata


_objects: Final = msgspec.json.Decoder(_Object)


def watch_topic(location: Location) -> WatchTopic:
    """The topic of a location: all objects of the kind in the namespace."""
    return WatchTopic(parse_object_location(location).collection)


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
    endpoint, topic = served.endpoint(location.namespace), location.location
    # What a server that a tenant named says of its objects is not kept.
    is_kept = not is_tenants_cluster(topic)
    collection, since = await _list_versions(access.client, endpoint, most=_MAX_LISTED if is_kept else 0)
    if is_kept:
        clusters.watched.begin(topic, collection)
    try:
        yield None
        async with aclosing(watch(access.client, endpoint, since, _METADATA)) as events:
            async for event in events:
                name = None if event.type is WatchEventType.BOOKMARK else _show(event, topic, clusters.watched)
                if name is not None:
                    yield replace(location, name=name).location
    finally:
        clusters.watched.end(topic, collection)


async def _list_versions(client: KubernetesClient, endpoint: Endpoint, *, most: int) -> tuple[WatchedCollection, str]:
    """The versions of the objects, not many more than `most`, and the resource version to watch from."""
    collection, since = WatchedCollection(client.connection, {}, is_whole=False), ""
    if most == 0:
        return collection, (await client.list(endpoint, _METADATA, _ONE)).resource_version
    async for page in client.pages(endpoint, _METADATA):
        since = page.resource_version
        if page.is_first:
            collection.versions.clear()
            collection.doubted.clear()
        for item in page.items:
            found = decode_response(_objects, item, f"list {endpoint.path}").metadata
            if (version := found.version) is not None:
                collection.versions[found.name] = version
            else:
                collection.doubted.add(found.name)
        collection.is_whole = not page.token
        if len(collection.versions) >= most:
            break
    return collection, since


def _show(event: WatchEvent, topic: WatchTopic | str, watched: WatchedObjects) -> str | None:
    """The name of the object that changed; None for an event of what this process wrote or read itself."""
    found = decode_response(_objects, event.object, f"watch {topic}").metadata
    is_deleted = event.type is WatchEventType.DELETED
    return found.name if watched.show(topic, found.name, found.version, is_deleted=is_deleted) else None


async def _forget(location: ObjectLocation, clusters: Clusters | TenantClusters) -> None:
    (await clusters.connect(location.cluster)).discovery.forget(location.api_version)

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

_log: Final = logging.getLogger(__name__)
_METADATA: Final = ObjectSelector(representation=Representation.METADATA)
# Nothing but where to begin is wanted of the list.
_ONE: Final = PageRequest(size=1)
_LONGEST_DELAY: Final = 30.0


class _Name(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Name


_names: Final = msgspec.json.Decoder(_Named)


def watch_topic(location: Location) -> WatchTopic:
    """All objects of the kind, in the namespace."""
    return WatchTopic(replace(parse_object_location(location), name="").location)


async def watch_changes(topic: WatchTopic, clusters: Clusters) -> AsyncGenerator[Location | None, None]:
    """Where something has changed; None whenever something may have been missed."""
    place, delays = parse_object_location(topic), error_backoff(longest=_LONGEST_DELAY)
    while True:
        try:
            async with aclosing(_watch_from_now(place, clusters)) as heard:
                async for where in heard:
                    delays.failures = 0
                    yield where
        except RemoteExpired:
            # What is too long ago is listed again, at once.
            continue
        except SetpointError as error:
            if isinstance(error, KindNotServed):
                await _forget(place, clusters)
            _log.info("changes cannot be heard", extra={"topic": topic, "why": str(error)})
        await asyncio.sleep(delays.next())


async def _watch_from_now(place: ObjectLocation, clusters: Clusters) -> AsyncGenerator[Location | None, None]:
    reach = await clusters.reach(place.cluster)
    served = await reach.discovery.find(place.api_version, place.kind)
    endpoint = served.endpoint(place.namespace)
    since = (await reach.client.list(endpoint, _METADATA, _ONE)).resource_version
    yield None
    async with aclosing(_changed_names(reach.client, endpoint, since)) as names:
        async for name in names:
            yield replace(place, name=name).location


async def _changed_names(client: KubernetesClient, endpoint: Endpoint, since: str) -> AsyncGenerator[str, None]:
    async with aclosing(watch(client, endpoint, since, _METADATA)) as events:
        async for event in events:
            if event.type is not WatchEventType.BOOKMARK:
                yield decode_response(_names, event.object, f"watch {endpoint.path}").metadata.name


async def _forget(place: ObjectLocation, clusters: Clusters) -> None:
    (await clusters.reach(place.cluster)).discovery.forget(place.api_version)

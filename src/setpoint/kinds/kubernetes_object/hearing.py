"""Hearing of changes: a watch of metadata, for as long as somebody listens, whatever becomes of the cluster."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Final

import msgspec

from setpoint.clients.kube_endpoints import Endpoint, Form, Paging, Selection
from setpoint.clients.kube_pages import decoded
from setpoint.clients.kube_watch import Change, watch
from setpoint.clients.kubernetes import KubernetesClient
from setpoint.engine.abilities import Topic
from setpoint.engine.kind import Location
from setpoint.engine.retries import Backoff
from setpoint.errors import KindNotServed, RemoteExpired, SetpointError
from setpoint.kinds.kubernetes_object.clusters import Clusters
from setpoint.kinds.kubernetes_object.place import Place, place_at

_log: Final = logging.getLogger(__name__)
_METADATA: Final = Selection(form=Form.METADATA)
# Nothing but where to begin is wanted of the list.
_ONE: Final = Paging(size=1)
_LONGEST_DELAY: Final = 30.0


class _Name(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Name


_names: Final = msgspec.json.Decoder(_Named)


def topic_of(location: Location) -> Topic:
    """All objects of the kind, in the namespace."""
    return Topic(replace(place_at(location), name="").location)


async def changes(topic: Topic, clusters: Clusters) -> AsyncGenerator[Location | None, None]:
    """Where something has changed; None whenever something may have been missed."""
    place, delays = place_at(topic), Backoff(longest=_LONGEST_DELAY)
    while True:
        try:
            async with aclosing(_since_now(place, clusters)) as heard:
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


async def _since_now(place: Place, clusters: Clusters) -> AsyncGenerator[Location | None, None]:
    reach = await clusters.reach(place.cluster)
    served = await reach.discovery.find(place.api_version, place.kind)
    endpoint = served.endpoint(place.namespace)
    since = (await reach.client.list(endpoint, _METADATA, _ONE)).resource_version
    yield None
    async with aclosing(_named(reach.client, endpoint, since)) as names:
        async for name in names:
            yield replace(place, name=name).location


async def _named(client: KubernetesClient, endpoint: Endpoint, since: str) -> AsyncGenerator[str, None]:
    async with aclosing(watch(client, endpoint, since, _METADATA)) as events:
        async for event in events:
            if event.change is not Change.BOOKMARK:
                yield decoded(_names, event.object, f"watch {endpoint.path}").metadata.name


async def _forget(place: Place, clusters: Clusters) -> None:
    (await clusters.reach(place.cluster)).discovery.forget(place.api_version)

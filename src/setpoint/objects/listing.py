"""Lists the objects of one kind in a cluster, page by page, up to a limit."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from setpoint.clients.kubernetes.requests import FIRST_PAGE, Endpoint, ObjectSelector
from setpoint.clients.response_bodies import decode_tree
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.engine.claims.object_claims import OWN
from setpoint.errors import KindNotServed
from setpoint.objects.session import ClusterSession

_objects: Final[msgspec.json.Decoder[dict[str, Json]]] = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectQuery:
    """Which objects: of a kind, in one namespace or in all, by selectors as kubectl writes them.

    Without a namespace, that of the connection.
    """

    api_version: str
    kind: str
    namespace: str = ""
    all_namespaces: bool = False
    labels: str = ""
    fields: str = ""


async def list_objects(
    cluster: ClusterSession, query: ObjectQuery, most: int, page_size: int = FIRST_PAGE.size
) -> list[Mapping[str, Json]] | None:
    """The objects, in the order of the API server; None when there are more than `most`."""
    endpoint = await _endpoint(cluster, query)
    found: list[Mapping[str, Json]] = []
    type_: Mapping[str, Json] = {"apiVersion": query.api_version, "kind": query.kind}
    selector = ObjectSelector(query.labels, query.fields)
    async for page in cluster.client.pages(endpoint, selector, min(page_size, most + 1)):
        if page.is_first:
            found.clear()
        for item in page.items:
            tree = decode_tree(_objects, bytes(item), endpoint.path)
            # Objects of built-in kinds have no apiVersion and kind in a list.
            found.append({**type_, **tree})
        if len(found) > most:
            return None
    return found


async def _endpoint(cluster: ClusterSession, query: ObjectQuery) -> Endpoint:
    access = await cluster.clusters.connect(OWN)
    served = await access.discovery.find(query.api_version, query.kind)
    if "list" not in served.verbs:
        raise KindNotServed(f"the cluster does not list objects of the kind {query.kind}: name another kind")
    namespace = None if query.all_namespaces else query.namespace or cluster.client.connection.namespace
    return served.endpoint(namespace)

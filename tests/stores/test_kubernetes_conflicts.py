"""Conflicts of a cluster that are not about the object itself."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from msgspec import json

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.resource import Resource
from setpoint.errors import WriteConflict
from setpoint.stores.kubernetes.served_kinds import ClusterScope, ServedKind
from setpoint.stores.kubernetes.store import KubernetesStore
from tests.engine.clock import FakeClock
from tests.stores.objects import CONFIG_MAP

MESSAGE = "the quota was counted at the same moment"
ANSWER = f"409: Conflict: {MESSAGE}"
LIVE: JsonObject = {
    **CONFIG_MAP,
    "metadata": {"name": "settings", "namespace": "default", "uid": "u", "resourceVersion": "7"},
}


class ConflictingCluster(HttpClient):
    """A cluster that answers every write with a conflict."""

    def __init__(self, there: JsonObject | None) -> None:
        super().__init__()
        self._there = there

    async def send(self, request: HttpRequest) -> HttpResponse:
        kind = {"Content-Type": "application/json"}
        if request.method != "GET":
            return HttpResponse(409, kind, json.encode({"code": 409, "reason": "Conflict", "message": MESSAGE}))
        if self._there is None:
            details = {"name": "settings", "kind": "configmaps"}
            return HttpResponse(404, kind, json.encode({"code": 404, "reason": "NotFound", "details": details}))
        return HttpResponse(200, kind, json.encode(self._there))


def store_with(there: JsonObject | None) -> KubernetesStore:
    client = KubernetesClient(ClusterConnection("context prod", "https://a.test"), http=ConflictingCluster(there))
    kinds = (ServedKind("", "v1", "ConfigMap", "configmaps"),)
    return KubernetesStore(client, FakeClock(), ClusterScope({kind.name: kind for kind in kinds}, "default"))


async def replaced(store: KubernetesStore) -> Resource:
    return await store.replace(Resource(LIVE), {**LIVE, "data": {"a": "2"}})


async def created(store: KubernetesStore) -> Resource:
    return await store.create(CONFIG_MAP)


@pytest.mark.parametrize(
    ("write", "there", "method"), [(created, None, "POST"), (replaced, LIVE, "PUT")], ids=["create", "replace"]
)
def test_a_conflict_that_is_not_about_the_object_has_the_message_of_the_api_server(
    write: Callable[[KubernetesStore], Coroutine[Any, Any, Resource]], there: JsonObject | None, method: str
) -> None:
    with pytest.raises(WriteConflict, match=rf"^the cluster: {method} /api/v1/.*{ANSWER}: read again and plan again$"):
        asyncio.run(write(store_with(there)))

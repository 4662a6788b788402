"""The requests that each call of a resource sends to the API server."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.provider import CreateRequest, PlanRequest, UpdateRequest
from setpoint.terraform.resources.clusters import ClusterConnections
from setpoint.terraform.resources.object_resource import ObjectResource
from setpoint.terraform.resources.schemas import OBJECT_SCHEMA
from tests.cluster.access import Access

READ, DRY_RUN, APPLY, DELETE = "GET", "PATCH dry run", "PATCH", "DELETE"
BODY = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: one, namespace: {namespace}}}\ndata: {{a: {value}}}\n"
COMPUTED = ("id", "object_ref", "projection", "status")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests for the object, in order; discovery, which is done once for each process, is left out."""
    send, sent = HttpClient.send, list[str]()

    async def send_counted(self: HttpClient, request: HttpRequest) -> HttpResponse:
        url = urlsplit(request.url)
        if "/namespaces/" in url.path:
            assert url.path.endswith("/configmaps/one")
            sent.append(request.method + (" dry run" if "dryRun" in parse_qs(url.query) else ""))
        return await send(self, request)

    monkeypatch.setattr(HttpClient, "send", send_counted)
    return sent


class Lifecycle:
    """One object from its plan to its deletion; the requests of each call are recorded."""

    def __init__(self, namespace: str, sent: list[str]) -> None:
        self.namespace = namespace
        self.cost: dict[str, list[str]] = {}
        self._sent = sent

    async def run(self) -> Any:
        """The projection of the object after its update."""
        clusters = ClusterConnections()
        try:
            return await self._live(ObjectResource(clusters))
        finally:
            session = clusters.session(None)
            await session.clusters.close()
            await session.client.close()

    async def _live(self, resource: ObjectResource) -> Any:
        call = CallContext()
        unknown = dict.fromkeys(COMPUTED, UNKNOWN)
        first, then = self._config("b"), self._config("c")
        planned = await resource.plan(PlanRequest(first, None, {**first, **unknown}), call)
        self._counted("plan of a create")
        made = await resource.create(CreateRequest(first, planned.state, planned.private), call)
        self._counted("create")
        proposed = {**then, **unknown, "id": made.state["id"]}
        planned = await resource.plan(PlanRequest(then, made.state, proposed, made.private), call)
        self._counted("plan of an update")
        updated = await resource.update(UpdateRequest(then, made.state, planned.state, planned.private), call)
        self._counted("update")
        await resource.delete(InstanceState(updated.state, updated.private), call)
        self._counted("delete")
        return updated.state["projection"]

    def _config(self, value: str) -> AttributeValues:
        body = BODY.format(namespace=self.namespace, value=value)
        return {**dict.fromkeys(OBJECT_SCHEMA.attributes), "yaml_body": body}

    def _counted(self, what: str) -> None:
        self.cost[what] = list(self._sent)
        self._sent.clear()


def test_a_create_an_update_and_a_delete_cost_four_requests_at_most(
    api_server: Access, namespace: str, requests: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    lifecycle = Lifecycle(namespace, requests)

    projection = asyncio.run(lifecycle.run())

    assert lifecycle.cost == {
        "plan of a create": [READ, DRY_RUN],
        "create": [READ, DRY_RUN, APPLY, DRY_RUN],
        "plan of an update": [READ, DRY_RUN],
        "update": [READ, DRY_RUN, APPLY, DRY_RUN],
        "delete": [READ, DELETE, READ, READ],
    }
    assert projection["data.a"] == "c"
    assert api_server.call("GET", f"/api/v1/namespaces/{namespace}/configmaps/one").status == 404

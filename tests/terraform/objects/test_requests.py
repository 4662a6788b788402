"""How many requests a resource costs the API server: they are counted, and named one by one."""

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
    """Each request for the object that was sent; which kinds the API server has is asked once for each process."""
    send, sent = HttpClient.send, list[str]()

    async def send_counted(self: HttpClient, request: HttpRequest) -> HttpResponse:
        url = urlsplit(request.url)
        if "/namespaces/" in url.path:
            assert url.path.endswith("/configmaps/one")
            sent.append(request.method + (" dry run" if "dryRun" in parse_qs(url.query) else ""))
        return await send(self, request)

    monkeypatch.setattr(HttpClient, "send", send_counted)
    return sent


def test_a_create_an_update_and_a_delete_cost_four_requests_at_most(
    api_server: Access, namespace: str, requests: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cost: dict[str, list[str]] = {}

    def counted(what: str) -> None:
        cost[what] = list(requests)
        requests.clear()

    def config(value: str) -> AttributeValues:
        return {**dict.fromkeys(OBJECT_SCHEMA.attributes), "yaml_body": BODY.format(namespace=namespace, value=value)}

    async def main(resource: ObjectResource) -> Any:
        call = CallContext()
        unknown = dict.fromkeys(COMPUTED, UNKNOWN)
        planned = await resource.plan(PlanRequest(config("b"), None, {**config("b"), **unknown}), call)
        counted("plan of a create")
        made = await resource.create(CreateRequest(config("b"), planned.state, planned.private), call)
        counted("create")
        proposed = {**config("c"), **unknown, "id": made.state["id"]}
        planned = await resource.plan(PlanRequest(config("c"), made.state, proposed, made.private), call)
        counted("plan of an update")
        request = UpdateRequest(config("c"), made.state, planned.state, planned.private)
        updated = await resource.update(request, call)
        counted("update")
        await resource.delete(InstanceState(updated.state, updated.private), call)
        counted("delete")
        return updated.state["projection"]

    async def run() -> Any:
        clusters = ClusterConnections()
        try:
            return await main(ObjectResource(clusters))
        finally:
            session = clusters.session(None)
            await session.clusters.close()
            await session.client.close()

    projection = asyncio.run(run())

    assert cost == {
        "plan of a create": [READ, DRY_RUN],
        "create": [READ, DRY_RUN, APPLY, DRY_RUN],
        "plan of an update": [READ, DRY_RUN],
        "update": [READ, DRY_RUN, APPLY, DRY_RUN],
        "delete": [READ, DELETE, READ, READ],
    }
    assert projection["data.a"] == "c"
    assert api_server.call("GET", f"/api/v1/namespaces/{namespace}/configmaps/one").status == 404

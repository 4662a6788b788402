"""A kind that is not served yet: parts of the API server know it already, and others do not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from setpoint.clients.kubernetes.discovery import ApiResource, Discovery
from setpoint.errors import KindNotServed
from setpoint.terraform.connections.clusters import ClusterConnections
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues
from setpoint.terraform.framework.call import CallContext
from setpoint.terraform.framework.provider import CreateRequest, PlanRequest
from setpoint.terraform.resources.object_resource import ObjectResource
from setpoint.terraform.resources.schemas import OBJECT_SCHEMA
from tests.cluster.access import Access

BODY = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: late, namespace: {namespace}}}\ndata: {{a: b}}\n"
COMPUTED = ("id", "object_ref", "projection", "status")


@asynccontextmanager
async def _resource() -> AsyncIterator[ObjectResource]:
    """A resource, as a new provider process has it."""
    clusters = ClusterConnections()
    try:
        yield ObjectResource(clusters)
    finally:
        session = clusters.session(None)
        await session.clusters.close()
        await session.client.close()


@pytest.fixture
def discovered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Discovery fails for the first three requests of each process; the requested kinds, in order."""
    find, requested = Discovery.find, list[str]()

    async def find_late(self: Discovery, api_version: str, kind: str) -> ApiResource:
        requested.append(kind)
        if len(requested) <= 3:
            raise KindNotServed(f"{kind} is not served")
        return await find(self, api_version, kind)

    monkeypatch.setattr(Discovery, "find", find_late)
    return requested


def test_an_object_of_the_kind_is_planned_and_created(
    api_server: Access, namespace: str, discovered: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    config: AttributeValues = {**dict.fromkeys(OBJECT_SCHEMA.attributes), "yaml_body": BODY.format(namespace=namespace)}

    async def main() -> tuple[Any, Any]:
        async with _resource() as resource:
            proposed = {**config, **dict.fromkeys(COMPUTED, UNKNOWN)}
            planned = await resource.plan(PlanRequest(config, None, proposed), CallContext())
        discovered.clear()
        async with _resource() as resource:
            made = await resource.create(CreateRequest(config, planned.state, planned.private), CallContext())
        return planned.state["projection"], made.state["projection"]

    foreseen, projection = asyncio.run(main())

    assert foreseen is UNKNOWN
    assert "data.a" in projection
    assert api_server.call("GET", f"/api/v1/namespaces/{namespace}/configmaps/late").body["data"] == {"a": "b"}

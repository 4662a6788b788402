"""The client on a real API server: watches, and kinds that have just been defined."""

import asyncio
import secrets
from typing import Any

import pytest

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.discovery import ApiResource, Discovery
from setpoint.clients.kubernetes.requests import Endpoint, ObjectSelector, PatchType, Representation
from setpoint.clients.kubernetes.watch import WatchEvent
from setpoint.errors import KindNotServed
from tests.clients.api_server_client import (
    DEFINITIONS,
    config_map,
    config_maps,
    definition,
    receive_events,
    summary,
    tree,
    with_client,
)
from tests.cluster.access import Access

TIMEOUT = 240.0


def test_a_watch_receives_every_change(api_server: Access, namespace: str) -> None:
    maps = config_maps(namespace)

    async def use(client: KubernetesClient) -> list[tuple[str, str]]:
        async def live() -> None:
            await client.create(maps, config_map("one"))
            await client.patch(maps.named("one"), {"data": {"a": "1"}}, PatchType.MERGE)
            # Changes nothing, so there is no event.
            await client.patch(maps.named("one"), {"data": {"a": "1"}}, PatchType.MERGE)
            await client.delete(maps.named("one"))

        return [summary(event) for event in await receive_events(client, maps, 3, live)]

    assert with_client(api_server.kubeconfig, use) == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]


def test_a_watch_can_select_objects_and_receive_their_metadata_alone(api_server: Access, namespace: str) -> None:
    maps = config_maps(namespace)

    async def use(client: KubernetesClient) -> WatchEvent:
        async def live() -> None:
            for name in ("one", "two"):
                await client.create(maps, config_map(name, a="1") | {"metadata": {"name": name, "labels": {"n": name}}})

        (event,) = await receive_events(
            client, maps, 1, live, ObjectSelector("n=two", representation=Representation.METADATA)
        )
        return event

    event = with_client(api_server.kubeconfig, use)

    assert summary(event) == ("ADDED", "two")
    assert "data" not in tree(bytes(event.object))


# --- Kinds ------------------------------------------------------------------------------------------------------------


def test_finds_and_watches_a_kind_that_has_just_been_defined(api_server: Access, namespace: str) -> None:
    group = f"g{secrets.token_hex(4)}.test"

    async def until_served(discovery: Discovery) -> ApiResource:
        async with asyncio.timeout(TIMEOUT):
            while True:
                try:
                    return await discovery.find(f"{group}/v1", "Widget")
                except KindNotServed:
                    await asyncio.sleep(0.05)

    async def use(client: KubernetesClient) -> tuple[ApiResource, list[tuple[str, str]]]:
        discovery = Discovery(client)
        with pytest.raises(KindNotServed):
            await discovery.find(f"{group}/v1", "Widget")
        await client.create(DEFINITIONS, definition(group, "widgets", "Widget"))
        served = await until_served(discovery)
        widgets = served.endpoint(namespace)
        body: Any = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": {"a": 1}}
        events = await receive_events(client, widgets, 2, lambda: _make_with_status(client, widgets, body))
        await client.delete(DEFINITIONS.named(f"widgets.{group}"))
        return served, [summary(event) for event in events]

    served, events = with_client(api_server.kubeconfig, use)

    assert (served.plural, served.namespaced, served.subresources) == ("widgets", True, frozenset({"status"}))
    assert served.verbs >= {"get", "list", "watch", "create", "patch", "delete"}
    assert events == [("ADDED", "one"), ("MODIFIED", "one")]


async def _make_with_status(client: KubernetesClient, widgets: Endpoint, body: Any) -> None:
    await client.create(widgets, body)
    await client.patch(widgets.named("one").status, {"status": {"b": 2}}, PatchType.MERGE)


def test_discovers_every_kind_and_its_preferred_version(api_server: Access) -> None:
    async def use(client: KubernetesClient) -> tuple[set[str], ApiResource, ApiResource]:
        discovery = Discovery(client)
        served, unavailable = await discovery.all_resources()
        assert not unavailable
        scaler = await discovery.preferred("HorizontalPodAutoscaler")
        return {one.kind for one in served}, scaler, await discovery.find("apps/v1", "Deployment")

    kinds, scaler, deployment = with_client(api_server.kubeconfig, use)

    assert kinds >= {"Pod", "Deployment", "CustomResourceDefinition", "Namespace"}
    assert (scaler.api_version, scaler.plural) == ("autoscaling/v2", "horizontalpodautoscalers")
    assert deployment.subresources == {"status", "scale"}

"""The configuration of Config Connector: whether its controller works in a namespace, and how it is paused."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from aiohttp import web

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.config_connector import ConfigConnector, ConfigConnectorMode
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.errors import RemoteRefused
from tests.clients.loopback_servers import http_server

T = TypeVar("T")
GROUP = "/apis/core.cnrm.cloud.google.com/v1beta1"
CONTEXT = f"{GROUP}/namespaces/team/configconnectorcontexts/configconnectorcontext.core.cnrm.cloud.google.com"
INSTALLATION = f"{GROUP}/configconnectors/configconnector.core.cnrm.cloud.google.com"


def _run(objects: dict[str, Any], scenario: Callable[[ConfigConnector], Awaitable[T]]) -> T:
    """The result of the scenario in a cluster with these objects."""

    async def handler(request: web.BaseRequest) -> web.Response:
        name = request.path.rpartition("/")[2]
        found = objects.get(request.path, 404)
        if request.method == "PATCH" and isinstance(found, dict):
            found["spec"] = {**found.get("spec", {}), **json.loads(await request.text())["spec"]}
        if isinstance(found, dict):
            return web.json_response(found)
        if found == 404:
            status = {"kind": "Status", "reason": "NotFound", "details": {"name": name}, "code": 404}
            return web.json_response(status, status=404)
        return web.Response(text="404 page not found", status=404) if found == "no kind" else web.Response(status=403)

    async def main() -> T:
        async with http_server(handler) as url:
            client = KubernetesClient(ClusterConnection("test", url))
            try:
                return await scenario(ConfigConnector(client))
            finally:
                await client.close()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ({}, ConfigConnectorMode.ABSENT),
        ({CONTEXT: "no kind", INSTALLATION: "no kind"}, ConfigConnectorMode.ABSENT),
        ({CONTEXT: {}}, ConfigConnectorMode.WORKS),
        ({CONTEXT: {"spec": {"actuationMode": "Reconciling", "googleServiceAccount": "x"}}}, ConfigConnectorMode.WORKS),
        (
            {CONTEXT: {"spec": {"actuationMode": "Paused"}}, INSTALLATION: {"spec": {"mode": "cluster"}}},
            ConfigConnectorMode.PAUSED,
        ),
        ({INSTALLATION: {"spec": {"mode": "namespaced"}}}, ConfigConnectorMode.ABSENT),
        ({INSTALLATION: {"spec": {"mode": "cluster"}}}, ConfigConnectorMode.CLUSTER_WIDE),
        ({INSTALLATION: {}}, ConfigConnectorMode.CLUSTER_WIDE),
        ({INSTALLATION: {"spec": {"mode": "cluster", "actuationMode": "Paused"}}}, ConfigConnectorMode.PAUSED),
    ],
)
def test_the_mode_follows_from_the_configuration(objects: dict[str, Any], expected: ConfigConnectorMode) -> None:
    assert _run(objects, lambda config_connector: config_connector.controller("team")) is expected


def test_without_permission_to_read_the_controller_is_not_reported_absent() -> None:
    with pytest.raises(RemoteRefused):
        _run({CONTEXT: "forbidden"}, lambda config_connector: config_connector.controller("team"))


def test_pause_sets_the_actuation_mode_and_nothing_else() -> None:
    objects: dict[str, Any] = {CONTEXT: {"spec": {"googleServiceAccount": "x"}}}

    async def scenario(config_connector: ConfigConnector) -> ConfigConnectorMode:
        await config_connector.pause("team")
        return await config_connector.controller("team")

    assert _run(objects, scenario) is ConfigConnectorMode.PAUSED
    assert objects[CONTEXT]["spec"] == {"googleServiceAccount": "x", "actuationMode": "Paused"}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [({"name": "d"}, False), ({"name": "d", "deletionTimestamp": "2026-01-01T00:00:00Z"}, True)],
)
def test_a_crd_with_a_deletion_timestamp_is_being_deleted(
    metadata: dict[str, str], expected: bool
) -> None:  # a parameter
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/d"

    assert (
        _run({path: {"metadata": metadata}}, lambda config_connector: config_connector.is_being_deleted("d"))
        is expected
    )
    assert _run({}, lambda config_connector: config_connector.is_being_deleted("d")) is False

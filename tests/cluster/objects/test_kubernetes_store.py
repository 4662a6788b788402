"""KubernetesObjects in a Kubernetes store, whose client also reaches their objects."""

import asyncio
from typing import Any

import pytest

from setpoint.app import AppSettings, StoreAccess, definitions, open_app
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Gone, Settled
from setpoint.engine.step.reconcile import preview, step
from setpoint.kinds.kubernetes_object.spec import GROUP, NAME
from tests.cluster.access import Access
from tests.cluster.objects.object_harness import config_map, environment
from tests.cluster.polling import until

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLURAL = "kubernetesobjects"


@pytest.fixture
def served(api_server: Access) -> Access:
    """The shared API server, which serves KubernetesObjects."""
    made = api_server.call("POST", DEFINITIONS, definitions()[GROUP, NAME])
    assert made.status in (201, 409), made
    path = f"/apis/{GROUP}/v1alpha1/namespaces/default/{PLURAL}"
    until(lambda: api_server.call("GET", path).status == 200)
    return api_server


def test_a_custom_resource_creates_and_deletes_its_object(served: Access, namespace: str) -> None:
    resource: Any = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": NAME,
        "metadata": {"name": "one", "namespace": namespace},
        "spec": {"manifest": config_map(a="1"), "waitFor": {"field": "data.a"}},
    }
    path = f"/apis/{GROUP}/v1alpha1/namespaces/{namespace}/{PLURAL}"
    ref = ResourceRef(GROUP, NAME, namespace, "one")
    assert served.call("POST", path, resource).status == 201

    async def lifecycle() -> None:
        settings = AppSettings("kubernetes", environment=environment(served.kubeconfig))
        async with open_app(settings, StoreAccess.WRITE) as opened:
            assert isinstance(await step(ref, opened.engine), Settled)
            # One client for Google, one for the store and its objects.
            assert len(opened.requests) == 2
            assert (await preview(ref, opened.engine)).is_empty
            status = served.call("GET", f"{path}/one").body["status"]
            assert status["output"] == {"state": "known", "value": {"data": {"a": "1"}}}
            assert status["object"]["name"] == "map"
            served.call("DELETE", f"{path}/one")
            assert isinstance(await step(ref, opened.engine), Gone)

    asyncio.run(lifecycle())

    assert served.call("GET", f"{path}/one").status == 404
    assert served.call("GET", f"/api/v1/namespaces/{namespace}/configmaps/map").status == 404


@pytest.mark.parametrize("manifest", [config_map(a="1"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n"])
def test_a_manifest_is_stored_as_written(manifest: Any, served: Access, namespace: str) -> None:
    head = {"apiVersion": f"{GROUP}/v1alpha1", "kind": NAME, "metadata": {"name": "one"}}
    path = f"/apis/{GROUP}/v1alpha1/namespaces/{namespace}/{PLURAL}?fieldValidation=Strict"

    made = served.call("POST", path, {**head, "spec": {"manifest": manifest}})

    assert made.status == 201, made
    assert made.body["spec"] == {"manifest": manifest}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"manifest": {}, "replac": True},
        {"manifest": {}, "cluster": {"inCluster": True, "context": "a"}},
        {"manifest": {}, "deletion": {"propagation": "Sideways"}},
        {"manifest": {}, "ignoreFields": "spec.replicas"},
    ],
)
def test_the_api_server_refuses_an_invalid_spec(spec: Any, served: Access, namespace: str) -> None:
    head = {"apiVersion": f"{GROUP}/v1alpha1", "kind": NAME, "metadata": {"name": "one"}}
    path = f"/apis/{GROUP}/v1alpha1/namespaces/{namespace}/{PLURAL}?fieldValidation=Strict"

    assert served.call("POST", path, {**head, "spec": spec}).status in (400, 422)

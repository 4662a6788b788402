"""Values of objects in the manifests of other objects."""

from typing import Any

import pytest

from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import Blocked, DependencyNotReady, ManifestInvalid
from tests.cluster.objects.object_harness import ObjectHarness, Tree, config_map

INGRESS = "status.loadBalancer.ingress"


def service(**metadata: Any) -> Tree:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front", **metadata},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }


def report_address(harness: ObjectHarness, address: str) -> None:
    """Reports an address in the status, as a controller does."""
    status = {"loadBalancer": {"ingress": [{"ip": address}]}}
    harness.edit(harness.path("services", "front/status"), {"status": status})


def ref(path: str = f"{INGRESS}[0].ip", name: str = "front") -> Tree:
    return {"$ref": {"kind": "KubernetesObject", "name": name, "path": path}}


def record(harness: ObjectHarness) -> Any:
    live = harness.live("configmaps", "record")
    return None if live is None else live["data"]


def test_a_record_is_created_once_the_address_is_known_and_follows_it(harness: ObjectHarness) -> None:
    harness.declare(service(), "front", waitFor={"field": INGRESS})
    harness.step("front")
    harness.declare(config_map("record") | {"data": {"address": ref()}}, "record")

    error = harness.stop_reason("record")
    assert isinstance(error, Blocked)
    assert record(harness) is None
    report_address(harness, "192.0.2.1")
    assert isinstance(harness.step("front"), Settled)
    assert isinstance(harness.step_until_done("record"), Settled)
    assert record(harness) == {"address": "192.0.2.1"}

    report_address(harness, "192.0.2.2")
    harness.step("front")
    assert harness.changes("record") == {"data.address": ("192.0.2.1", "192.0.2.2")}
    harness.step_until_done("record")
    assert record(harness) == {"address": "192.0.2.2"}

    harness.edit(harness.path("services", "front/status"), {"status": {"loadBalancer": {"ingress": None}}})
    harness.step("front")
    assert isinstance(harness.step("record"), Stopped)
    assert record(harness) == {"address": "192.0.2.2"}


def test_values_are_inserted_into_text(harness: ObjectHarness) -> None:
    harness.declare(service(), "front", waitFor={"field": "spec.ports"})
    harness.step_until_done("front")
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: record}\ndata:\n"
        "  url: http://${ref:KubernetesObject/front:spec.ports[0].port}/${ref:KubernetesObject.setpoint.dev/front:spec.ports[0].protocol}\n"
        '  port: "${ref:KubernetesObject/front:spec.ports[0].port}"\n'
        "  plain: $${ref:KubernetesObject/front:x}\n"
    )

    harness.settle(text, "record")

    assert record(harness) == {"url": "http://80/TCP", "port": "80", "plain": "${ref:KubernetesObject/front:x}"}


def test_a_name_may_come_from_another_object(harness: ObjectHarness) -> None:
    harness.declare(service(labels={"stage": "test"}), "front", waitFor={"field": "metadata.labels"})
    harness.step_until_done("front")
    named = config_map("map-${ref:KubernetesObject/front:metadata.labels.stage}", a="1")

    harness.settle(named, "record")

    assert harness.live("configmaps", "map-test") is not None


def test_a_value_without_a_wait_names_the_missing_wait(harness: ObjectHarness) -> None:
    harness.settle(service(), "front")
    harness.declare(config_map("record") | {"data": {"address": ref()}}, "record")

    error = harness.stop_reason("record")

    assert isinstance(error, ManifestInvalid)
    assert "waitFor.field" in str(error)


def test_a_value_of_a_missing_resource_is_waited_for(harness: ObjectHarness) -> None:
    harness.declare(config_map("record") | {"data": {"address": ref(name="missing")}}, "record")

    assert isinstance(harness.stop_reason("record"), DependencyNotReady | Blocked)


def test_a_map_cannot_be_inserted_into_text(harness: ObjectHarness) -> None:
    harness.declare(service(), "front", waitFor={"field": "spec.ports"})
    harness.step_until_done("front")
    harness.declare(config_map("record", a="${ref:KubernetesObject/front:spec.ports[0]}"), "record")

    error = harness.stop_reason("record")

    assert isinstance(error, ManifestInvalid)
    assert "a list or a map" in str(error)


def test_a_field_wait_makes_no_output_of_a_secret(harness: ObjectHarness) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"a": "b"}}

    with pytest.raises(ManifestInvalid, match="do not become outputs"):
        harness.declare(secret, waitFor={"field": "data"})

"""Values that flow from one object to another."""

from typing import Any

import pytest

from setpoint.engine.context import Settled, Stopped
from setpoint.errors import Blocked, DependencyNotReady, ManifestInvalid
from tests.cluster.objects.object_harness import Site, Tree, config_map

INGRESS = "status.loadBalancer.ingress"


def service(**metadata: Any) -> Tree:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front", **metadata},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }


def give_address(site: Site, address: str) -> None:
    """What a controller does."""
    status = {"loadBalancer": {"ingress": [{"ip": address}]}}
    site.edit(site.path("services", "front/status"), {"status": status})


def ref(path: str = f"{INGRESS}[0].ip", name: str = "front") -> Tree:
    return {"$ref": {"kind": "KubernetesObject", "name": name, "path": path}}


def record(site: Site) -> Any:
    live = site.live("configmaps", "record")
    return None if live is None else live["data"]


def test_a_record_is_made_with_the_address_once_there_is_one_and_follows_it(site: Site) -> None:
    site.declare(service(), "front", waitFor={"field": INGRESS})
    site.step("front")
    site.declare(config_map("record") | {"data": {"address": ref()}}, "record")

    error = site.stop("record")
    assert isinstance(error, Blocked)
    assert record(site) is None
    give_address(site, "192.0.2.1")
    assert isinstance(site.step("front"), Settled)
    assert isinstance(site.go_on("record"), Settled)
    assert record(site) == {"address": "192.0.2.1"}

    give_address(site, "192.0.2.2")
    site.step("front")
    assert site.changes("record") == {"data.address": ("192.0.2.1", "192.0.2.2")}
    site.go_on("record")
    assert record(site) == {"address": "192.0.2.2"}

    site.edit(site.path("services", "front/status"), {"status": {"loadBalancer": {"ingress": None}}})
    site.step("front")
    assert isinstance(site.step("record"), Stopped)
    assert record(site) == {"address": "192.0.2.2"}


def test_values_go_into_text_and_text_stays_text(site: Site) -> None:
    site.declare(service(), "front", waitFor={"field": "spec.ports"})
    site.go_on("front")
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: record}\ndata:\n"
        "  url: http://${ref:KubernetesObject/front:spec.ports[0].port}/${ref:KubernetesObject.setpoint.dev/front:spec.ports[0].protocol}\n"
        '  port: "${ref:KubernetesObject/front:spec.ports[0].port}"\n'
        "  plain: $${ref:KubernetesObject/front:x}\n"
    )

    site.settle(text, "record")

    assert record(site) == {"url": "http://80/TCP", "port": "80", "plain": "${ref:KubernetesObject/front:x}"}


def test_a_name_may_come_from_another_object(site: Site) -> None:
    site.declare(service(labels={"stage": "test"}), "front", waitFor={"field": "metadata.labels"})
    site.go_on("front")
    named = config_map("map-${ref:KubernetesObject/front:metadata.labels.stage}", a="1")

    site.settle(named, "record")

    assert site.live("configmaps", "map-test") is not None


def test_a_value_without_a_wait_names_the_missing_wait(site: Site) -> None:
    site.settle(service(), "front")
    site.declare(config_map("record") | {"data": {"address": ref()}}, "record")

    error = site.stop("record")

    assert isinstance(error, ManifestInvalid)
    assert "waitFor.field" in str(error)


def test_a_value_of_what_is_not_there_is_waited_for(site: Site) -> None:
    site.declare(config_map("record") | {"data": {"address": ref(name="nobody")}}, "record")

    assert isinstance(site.stop("record"), DependencyNotReady | Blocked)


def test_a_map_has_no_place_in_a_text(site: Site) -> None:
    site.declare(service(), "front", waitFor={"field": "spec.ports"})
    site.go_on("front")
    site.declare(config_map("record", a="${ref:KubernetesObject/front:spec.ports[0]}"), "record")

    error = site.stop("record")

    assert isinstance(error, ManifestInvalid)
    assert "a list or a map" in str(error)


def test_a_field_wait_offers_nothing_of_a_secret(site: Site) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"a": "b"}}

    with pytest.raises(ManifestInvalid, match="do not become outputs"):
        site.declare(secret, waitFor={"field": "data"})

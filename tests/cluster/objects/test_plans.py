"""What the API server says before anything is written."""

from typing import Any

import pytest

from setpoint.core.redaction import REDACTED
from setpoint.core.values.json_types import MISSING
from setpoint.engine.context import Settled
from setpoint.errors import RemoteError, RemoteInvalid, RemoteRefused
from tests.cluster.objects.object_harness import Site, Tree, config_map, deployment

APPS = "apis/apps/v1"


def service(**spec: Any) -> Tree:
    ports = [{"port": 80, "targetPort": "http"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": ports, **spec},
    }


def secret(**members: Any) -> Tree:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, **members}


# --- Wrong manifests fail at the plan ---------------------------------------------------------------------------------


@pytest.mark.parametrize("exists", [False, True])
def test_fields_that_do_not_exist_fail_at_the_plan_all_of_them(exists: bool, site: Site) -> None:
    if exists:
        site.settle(deployment())
    site.declare(deployment(replica=1, paussed=True))

    with pytest.raises(RemoteError) as caught:
        site.plan()

    assert isinstance(caught.value, RemoteRefused)
    assert "replica" in str(caught.value)
    assert "paussed" in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "word"),
    [({"replicas": "many"}, "replicas"), ({"strategy": {"type": "Sometimes"}}, "spec.strategy: Unsupported value")],
)
def test_values_that_cannot_be_fail_at_the_plan(spec: Tree, word: str, site: Site) -> None:
    site.declare(deployment(**spec))

    with pytest.raises(RemoteRefused, match=word):
        site.plan()


def test_a_wrong_field_fails_at_once_and_is_not_waited_for(site: Site) -> None:
    site.declare(config_map() | {"dta": {}})

    assert isinstance(site.stop(), RemoteRefused)
    assert site.live("configmaps", "map") is None
    assert site.ready() == ("False", "UpdateFailed")


def test_every_wrong_value_is_named(site: Site) -> None:
    site.declare(service(type="ClusterIP", clusterIP="not-an-address"))

    with pytest.raises(RemoteInvalid, match=r"spec\.clusterIPs"):
        site.plan()


# --- What the server does to values is no drift -----------------------------------------------------------------------


def settles_for_good(site: Site, manifest: Tree) -> None:
    site.settle(manifest)
    writes = site.writes()
    assert site.plan().is_empty
    outcome = site.step()
    assert isinstance(outcome, Settled)
    assert outcome.plan.is_empty
    assert site.writes() == writes
    site.restart()
    site.declare(manifest, annotations={"a": "comment"})
    assert site.plan().is_empty


def test_quantities_in_another_spelling_are_the_same(site: Site) -> None:
    sized = deployment()
    sized["spec"]["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "1000m", "memory": "1024Mi"},
        "limits": {"cpu": 2, "memory": "1.5Gi"},
    }

    settles_for_good(site, sized)


def test_a_claim_with_a_quantity_settles(site: Site) -> None:
    settles_for_good(
        site,
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "disk"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}},
        },
    )


def test_numbers_and_names_of_ports_settle(site: Site) -> None:
    settles_for_good(site, service(ports=[{"name": "a", "port": 80, "targetPort": 8080}, {"name": "b", "port": 81}]))


def test_the_node_port_and_the_address_never_drift(site: Site) -> None:
    settles_for_good(site, service(type="NodePort"))


def test_empty_maps_and_lists_settle(site: Site) -> None:
    empty = deployment(strategy={})
    empty["spec"]["template"]["spec"] |= {
        "securityContext": {},
        "tolerations": [],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }
    empty["metadata"]["labels"] = {}

    settles_for_good(site, empty)


def test_nulls_settle(site: Site) -> None:
    settles_for_good(site, deployment(minReadySeconds=None) | {"status": {}})


def test_an_object_with_nothing_but_a_name_settles(site: Site) -> None:
    settles_for_good(site, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bare"}})


def test_numbers_beyond_doubles_settle(site: Site) -> None:
    settles_for_good(site, deployment(progressDeadlineSeconds=2147483647))


# --- Secrets ----------------------------------------------------------------------------------------------------------


def test_values_of_a_secret_are_in_no_plan(site: Site) -> None:
    site.declare(secret(stringData={"password": "hunter2"}, type="Opaque"))

    made = site.changes()
    site.go_on()
    site.declare(secret(stringData={"password": "another", "more": "x"}, type="Opaque"))

    assert made == {"data.password": (MISSING, REDACTED), "type": (MISSING, "Opaque")}
    assert site.changes() == {"data.password": (REDACTED, REDACTED), "data.more": (MISSING, REDACTED)}
    assert "hunter2" not in str(site.status())


def test_text_in_a_secret_settles_and_drift_of_it_is_put_back(site: Site) -> None:
    settles_for_good(site, secret(stringData={"password": "hunter2"}))
    site.edit(site.path("secrets", "keys"), {"stringData": {"password": "guess"}})

    assert site.changes() == {"data.password": (REDACTED, REDACTED)}
    site.go_on()

    live = site.live("secrets", "keys")
    assert live is not None
    assert live["data"] == {"password": "aHVudGVyMg=="}


def test_text_goes_before_data_of_the_same_name(site: Site) -> None:
    site.settle(secret(data={"a": "b2xk"}, stringData={"a": "new"}))

    live = site.live("secrets", "keys")
    assert live is not None
    assert live["data"] == {"a": "bmV3"}

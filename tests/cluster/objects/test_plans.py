"""Plans by server-side dry run."""

from typing import Any

import pytest

from setpoint.core.redaction import REDACTED
from setpoint.core.values.json_types import MISSING
from setpoint.engine.step.outcomes import Settled
from setpoint.errors import RemoteError, RemoteInvalid, RemoteRefused
from tests.cluster.objects.object_harness import ObjectHarness, Tree, config_map, deployment

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


# --- Invalid manifests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exists", [False, True])
def test_all_unknown_fields_fail_the_plan(exists: bool, harness: ObjectHarness) -> None:
    if exists:
        harness.settle(deployment())
    harness.declare(deployment(replica=1, paussed=True))

    with pytest.raises(RemoteError) as caught:
        harness.plan()

    assert isinstance(caught.value, RemoteRefused)
    assert "replica" in str(caught.value)
    assert "paussed" in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "word"),
    [({"replicas": "many"}, "replicas"), ({"strategy": {"type": "Sometimes"}}, "spec.strategy: Unsupported value")],
)
def test_invalid_values_fail_the_plan(spec: Tree, word: str, harness: ObjectHarness) -> None:
    harness.declare(deployment(**spec))

    with pytest.raises(RemoteRefused, match=word):
        harness.plan()


def test_an_unknown_field_fails_the_step_and_creates_nothing(harness: ObjectHarness) -> None:
    harness.declare(config_map() | {"dta": {}})

    assert isinstance(harness.stop_reason(), RemoteRefused)
    assert harness.live("configmaps", "map") is None
    assert harness.ready() == ("False", "UpdateFailed")


def test_an_invalid_value_is_named(harness: ObjectHarness) -> None:
    harness.declare(service(type="ClusterIP", clusterIP="not-an-address"))

    with pytest.raises(RemoteInvalid, match=r"spec\.clusterIPs"):
        harness.plan()


# --- Normalised values are no drift -----------------------------------------------------------------------------------


def assert_settles(harness: ObjectHarness, manifest: Tree) -> None:
    harness.settle(manifest)
    writes = harness.writes()
    assert harness.plan().is_empty
    outcome = harness.step()
    assert isinstance(outcome, Settled)
    assert outcome.plan.is_empty
    assert harness.writes() == writes
    harness.restart()
    harness.declare(manifest, annotations={"a": "comment"})
    assert harness.plan().is_empty


def test_quantities_in_another_spelling_are_the_same(harness: ObjectHarness) -> None:
    sized = deployment()
    sized["spec"]["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "1000m", "memory": "1024Mi"},
        "limits": {"cpu": 2, "memory": "1.5Gi"},
    }

    assert_settles(harness, sized)


def test_a_claim_with_a_quantity_settles(harness: ObjectHarness) -> None:
    assert_settles(
        harness,
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "disk"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}},
        },
    )


def test_numbers_and_names_of_ports_settle(harness: ObjectHarness) -> None:
    assert_settles(harness, service(ports=[{"name": "a", "port": 80, "targetPort": 8080}, {"name": "b", "port": 81}]))


def test_the_node_port_and_the_address_never_drift(harness: ObjectHarness) -> None:
    assert_settles(harness, service(type="NodePort"))


def test_empty_maps_and_lists_settle(harness: ObjectHarness) -> None:
    empty = deployment(strategy={})
    empty["spec"]["template"]["spec"] |= {
        "securityContext": {},
        "tolerations": [],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }
    empty["metadata"]["labels"] = {}

    assert_settles(harness, empty)


def test_nulls_settle(harness: ObjectHarness) -> None:
    assert_settles(harness, deployment(minReadySeconds=None) | {"status": {}})


def test_an_object_with_nothing_but_a_name_settles(harness: ObjectHarness) -> None:
    assert_settles(harness, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bare"}})


def test_numbers_beyond_doubles_settle(harness: ObjectHarness) -> None:
    assert_settles(harness, deployment(progressDeadlineSeconds=2147483647))


# --- Secrets ----------------------------------------------------------------------------------------------------------


def test_values_of_a_secret_are_in_no_plan(harness: ObjectHarness) -> None:
    harness.declare(secret(stringData={"password": "hunter2"}, type="Opaque"))

    made = harness.changes()
    harness.step_until_done()
    harness.declare(secret(stringData={"password": "another", "more": "x"}, type="Opaque"))

    assert made == {"data.password": (MISSING, REDACTED), "type": (MISSING, "Opaque")}
    assert harness.changes() == {"data.password": (REDACTED, REDACTED), "data.more": (MISSING, REDACTED)}
    assert "hunter2" not in str(harness.status())


def test_string_data_of_a_secret_settles_and_its_drift_is_reverted(harness: ObjectHarness) -> None:
    assert_settles(harness, secret(stringData={"password": "hunter2"}))
    harness.edit(harness.path("secrets", "keys"), {"stringData": {"password": "guess"}})

    assert harness.changes() == {"data.password": (REDACTED, REDACTED)}
    harness.step_until_done()

    live = harness.live("secrets", "keys")
    assert live is not None
    assert live["data"] == {"password": "aHVudGVyMg=="}


def test_string_data_overrides_data_of_the_same_name(harness: ObjectHarness) -> None:
    harness.settle(secret(data={"a": "b2xk"}, stringData={"a": "new"}))

    live = harness.live("secrets", "keys")
    assert live is not None
    assert live["data"] == {"a": "bmV3"}

"""The input objects of a KbsConfig, their digest, and its readiness."""

from typing import Any

import pytest

from setpoint.core.schema.openapi import schema_of
from setpoint.errors import DependencyNotFound
from setpoint.kinds.field_docs import field_docs
from setpoint.kinds.trustee.kbs_config import (
    InputObject,
    KbsConfigStatus,
    TrusteeReadiness,
    deployment_readiness,
    input_objects,
    input_versions,
)
from tests.kinds.trustee.trustee_objects import kbs_config

SETTINGS, AUTH = InputObject("ConfigMap", "settings"), InputObject("Secret", "auth")


def found(**secret: Any) -> dict[InputObject, Any]:
    return {
        SETTINGS: {"data": {"kbs-config.toml": "x"}, "metadata": {"resourceVersion": "1"}},
        AUTH: {"data": {"publicKey": "a2V5"}, "metadata": {"uid": "u9"}, **secret},
    }


def trace(objects: dict[InputObject, Any], **spec: Any) -> str:
    return input_versions(kbs_config(**spec)[1], objects)


def test_input_objects_are_listed_once_with_config_maps_first() -> None:
    _, spec = kbs_config(
        kbsRvpsRefValuesConfigMapName="values",
        kbsAttestationPolicyConfigMapName="policies",
        kbsGpuAttestationPolicyConfigMapName="policies",
        kbsResourcePolicyConfigMapName="resources",
        kbsAsConfigMapName="not for one container",
        kbsHttpsKeySecretName="hk",
        kbsHttpsCertSecretName="hc",
        kbsAttestationKeySecretName="half",
        kbsSecretResources=["auth", "s"],
        kbsLocalCertCacheSpec={"secrets": [{"secretName": "chip"}]},
    )

    assert [str(part) for part in input_objects(spec)] == [
        *("ConfigMap settings", "ConfigMap values", "ConfigMap policies", "ConfigMap resources"),
        *("Secret auth", "Secret chip", "Secret hk", "Secret hc", "Secret s"),
    ]


def test_microservices_have_two_more_input_objects() -> None:
    _, spec = kbs_config(kbsDeploymentType="MicroservicesDeployment", kbsAsConfigMapName="a", kbsRvpsConfigMapName="r")

    assert [part.name for part in input_objects(spec)] == ["settings", "a", "r", "auth"]


def test_the_input_digest_changes_only_with_the_contents() -> None:
    before = trace(found())

    assert [one.split(":")[0] for one in before.split(",")] == ["settings", "auth"]
    assert (
        trace({**found(), SETTINGS: {"data": {"kbs-config.toml": "x"}, "metadata": {"resourceVersion": "2"}}}) == before
    )
    assert trace({**found(), SETTINGS: {"data": {"kbs-config.toml": "y"}}}) != before
    assert trace({**found(), SETTINGS: {"binaryData": {"kbs-config.toml": "x"}}}) != before
    assert trace(found(data={"publicKey": "bmV3"})) != before


def test_the_contents_of_a_secret_cannot_be_guessed_from_its_digest() -> None:
    assert trace(found(metadata={"uid": "u9"})) == trace(found())
    assert trace(found(metadata={"uid": "another"})) != trace(found())


def test_missing_input_objects_are_named() -> None:
    with pytest.raises(DependencyNotFound, match="not found: ConfigMap settings, Secret s: create them"):
        trace({AUTH: {}}, kbsSecretResources=["s"])


def live(wanted: int = 2, generation: int = 3, observed: int = 3, **status: int) -> Any:
    counts = {"replicas": wanted, "updatedReplicas": wanted, "availableReplicas": wanted, **status}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "trustee-deployment", "namespace": "trust", "generation": generation},
        "spec": {"replicas": wanted},
        "status": {"observedGeneration": observed, **counts},
    }


def test_it_is_ready_when_all_declared_pods_are_available() -> None:
    assert deployment_readiness(live()).is_ready
    assert deployment_readiness(live()).message == "Trustee deployment is ready"


@pytest.mark.parametrize(
    "one",
    [
        live(observed=2),
        live(availableReplicas=1),
        live(updatedReplicas=1),
        live(replicas=3),
        live(1, availableReplicas=0),
    ],
)
def test_it_is_rolling_out_until_then(one: Any) -> None:
    assert deployment_readiness(one).readiness is TrusteeReadiness.ROLLING_OUT
    assert deployment_readiness(one).message.startswith("Deployment trust/trustee-deployment: ")


def test_an_absent_deployment_and_zero_replicas_are_different() -> None:
    assert deployment_readiness(None).readiness is TrusteeReadiness.ABSENT
    assert deployment_readiness(live(0)).readiness is TrusteeReadiness.SCALED_TO_ZERO
    assert not deployment_readiness(live(0)).is_ready
    assert deployment_readiness(live(0, replicas=1)).readiness is TrusteeReadiness.ROLLING_OUT


def test_the_schema_of_the_status_requires_is_ready() -> None:
    assert schema_of(KbsConfigStatus, field_docs)["required"] == ["isReady"]

"""The Deployment and the Service of a KbsConfig."""

from typing import Any

import pytest

from setpoint.core.merge.children import contains_all
from setpoint.errors import ManifestInvalid, UserError
from setpoint.kinds.trustee.kbs_config import TrusteeImages, WorkloadInputs, deployment, images, service
from tests.kinds.trustee.trustee_objects import kbs_config

IMAGES = TrusteeImages("operator:1", "kbs:1", "as:1", "rvps:1")
STORAGE = "/opt/confidential-containers/storage"


def built(**spec: Any) -> Any:
    return deployment(*kbs_config(**spec), IMAGES, WorkloadInputs("settings:1"))


def pod(**spec: Any) -> Any:
    return built(**spec)["spec"]["template"]["spec"]


def mounts(container: Any) -> dict[str, str]:
    return {one["name"]: one["mountPath"] for one in container["volumeMounts"]}


EVERYTHING: dict[str, Any] = {
    "kbsRvpsRefValuesConfigMapName": "values",
    "kbsAttestationPolicyConfigMapName": "cpu",
    "kbsGpuAttestationPolicyConfigMapName": "gpu",
    "kbsResourcePolicyConfigMapName": "resources",
    "kbsHttpsKeySecretName": "hk",
    "kbsHttpsCertSecretName": "hc",
    "kbsAttestationKeySecretName": "tk",
    "kbsAttestationCertSecretName": "tc",
    "ibmSEConfigSpec": {"certStorePvc": "claim"},
    "kbsLocalCertCacheSpec": {"secrets": [{"secretName": "chip", "mountPath": "/chip"}, {"secretName": "other"}]},
    "kbsSecretResources": ["s1", "s2"],
}


def test_volumes_have_a_fixed_order() -> None:
    assert [one["name"] for one in pod(**EVERYTHING)["volumes"]] == [
        "kbs-config",
        "base-storage-dir",
        "attestation-policy-dir",
        "attestation-policy",
        "attestation-policy-gpu",
        "resource-policy-dir",
        "resource-policy",
        "claim",
        "auth-secret",
        "chip",
        "other",
        "https-key",
        "https-cert",
        "attestation-key",
        "attestation-cert",
        "repository-dir",
        "s1",
        "s2",
        "rvps-dir",
        "reference-values",
    ]


def test_objects_that_the_spec_does_not_name_are_not_mounted() -> None:
    assert [one["name"] for one in pod()["volumes"]] == [
        "kbs-config",
        "base-storage-dir",
        "attestation-policy-dir",
        "resource-policy-dir",
        "auth-secret",
        "repository-dir",
        "rvps-dir",
    ]


def test_the_mount_paths_are_those_of_the_server() -> None:
    (broker,) = pod(**EVERYTHING)["containers"]

    assert mounts(broker) == {
        "kbs-config": "/etc/kbs-config",
        "base-storage-dir": STORAGE,
        "attestation-policy-dir": f"{STORAGE}/attestation_service_policy",
        "attestation-policy": f"{STORAGE}/attestation_service_policy/default_cpu.rego",
        "attestation-policy-gpu": f"{STORAGE}/attestation_service_policy/default_gpu.rego",
        "resource-policy-dir": f"{STORAGE}/kbs",
        "resource-policy": f"{STORAGE}/kbs/resource-policy.rego",
        "claim": "/run/confidential-containers/ibmse/",
        "auth-secret": "/etc/auth-secret",
        "chip": "/chip",
        "other": "/opt/confidential-containers/attestation-service/kds-store/vcek",
        "https-key": "/etc/https-key",
        "https-cert": "/etc/https-cert",
        "attestation-key": "/etc/attestation-key",
        "attestation-cert": "/etc/attestation-cert",
        "repository-dir": f"{STORAGE}/repository",
        "rvps-dir": f"{STORAGE}/local_json",
        "reference-values": f"{STORAGE}/local_json/reference_value",
    }
    assert [one.get("subPath") for one in broker["volumeMounts"] if "subPath" in one] == [
        "default_cpu.rego",
        "default_gpu.rego",
        "resource-policy.rego",
        "reference_value",
    ]


def test_secrets_for_clients_are_mounted_in_the_init_container_only() -> None:
    (first,) = pod(**EVERYTHING)["initContainers"]
    (broker,) = pod(**EVERYTHING)["containers"]

    more = {name: path for name, path in mounts(first).items() if name not in mounts(broker)}

    assert more == {"s1": "/tmp/kbs-secrets/s1", "s2": "/tmp/kbs-secrets/s2"}
    assert (first["name"], first["image"], first["command"]) == (
        "secret-converter",
        "operator:1",
        ["/secret-converter"],
    )
    assert first["securityContext"]["runAsNonRoot"] is True


def test_a_key_without_a_certificate_is_not_mounted() -> None:
    names = [one["name"] for one in pod(kbsHttpsKeySecretName="hk", kbsAttestationCertSecretName="tc")["volumes"]]

    assert not {"https-key", "https-cert", "attestation-key", "attestation-cert"} & set(names)


def test_probes_use_https_with_a_key_and_a_certificate() -> None:
    (plain,), (secure,) = pod()["containers"], pod(**EVERYTHING)["containers"]

    assert plain["readinessProbe"] == {
        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
        "initialDelaySeconds": 5,
        "periodSeconds": 10,
        "timeoutSeconds": 5,
        "failureThreshold": 3,
    }
    assert (plain["livenessProbe"]["initialDelaySeconds"], plain["livenessProbe"]["periodSeconds"]) == (15, 30)
    assert {secure[probe]["httpGet"]["scheme"] for probe in ("readinessProbe", "livenessProbe")} == {"HTTPS"}


def test_the_container_is_restricted() -> None:
    (broker,) = pod()["containers"]

    assert broker["command"] == ["/usr/local/bin/kbs", "--config-file", "/etc/kbs-config/kbs-config.toml"]
    assert broker["ports"] == [{"name": "kbs", "containerPort": 8080, "protocol": "TCP"}]
    assert broker["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


@pytest.mark.parametrize("env", [{"B": "2", "A": ""}, {"A": "", "B": "2"}])
def test_the_environment_is_sorted(env: dict[str, str]) -> None:
    (broker,) = pod(KbsEnvVars=env)["containers"]

    assert broker["env"] == [{"name": "A", "value": ""}, {"name": "B", "value": "2"}]


def test_microservices_are_three_containers_with_their_own_settings() -> None:
    three = pod(kbsDeploymentType="MicroservicesDeployment", kbsAsConfigMapName="a", kbsRvpsConfigMapName="r")

    assert [(one["name"], one["image"], one["ports"][0]["containerPort"]) for one in three["containers"]] == [
        ("kbs", "kbs:1", 8080),
        ("as", "as:1", 50004),
        ("rvps", "rvps:1", 50003),
    ]
    assert [one["name"] for one in three["volumes"]][-2:] == ["as-config", "rvps-config"]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"kbsConfigMapName": ""}, "ConfigMap name hasn't been provided for volume kbs-config"),
        ({"kbsAuthSecretName": None}, "Secret name hasn't been provided for volume auth-secret"),
        ({"kbsDeploymentType": "MicroservicesDeployment"}, "ConfigMap name hasn't been provided for volume as-config"),
        ({"kbsSecretResources": ["s", "s"]}, "the volume s is there more than once"),
        ({"kbsSecretResources": ["auth-secret"]}, "the volume auth-secret is there more than once"),
        (
            {"kbsSecretResources": ["s"], "kbsLocalCertCacheSpec": {"secrets": [{"secretName": "s"}]}},
            "the volume s is there more than once",
        ),
        (
            {"kbsLocalCertCacheSpec": {"secrets": [{"secretName": "a"}, {"secretName": "b", "mountPath": ""}]}},
            "give each entry a mountPath of its own",
        ),
    ],
)
def test_an_invalid_pod_is_refused(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(ManifestInvalid, match=problem):
        built(**spec)


def test_a_secret_with_a_name_that_is_invalid_for_a_volume_is_mounted() -> None:
    (first,) = pod(kbsSecretResources=["my.secret"])["initContainers"]
    volume = next(
        one
        for one in pod(kbsSecretResources=["my.secret"])["volumes"]
        if "secret" in one and one["secret"]["secretName"] == "my.secret"
    )

    assert mounts(first)[volume["name"]] == "/tmp/kbs-secrets/my.secret"
    assert "." not in volume["name"]


@pytest.mark.parametrize(
    ("declared", "replicas"), [(None, 1), ({}, 1), ({"replicas": None}, 1), ({"replicas": 0}, 0), ({"replicas": 3}, 3)]
)
def test_one_pod_by_default(declared: Any, replicas: int) -> None:
    assert built(KbsDeploymentSpec=declared)["spec"]["replicas"] == replicas


def test_the_deployment_is_owned_and_has_the_input_digest() -> None:
    found = built()

    assert (found["metadata"]["name"], found["metadata"]["namespace"]) == ("trustee-deployment", "trust")
    assert found["metadata"]["ownerReferences"][0]["uid"] == "u2"
    assert found["spec"]["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
    assert found["spec"]["selector"] == {"matchLabels": {"app": "kbs"}}
    assert found["spec"]["template"]["metadata"] == {
        "labels": {"app": "kbs"},
        "annotations": {"kbs.confidentialcontainers.org/configmap-versions": "settings:1"},
    }


@pytest.mark.parametrize(("declared", "type_"), [(None, "ClusterIP"), ("", "ClusterIP"), ("NodePort", "NodePort")])
def test_the_service_has_the_declared_type(declared: str | None, type_: str) -> None:
    found: Any = service(*kbs_config(kbsServiceType=declared))

    assert found["metadata"]["name"] == "kbs-service"
    assert found["spec"] == {
        "type": type_,
        "selector": {"app": "kbs"},
        "ports": [{"name": "kbs-port", "port": 8080, "targetPort": 8080, "protocol": "TCP"}],
    }


def test_defaults_of_the_server_are_no_difference() -> None:
    live = built(**EVERYTHING)
    live["spec"]["template"]["spec"]["dnsPolicy"] = "ClusterFirst"
    live["spec"]["template"]["spec"]["containers"][0]["terminationMessagePath"] = "/dev/termination-log"
    live["status"] = {"replicas": 1}

    assert contains_all(live, built(**EVERYTHING))
    assert not contains_all(live, built(**{**EVERYTHING, "KbsEnvVars": {"A": "1"}}))


def test_images_come_from_the_environment() -> None:
    _, one = kbs_config()
    _, three = kbs_config(kbsDeploymentType="MicroservicesDeployment")
    named = {
        "OPERATOR_IMAGE_NAME": "op",
        "KBS_IMAGE_NAME": "k",
        "KBS_IMAGE_NAME_MICROSERVICES": "m",
        "AS_IMAGE_NAME": "a",
    }

    assert images(named, one)[:3] == ("op", "k", "a")
    assert images(named, three).kbs == "m"
    assert images({"OPERATOR_IMAGE_NAME": "op"}, one).kbs == "ghcr.io/confidential-containers/key-broker-service:latest"
    with pytest.raises(UserError, match="OPERATOR_IMAGE_NAME environment variable must be set"):
        images({}, one)

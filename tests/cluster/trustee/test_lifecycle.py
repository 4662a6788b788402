"""Children, statuses and events of a TrusteeConfig."""

import tomllib
from functools import partial
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from tests.cluster.trustee.manifests import decoded, restricted, tls_secrets, trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace, condition_of

PERMISSIVE_SPEC = {
    "kbsDeploymentType": "AllInOneDeployment",
    "KbsDeploymentSpec": {"replicas": 1},
    "kbsConfigMapName": "tc-kbs-config",
    "kbsAuthSecretName": "tc-auth-secret",
    "kbsResourcePolicyConfigMapName": "tc-resource-policy",
    "kbsRvpsRefValuesConfigMapName": "tc-rvps-reference-values",
    "kbsAttestationPolicyConfigMapName": "tc-attestation-policy-cpu",
    "kbsGpuAttestationPolicyConfigMapName": "tc-attestation-policy-gpu",
    "kbsSecretResources": ["attestation-status"],
    "KbsEnvVars": {"RUST_LOG": "debug"},
}
CONFIG_MAPS = {
    "tc-kbs-config": "kbs-config.toml",
    "tc-resource-policy": "resource-policy.rego",
    "tc-rvps-reference-values": "reference_value",
    "tc-attestation-policy-cpu": "default_cpu.rego",
    "tc-attestation-policy-gpu": "default_gpu.rego",
}


def _assert_owned(trustee: TrusteeNamespace, owner: str, *targets: str) -> None:
    """Asserts that `owner` is the controlling owner of all of them."""
    found = trustee.get(owner)
    expected = {
        "apiVersion": "confidentialcontainers.org/v1alpha1",
        "kind": found["kind"],
        "name": found["metadata"]["name"],
        "uid": found["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    for target in targets:
        assert trustee.get(target)["metadata"]["ownerReferences"] == [expected], target


def _labels(component: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/managed-by": "trustee-operator",
        "app.kubernetes.io/part-of": "trustee",
        "app.kubernetes.io/instance": "tc",
        "app.kubernetes.io/component": component,
    }


def test_a_trustee_config_creates_all_children(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())

    kbs = trustee.get(KBS)
    assert kbs["spec"] == PERMISSIVE_SPEC
    assert "labels" not in kbs["metadata"]
    config_maps = {name: trustee.get(f"configmap/{name}") for name in CONFIG_MAPS}
    assert {name: [*found["data"]] for name, found in config_maps.items()} == {
        name: [key] for name, key in CONFIG_MAPS.items()
    }
    assert config_maps["tc-rvps-reference-values"]["data"]["reference_value"] == "{\n}"
    assert [name for name, found in config_maps.items() if "labels" in found["metadata"]] == []
    _assert_owned(trustee, TRUSTEE, KBS, *(f"configmap/{name}" for name in CONFIG_MAPS))
    _assert_owned(trustee, TRUSTEE, "secret/tc-auth-secret", "secret/attestation-status")
    trustee_cluster.expect_no_more_writes(trustee, TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_the_permissive_profile_serves_plain_http(trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config(profileType="", tlsConfig={"profile": "old"}))

    settings = tomllib.loads(trustee.get("configmap/tc-kbs-config")["data"]["kbs-config.toml"])
    assert settings["http_server"] == {"sockets": ["0.0.0.0:8080"], "insecure_http": True, "worker_count": 4}
    assert settings["admin"] == {"authorization_mode": "DenyAll"}
    assert settings["attestation_token"] == {"insecure_header_jwk": True}


def test_an_ed25519_key_pair_is_generated(trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())

    auth = trustee.get("secret/tc-auth-secret")
    assert (auth["type"], auth["metadata"]["labels"]) == ("Opaque", _labels("auth"))
    private = load_pem_private_key(decoded(auth["data"]["privateKey"]).encode(), None)
    assert isinstance(private, Ed25519PrivateKey)
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert decoded(auth["data"]["publicKey"]).encode() == public
    sample = trustee.get("secret/attestation-status")
    assert (sample["type"], sample["metadata"]["labels"]) == ("Opaque", _labels("sample"))
    assert {key: decoded(value) for key, value in sample["data"].items()} == {"status": "success"}


def test_the_restricted_profile_copies_its_certificates(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(*tls_secrets(), restricted(kbsServiceType="NodePort"))

    copies = {
        "tc-https-key-secret": ("https", {"privateKey": "first key of https-tls"}),
        "tc-https-cert-secret": ("https", {"certificate": "first certificate of https-tls"}),
        "tc-attestation-key-secret": ("attestation", {"token.key": "first key of token-tls"}),
        "tc-attestation-cert-secret": ("attestation", {"token.crt": "first certificate of token-tls"}),
    }
    for name, (component, data) in copies.items():
        found = trustee.get(f"secret/{name}")
        assert (found["type"], found["metadata"]["labels"]) == ("Opaque", _labels(component))
        assert {key: decoded(value) for key, value in found["data"].items()} == data
    _assert_owned(trustee, TRUSTEE, *(f"secret/{name}" for name in copies))
    spec = {name: value for name, value in PERMISSIVE_SPEC.items() if name != "KbsEnvVars"}
    assert trustee.get(KBS)["spec"] == {
        **spec,
        "kbsServiceType": "NodePort",
        "kbsHttpsKeySecretName": "tc-https-key-secret",
        "kbsHttpsCertSecretName": "tc-https-cert-secret",
        "kbsAttestationKeySecretName": "tc-attestation-key-secret",
        "kbsAttestationCertSecretName": "tc-attestation-cert-secret",
    }
    settings = tomllib.loads(trustee.get("configmap/tc-kbs-config")["data"]["kbs-config.toml"])
    assert settings["http_server"]["insecure_http"] is False
    assert settings["http_server"]["tls_profile"] == "intermediate"
    assert trustee.get(SERVICE)["spec"]["type"] == "NodePort"
    (container,) = trustee.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    trustee_cluster.expect_no_more_writes(trustee, TRUSTEE, KBS, DEPLOYMENT, SERVICE, "configmap/tc-kbs-config")


def test_a_kbs_config_creates_deployment_and_service(trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())

    _assert_owned(trustee, KBS, DEPLOYMENT, SERVICE)
    assert trustee.get(KBS)["metadata"]["finalizers"] == ["kbsconfig.confidentialcontainers.org/finalizer"]
    deployment = trustee.get(DEPLOYMENT)
    assert deployment["metadata"]["labels"] == {"app": "kbs"}
    assert deployment["spec"]["selector"] == {"matchLabels": {"app": "kbs"}}
    assert (deployment["spec"]["replicas"], trustee.env()) == (1, {"RUST_LOG": "debug"})
    pod = deployment["spec"]["template"]["spec"]
    assert _named(pod["initContainers"]) == ["secret-converter"]
    assert (_named(pod["containers"]), pod["initContainers"][0]["image"]) == (["kbs"], "operator:1")
    assert _named(pod["volumes"]) == [
        "kbs-config",
        "base-storage-dir",
        "attestation-policy-dir",
        "attestation-policy",
        "attestation-policy-gpu",
        "resource-policy-dir",
        "resource-policy",
        "auth-secret",
        "repository-dir",
        "attestation-status",
        "rvps-dir",
        "reference-values",
    ]
    service = trustee.get(SERVICE)["spec"]
    assert (service["type"], service["selector"]) == ("ClusterIP", {"app": "kbs"})
    assert service["ports"] == [{"name": "kbs-port", "port": 8080, "targetPort": 8080, "protocol": "TCP"}]


def _named(entries: Any) -> list[str]:
    return [one["name"] for one in entries]


def test_both_statuses_follow_the_deployment_by_its_watch_events(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    assert trustee.get(KBS)["status"]["isReady"] is False
    assert "isReady" not in trustee.get(TRUSTEE)["status"]

    trustee_cluster.drain()
    with trustee_cluster.held_watches("deployments"):
        requests = len(trustee_cluster.requests())
        trustee.report_replicas()
        # Meanwhile the controller creates another Trustee. Without a resync of this one it cannot know of the report.
        trustee_cluster.new_namespace().settle(trustee_config())
        status = trustee.get(TRUSTEE)["status"]
        is_resynced = any(trustee.namespace in one.path for one in trustee_cluster.requests(requests))
        assert is_resynced or "isReady" not in status
    trustee.until(TRUSTEE, _is_ready)

    trustee.report_replicas(0)
    trustee.until(TRUSTEE, lambda found: not _is_ready(found))
    assert trustee.get(KBS)["status"]["isReady"] is False
    trustee.report_replicas()
    trustee.kubectl.until_ready(TRUSTEE, KBS)
    assert condition_of(trustee.get(KBS), "Ready") == ("True", "Ready", "Trustee deployment is ready")
    status = trustee.get(TRUSTEE)["status"]
    assert status["kbsConfigRef"] == {
        "apiVersion": "confidentialcontainers.org/v1alpha1",
        "kind": "KbsConfig",
        "name": "tc-kbs-config",
        "namespace": trustee.namespace,
    }
    assert status["statusDescription"] == "TrusteeConfig is ready and KbsConfig is deployed successfully"
    assert (status["observedGeneration"], trustee.get(KBS)["status"]["observedGeneration"]) == (1, 1)
    trustee_cluster.expect_no_more_writes(trustee, TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_each_report_of_the_deployment_is_one_status_update_of_both(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    trustee.settle(trustee_config())
    trustee.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": 9}})
    trustee.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 9)
    trustee.report_replicas(1)
    trustee.until(TRUSTEE, partial(_has_message, "1 of 9 replicas available"))
    requests = len(trustee_cluster.requests())

    for up in range(2, 9):
        trustee.report_replicas(up)
        trustee.until(TRUSTEE, partial(_has_message, f"{up} of 9 replicas available"))

    writes = [one for one in trustee_cluster.writes(requests, trustee.namespace) if "/events" not in one]
    assert writes == [f"PATCH {trustee.path(KBS)}/status", f"PATCH {trustee.path(TRUSTEE)}/status"] * 7


def _is_ready(found: Any) -> bool:
    return found["status"].get("isReady") is True


def _has_message(words: str, found: Any) -> bool:
    return words in condition_of(found, "Ready").message


def test_creations_are_reported_by_events(trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    trustee.report_replicas()

    for target, reason in (
        (TRUSTEE, "ConfigMapCreated"),
        (TRUSTEE, "SecretCreated"),
        (TRUSTEE, "KbsConfigCreated"),
        (TRUSTEE, "UpToDate"),
        (KBS, "DeploymentCreated"),
        (KBS, "ServiceCreated"),
        (KBS, "Ready"),
    ):
        assert trustee.until_event(target, reason)["type"] == "Normal"


def test_lost_pods_are_reported_by_an_event(trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    trustee.report_replicas()
    trustee.until_event(KBS, "Ready")

    trustee.report_replicas(0)
    lost = trustee.until_event(KBS, "NotReady")

    assert (lost["type"], lost["message"]) == ("Warning", "Trustee deployment is no longer ready")

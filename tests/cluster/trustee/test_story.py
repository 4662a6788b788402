"""A TrusteeConfig's life, with kubectl as its author's hand: what is made, and what is said of it."""

import time
import tomllib
from functools import partial
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from tests.cluster.trustee.estate import Estate
from tests.cluster.trustee.manifests import decoded, restricted, tls_secrets, trustee_config
from tests.cluster.trustee.plot import DEPLOYMENT, KBS, SERVICE, TRUSTEE, Plot, told

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


def _owned(plot: Plot, owner: str, *targets: str) -> None:
    """All of them go with `owner`, and not before it is gone."""
    found = plot.see(owner)
    expected = {
        "apiVersion": "confidentialcontainers.org/v1alpha1",
        "kind": found["kind"],
        "name": found["metadata"]["name"],
        "uid": found["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    for target in targets:
        assert plot.see(target)["metadata"]["ownerReferences"] == [expected], target


def _labels(component: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/managed-by": "trustee-operator",
        "app.kubernetes.io/part-of": "trustee",
        "app.kubernetes.io/instance": "tc",
        "app.kubernetes.io/component": component,
    }


def test_one_object_makes_all_that_a_trustee_needs(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())

    kbs = plot.see(KBS)
    assert kbs["spec"] == PERMISSIVE_SPEC
    assert "labels" not in kbs["metadata"]
    config_maps = {name: plot.see(f"configmap/{name}") for name in CONFIG_MAPS}
    assert {name: [*found["data"]] for name, found in config_maps.items()} == {
        name: [key] for name, key in CONFIG_MAPS.items()
    }
    assert config_maps["tc-rvps-reference-values"]["data"]["reference_value"] == "{\n}"
    assert [name for name, found in config_maps.items() if "labels" in found["metadata"]] == []
    _owned(plot, TRUSTEE, KBS, *(f"configmap/{name}" for name in CONFIG_MAPS))
    _owned(plot, TRUSTEE, "secret/tc-auth-secret", "secret/attestation-status")
    estate.hold(plot, TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_the_permissive_settings_serve_plain_http(plot: Plot) -> None:
    plot.settle(trustee_config(profileType="Whatever", tlsConfig={"profile": "old"}))

    settings = tomllib.loads(plot.see("configmap/tc-kbs-config")["data"]["kbs-config.toml"])
    assert settings["http_server"] == {"sockets": ["0.0.0.0:8080"], "insecure_http": True, "worker_count": 4}
    assert settings["admin"] == {"authorization_mode": "DenyAll"}
    assert settings["attestation_token"] == {"insecure_header_jwk": True}


def test_the_administrator_gets_a_key_pair_of_their_own(plot: Plot) -> None:
    plot.settle(trustee_config())

    auth = plot.see("secret/tc-auth-secret")
    assert (auth["type"], auth["metadata"]["labels"]) == ("Opaque", _labels("auth"))
    private = load_pem_private_key(decoded(auth["data"]["privateKey"]).encode(), None)
    assert isinstance(private, Ed25519PrivateKey)
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert decoded(auth["data"]["publicKey"]).encode() == public
    sample = plot.see("secret/attestation-status")
    assert (sample["type"], sample["metadata"]["labels"]) == ("Opaque", _labels("sample"))
    assert {key: decoded(value) for key, value in sample["data"].items()} == {"status": "success"}


def test_a_restricted_one_passes_its_certificates_on(estate: Estate, plot: Plot) -> None:
    plot.settle(*tls_secrets(), restricted(kbsServiceType="NodePort"))

    copies = {
        "tc-https-key-secret": ("https", {"privateKey": "first key of https-tls"}),
        "tc-https-cert-secret": ("https", {"certificate": "first certificate of https-tls"}),
        "tc-attestation-key-secret": ("attestation", {"token.key": "first key of token-tls"}),
        "tc-attestation-cert-secret": ("attestation", {"token.crt": "first certificate of token-tls"}),
    }
    for name, (component, data) in copies.items():
        found = plot.see(f"secret/{name}")
        assert (found["type"], found["metadata"]["labels"]) == ("Opaque", _labels(component))
        assert {key: decoded(value) for key, value in found["data"].items()} == data
    _owned(plot, TRUSTEE, *(f"secret/{name}" for name in copies))
    spec = {name: value for name, value in PERMISSIVE_SPEC.items() if name != "KbsEnvVars"}
    assert plot.see(KBS)["spec"] == {
        **spec,
        "kbsServiceType": "NodePort",
        "kbsHttpsKeySecretName": "tc-https-key-secret",
        "kbsHttpsCertSecretName": "tc-https-cert-secret",
        "kbsAttestationKeySecretName": "tc-attestation-key-secret",
        "kbsAttestationCertSecretName": "tc-attestation-cert-secret",
    }
    settings = tomllib.loads(plot.see("configmap/tc-kbs-config")["data"]["kbs-config.toml"])
    assert settings["http_server"]["insecure_http"] is False
    assert settings["http_server"]["tls_profile"] == "intermediate"
    assert plot.see(SERVICE)["spec"]["type"] == "NodePort"
    (container,) = plot.see(DEPLOYMENT)["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    estate.hold(plot, TRUSTEE, KBS, DEPLOYMENT, SERVICE, "configmap/tc-kbs-config")


def test_the_kbs_config_makes_pods_and_a_way_to_them(plot: Plot) -> None:
    plot.settle(trustee_config())

    _owned(plot, KBS, DEPLOYMENT, SERVICE)
    assert plot.see(KBS)["metadata"]["finalizers"] == ["kbsconfig.confidentialcontainers.org/finalizer"]
    deployment = plot.see(DEPLOYMENT)
    assert deployment["metadata"]["labels"] == {"app": "kbs"}
    assert deployment["spec"]["selector"] == {"matchLabels": {"app": "kbs"}}
    assert (deployment["spec"]["replicas"], plot.env()) == (1, {"RUST_LOG": "debug"})
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
    service = plot.see(SERVICE)["spec"]
    assert (service["type"], service["selector"]) == ("ClusterIP", {"app": "kbs"})
    assert service["ports"] == [{"name": "kbs-port", "port": 8080, "targetPort": 8080, "protocol": "TCP"}]


def _named(entries: Any) -> list[str]:
    return [one["name"] for one in entries]


def test_both_statuses_follow_the_pods_at_once_and_both_ways(estate: Estate, plot: Plot) -> None:
    plot.settle(trustee_config())
    assert plot.see(KBS)["status"]["isReady"] is False
    assert "isReady" not in plot.see(TRUSTEE)["status"]

    begun = time.monotonic()
    for _ in range(3):
        plot.bring_up()
        plot.until(TRUSTEE, lambda found: found["status"].get("isReady") is True)
        plot.bring_up(0)
        plot.until(TRUSTEE, lambda found: "isReady" not in found["status"])

    # A look every ten seconds would take thirty.
    assert time.monotonic() - begun < 20
    assert plot.see(KBS)["status"]["isReady"] is False
    plot.bring_up()
    plot.kubectl.until_ready(TRUSTEE, KBS)
    assert told(plot.see(KBS), "Ready") == ("True", "Ready", "Trustee deployment is ready")
    status = plot.see(TRUSTEE)["status"]
    assert status["kbsConfigRef"] == {
        "apiVersion": "confidentialcontainers.org/v1alpha1",
        "kind": "KbsConfig",
        "name": "tc-kbs-config",
        "namespace": plot.namespace,
    }
    assert status["statusDescription"] == "TrusteeConfig is ready and KbsConfig is deployed successfully"
    assert (status["observedGeneration"], plot.see(KBS)["status"]["observedGeneration"]) == (1, 1)
    estate.hold(plot, TRUSTEE, KBS, DEPLOYMENT, SERVICE)


def test_how_far_the_pods_are_is_told_by_both_at_once(plot: Plot) -> None:
    plot.settle(trustee_config())
    plot.patch(KBS, spec={"KbsDeploymentSpec": {"replicas": 9}})
    plot.until(DEPLOYMENT, lambda found: found["spec"]["replicas"] == 9)

    begun = time.monotonic()
    for up in range(1, 9):
        plot.bring_up(up)
        plot.until(TRUSTEE, partial(_tells, f"{up} of 9 replicas available"))

    # A look every ten seconds would take eighty.
    assert time.monotonic() - begun < 40


def _tells(words: str, found: Any) -> bool:
    return words in told(found, "Ready").message


def test_what_was_made_is_told_by_events(plot: Plot) -> None:
    plot.settle(trustee_config())
    plot.bring_up()

    for target, reason in (
        (TRUSTEE, "ConfigMapCreated"),
        (TRUSTEE, "SecretCreated"),
        (TRUSTEE, "KbsConfigCreated"),
        (TRUSTEE, "UpToDate"),
        (KBS, "DeploymentCreated"),
        (KBS, "ServiceCreated"),
        (KBS, "Ready"),
    ):
        assert plot.until_noted(target, reason)["type"] == "Normal"


def test_pods_that_are_lost_are_told_by_an_event(plot: Plot) -> None:
    plot.settle(trustee_config())
    plot.bring_up()
    plot.until_noted(KBS, "Ready")

    plot.bring_up(0)
    lost = plot.until_noted(KBS, "NotReady")

    assert (lost["type"], lost["message"]) == ("Warning", "Trustee deployment is no longer ready")

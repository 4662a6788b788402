"""The children of a TrusteeConfig."""

import tomllib
from typing import Any

import msgspec
import pytest

from setpoint.core.merge.children import ChildUpdatePolicy
from setpoint.kinds.trustee.kbs_config import KbsConfigSpec
from setpoint.kinds.trustee.trustee_config import KEY_PAIR
from tests.kinds.trustee.trustee_objects import made

HTTPS = {"httpsSpec": {"tlsSecretName": "server"}}
TOKEN = {"attestationTokenVerificationSpec": {"tlsSecretName": "token"}}
IBM = {"ibmSE": {"pvName": "certificates"}}
RESTRICTED = {"profileType": "Restricted"}


def data(key: str, **spec: Any) -> Any:
    return made(**spec)[key].object["data"]


def kbs(**spec: Any) -> Any:
    return made(**spec)["KbsConfig/tc-kbs-config"].object["spec"]


def settings(**spec: Any) -> dict[str, Any]:
    return tomllib.loads(data("ConfigMap/tc-kbs-config", **spec)["kbs-config.toml"])


def test_children_are_in_the_order_in_which_they_are_needed() -> None:
    assert list(made(**HTTPS, **TOKEN)) == [
        "ConfigMap/tc-kbs-config",
        "Secret/tc-auth-secret",
        "Secret/attestation-status",
        "ConfigMap/tc-resource-policy",
        "ConfigMap/tc-rvps-reference-values",
        "ConfigMap/tc-attestation-policy-cpu",
        "ConfigMap/tc-attestation-policy-gpu",
        "Secret/tc-https-key-secret",
        "Secret/tc-https-cert-secret",
        "Secret/tc-attestation-key-secret",
        "Secret/tc-attestation-cert-secret",
        "KbsConfig/tc-kbs-config",
    ]


def test_ibm_se_has_a_claim_instead_of_policies() -> None:
    assert list(made(**IBM))[5:] == ["PersistentVolumeClaim/tc-ibmse-certstore-pvc", "KbsConfig/tc-kbs-config"]
    assert made(**IBM)["PersistentVolumeClaim/tc-ibmse-certstore-pvc"].object["spec"] == {
        "accessModes": ["ReadOnlyMany"],
        "resources": {"requests": {"storage": "100Mi"}},
        "storageClassName": "",
        "volumeName": "certificates",
    }


def test_everything_is_owned_and_in_the_parents_namespace() -> None:
    owner = {
        "apiVersion": "confidentialcontainers.org/v1alpha1",
        "kind": "TrusteeConfig",
        "name": "tc",
        "uid": "u1",
        "controller": True,
        "blockOwnerDeletion": True,
    }

    metadata: list[Any] = [child.object["metadata"] for child in made(**HTTPS, **TOKEN, **IBM).values()]

    assert all(one["ownerReferences"] == [owner] and one["namespace"] == "trust" for one in metadata)


@pytest.mark.parametrize(
    ("key", "component"),
    [
        ("Secret/tc-auth-secret", "auth"),
        ("Secret/attestation-status", "sample"),
        ("Secret/tc-https-key-secret", "https"),
        ("Secret/tc-attestation-cert-secret", "attestation"),
    ],
)
def test_secrets_are_labelled(key: str, component: str) -> None:
    secret: Any = made(**HTTPS, **TOKEN)[key].object

    assert secret["type"] == "Opaque"
    assert secret["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "trustee-operator",
        "app.kubernetes.io/part-of": "trustee",
        "app.kubernetes.io/instance": "tc",
        "app.kubernetes.io/component": component,
    }


def test_keys_are_generated_when_the_secret_is_created() -> None:
    auth = made()["Secret/tc-auth-secret"]

    assert auth.object["data"] == {}
    assert (auth.filled_on_create, auth.update_policy) == (KEY_PAIR, ChildUpdatePolicy.CREATE_ONLY)


def test_key_and_certificate_are_copied_into_two_secrets() -> None:
    both = {**HTTPS, **TOKEN}

    assert data("Secret/tc-https-key-secret", **both) == {"privateKey": "a2V5"}
    assert data("Secret/tc-https-cert-secret", **both) == {"certificate": "Y2VydA=="}
    assert data("Secret/tc-attestation-key-secret", **both) == {"token.key": "dG9rZW4ta2V5"}
    assert data("Secret/tc-attestation-cert-secret", **both) == {"token.crt": "dG9rZW4tY2VydA=="}
    assert made(**both)["Secret/tc-https-key-secret"].update_policy is ChildUpdatePolicy.OVERWRITE


def test_the_permissive_kbs_config() -> None:
    assert kbs() == {
        "kbsDeploymentType": "AllInOneDeployment",
        "KbsDeploymentSpec": {"replicas": 1},
        "kbsConfigMapName": "tc-kbs-config",
        "kbsAuthSecretName": "tc-auth-secret",
        "kbsResourcePolicyConfigMapName": "tc-resource-policy",
        "kbsRvpsRefValuesConfigMapName": "tc-rvps-reference-values",
        "kbsSecretResources": ["attestation-status"],
        "kbsAttestationPolicyConfigMapName": "tc-attestation-policy-cpu",
        "kbsGpuAttestationPolicyConfigMapName": "tc-attestation-policy-gpu",
        "KbsEnvVars": {"RUST_LOG": "debug"},
    }


def test_each_setting_adds_its_names() -> None:
    plain = kbs(**RESTRICTED)
    wishes = {**HTTPS, **TOKEN, "kbsServiceType": "NodePort"}

    assert "KbsEnvVars" not in plain
    assert {name: value for name, value in kbs(**RESTRICTED, **wishes).items() if name not in plain} == {
        "kbsHttpsKeySecretName": "tc-https-key-secret",
        "kbsHttpsCertSecretName": "tc-https-cert-secret",
        "kbsAttestationKeySecretName": "tc-attestation-key-secret",
        "kbsAttestationCertSecretName": "tc-attestation-cert-secret",
        "kbsServiceType": "NodePort",
    }
    assert kbs(**IBM)["ibmSEConfigSpec"] == {"certStorePvc": "tc-ibmse-certstore-pvc"}
    assert "kbsAttestationPolicyConfigMapName" not in kbs(**IBM)


@pytest.mark.parametrize("spec", [{}, RESTRICTED, {**HTTPS, **TOKEN}, IBM, {"httpsSpec": None, "tlsConfig": None}])
def test_the_generated_kbs_config_is_valid(spec: dict[str, Any]) -> None:
    msgspec.convert(kbs(**spec), KbsConfigSpec)


@pytest.mark.parametrize("profile", [None, "", "Permissive", "restricted", "anything"])
def test_any_other_profile_is_the_permissive_one(profile: str | None) -> None:
    assert settings(profileType=profile) == settings()


def test_permissive_settings_serve_every_client_without_tls() -> None:
    found = settings(tlsConfig={"profile": "modern"})

    assert found["http_server"] == {"sockets": ["0.0.0.0:8080"], "insecure_http": True, "worker_count": 4}
    assert found["attestation_token"] == {"insecure_header_jwk": True}
    assert found["admin"] == {"authorization_mode": "DenyAll"}


def test_restricted_settings_require_certificates() -> None:
    found = settings(**RESTRICTED, tlsConfig={"profile": "custom", "ciphers": ["TLS_DHE_RSA_WITH_AES_128_CBC_SHA"]})
    broker = found["attestation_service"]["attestation_token_broker"]

    assert found["http_server"]["private_key"] == "/etc/https-key/privateKey"
    assert found["http_server"]["certificate"] == "/etc/https-cert/certificate"
    assert (found["http_server"]["tls_profile"], found["http_server"]["tls_ciphers"]) == (
        "custom",
        "DHE-RSA-AES128-SHA",
    )
    assert found["attestation_token"]["trusted_certs_paths"] == ["/etc/attestation-cert/token.crt"]
    assert broker["signer"] == {
        "key_path": "/etc/attestation-key/token.key",
        "cert_path": "/etc/attestation-cert/token.crt",
    }


def test_both_profiles_store_and_verify_in_the_same_way() -> None:
    for found in (settings(), settings(**RESTRICTED)):
        service = found["attestation_service"]
        assert (service["type"], service["timeout"]) == ("coco_as_builtin", 5)
        assert service["attestation_token_broker"]["duration_min"] == 5
        assert service["rvps_config"] == {"type": "BuiltIn", "storage_type": "LocalJson"}
        assert [one["type"] for one in service["verifier_config"]["snp_verifier"]["vcek_sources"]] == [
            "OfflineStore",
            "KDS",
        ]
        assert found["storage_backend"]["backends"] == {
            "local_fs": {"dir_path": "/opt/confidential-containers/storage"},
            "local_json": {"file_dir_path": "/opt/confidential-containers/storage/local_json"},
        }
        assert found["plugins"] == [{"name": "resource", "storage_backend_type": "kvstorage"}]


def test_the_resource_policy_follows_the_profile_and_ibm_se_comes_first() -> None:
    permissive, restricted, ibm = (
        data("ConfigMap/tc-resource-policy", **spec)["resource-policy.rego"]
        for spec in ({}, RESTRICTED, {**RESTRICTED, **IBM})
    )

    assert 'allow if data.plugin == "resource"' in permissive
    assert 'appraisal["ear.status"] == "affirming"' in restricted
    assert "<se.tag>" in ibm
    assert "evidence.version == 256" in ibm


def test_attestation_policies_do_not_depend_on_the_profile() -> None:
    for kind, key in (("cpu", "default_cpu.rego"), ("gpu", "default_gpu.rego")):
        name = f"ConfigMap/tc-attestation-policy-{kind}"
        assert data(name) == data(name, **RESTRICTED)
        assert "trust_claims := {" in data(name)[key]


@pytest.mark.parametrize("spec", [{}, RESTRICTED, {**HTTPS, **TOKEN, **IBM}])
def test_generation_is_deterministic(spec: dict[str, Any]) -> None:
    assert [child.object for child in made(**spec).values()] == [child.object for child in made(**spec).values()]

"""The spec of a TrusteeConfig, what it needs, and its status."""

from typing import Any

import msgspec
import pytest

from setpoint.core.schema.openapi import schema_of
from setpoint.errors import DependencyInvalid, DependencyNotFound, ManifestInvalid
from setpoint.kinds.field_docs import field_docs
from setpoint.kinds.trustee.kbs_config import KbsConfigSpec
from setpoint.kinds.trustee.trustee_config import (
    KbsConfigRef,
    ProfileType,
    TlsPair,
    TrusteeConfigSpec,
    TrusteeConfigStatus,
    check_spec,
    check_volume,
    is_kbs_config_ready,
    missing_field_warnings,
    tls_pair,
    tls_settings,
    trustee_status,
)
from setpoint.kinds.trustee.trustee_config.kbs_toml import tls_block
from tests.kinds.trustee.upstream import read_tls_config


def spec(**fields: Any) -> TrusteeConfigSpec:
    return msgspec.convert(fields, TrusteeConfigSpec)


def test_names_are_those_of_the_api_capitals_included() -> None:
    assert {one.name for one in msgspec.structs.fields(TrusteeConfigSpec)} == {
        "profileType",
        "kbsServiceType",
        "httpsSpec",
        "attestationTokenVerificationSpec",
        "ibmSE",
        "tlsConfig",
    }
    assert {"KbsEnvVars", "KbsDeploymentSpec"} < {one.name for one in msgspec.structs.fields(KbsConfigSpec)}


def test_the_crd_checks_what_the_upstream_crd_checks() -> None:
    schema: Any = schema_of(TrusteeConfigSpec, field_docs)["properties"]
    tls = schema["tlsConfig"]

    assert sorted(tls["properties"]["profile"]["enum"]) == ["custom", "intermediate", "modern", "old"]
    assert tls["properties"]["minVersion"]["pattern"] == r"^1\.[0-3]$"
    assert tls["x-kubernetes-validations"] == [
        {
            "rule": "!has(self.minVersion) || !has(self.maxVersion) || self.minVersion <= self.maxVersion",
            "message": "minVersion must not be greater than maxVersion",
        }
    ]
    assert schema["ibmSE"]["required"] == ["pvName"]
    kinds: Any = schema_of(KbsConfigSpec, field_docs)["properties"]
    assert kinds["kbsDeploymentType"]["enum"] == ["AllInOneDeployment", "MicroservicesDeployment"]
    assert all(one["description"] for one in (*schema.values(), *kinds.values()))


def test_left_out_and_null_are_equal() -> None:
    empty = spec(httpsSpec=None, attestationTokenVerificationSpec={}, profileType=None)

    assert (empty.https_secret, empty.token_secret, empty.profile) == ("", "", ProfileType.PERMISSIVE)


def test_a_contradiction_is_refused() -> None:
    with pytest.raises(ManifestInvalid, match="minVersion must not be greater than maxVersion"):
        check_spec(spec(tlsConfig={"minVersion": "1.3", "maxVersion": "1.2"}))
    with pytest.raises(ManifestInvalid, match=r"spec.ibmSE.pvName must be set"):
        check_spec(spec(ibmSE={"pvName": ""}))
    check_spec(spec(tlsConfig={"minVersion": "1.2", "maxVersion": "1.2"}, ibmSE={"pvName": "pv"}))
    check_spec(spec())


@pytest.mark.parametrize(
    "tls", [{"profile": "new"}, {"minVersion": "1.4"}, {"maxVersion": "2.0"}, {"minVersion": "1.x"}, {"other": 1}]
)
def test_an_invalid_tls_config_is_refused(tls: dict[str, Any]) -> None:
    with pytest.raises(ManifestInvalid, match=r"spec\.tlsConfig: "):
        read_tls_config(tls)


def test_only_a_custom_profile_has_further_settings() -> None:
    more = {"minVersion": "1.2", "ciphers": ["TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"], "groups": ["x25519", "P-256"]}

    modern = tls_settings(read_tls_config({"profile": "modern", **more}))
    custom = tls_settings(read_tls_config({"profile": "custom", **more}))

    assert modern.values == {"tls_profile": "modern"}
    assert custom.values == {
        "tls_profile": "custom",
        "tls_min_version": "1.2",
        "tls_ciphers": "ECDHE-RSA-AES128-SHA",
        "tls_groups": "x25519:P-256",
    }
    assert tls_block(modern) == '# TLS configuration - Mozilla modern profile\n\ntls_profile = "modern"'


def secret(**fields: Any) -> dict[str, Any]:
    return {"type": "kubernetes.io/tls", "data": {"tls.key": "a", "tls.crt": "b"}, **fields}


def test_a_key_and_certificate_are_read_from_their_secret() -> None:
    assert tls_pair("HTTPS", "s", secret()) == TlsPair("a", "b")


@pytest.mark.parametrize(
    ("found", "error", "message"),
    [
        (None, DependencyNotFound, "HTTPS secrets: Secret s not found"),
        (secret(type="Opaque"), DependencyInvalid, "Secret s is not of type kubernetes.io/tls"),
        (secret(data={"tls.crt": "b"}), DependencyInvalid, "tls.key not found in TLS secret s"),
        (secret(data={"tls.key": "a"}), DependencyInvalid, "tls.crt not found in TLS secret s"),
    ],
)
def test_a_secret_without_a_key_and_certificate_is_an_error(found: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tls_pair("HTTPS", "s", found)


def test_the_volume_has_to_exist_and_its_claim_has_to_be_bound_to_it() -> None:
    claim: dict[str, Any] = {"metadata": {"name": "c"}, "spec": {"volumeName": "other"}}

    check_volume("pv", {}, None)
    check_volume("pv", {}, {"spec": {"volumeName": "pv"}})
    with pytest.raises(DependencyNotFound, match="PersistentVolume pv not found"):
        check_volume("pv", None, None)
    with pytest.raises(DependencyInvalid, match="c is bound to volume other, not pv"):
        check_volume("pv", {}, claim)


def test_a_restricted_spec_without_certificates_has_warnings() -> None:
    half = spec(profileType="Restricted", httpsSpec={"tlsSecretName": "s"})

    assert missing_field_warnings(spec()) == ()
    assert missing_field_warnings(half) == (
        "spec.attestationTokenVerificationSpec.tlsSecretName is not set: "
        "a Restricted TrusteeConfig cannot start without it",
    )


def test_the_status_follows_that_of_the_child() -> None:
    properties: Any = schema_of(TrusteeConfigStatus, field_docs)["properties"]
    ref = KbsConfigRef("confidentialcontainers.org/v1alpha1", "KbsConfig", "tc-kbs-config", "trust")

    ready, waiting = (msgspec.to_builtins(trustee_status(ref, is_ready=answer)) for answer in (True, False))

    assert (ready["isReady"], ready["kbsConfigRef"]["name"]) == (True, "tc-kbs-config")
    assert ready["statusDescription"] == "TrusteeConfig is ready and KbsConfig is deployed successfully"
    assert "isReady" not in waiting
    assert set(properties) >= set(ready)
    assert waiting["statusDescription"] == "TrusteeConfig reconciled but KbsConfig deployment is in progress"


@pytest.mark.parametrize(("status", "answer"), [({"isReady": True}, True), ({"isReady": "yes"}, False), ({}, False)])
def test_a_child_is_ready_when_its_status_says_so(status: dict[str, Any], answer: bool) -> None:
    assert is_kbs_config_ready({"status": status}) is answer

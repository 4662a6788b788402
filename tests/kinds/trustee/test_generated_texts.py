"""Texts that trustee-operator generated are not edits: a profile switch replaces them. What no edit may open."""

import json
import tomllib
from typing import Any

import pytest

from setpoint.kinds.trustee.trustee_config.generated_texts import access_of, contradictions, profile_of
from setpoint.kinds.trustee.trustee_config.kbs_toml import TlsSettings, kbs_toml
from setpoint.kinds.trustee.trustee_config.policies import RESOURCE_POLICIES, ResourceAccess
from setpoint.kinds.trustee.trustee_config.spec import ProfileType
from tests.kinds.trustee.test_trustee_edits import KBS, POLICY, RESTRICTED, SETTINGS, Cluster

STORAGE = "/opt/confidential-containers/storage"
# The settings of trustee-operator 0.21, permissive; its policy is `PERMISSIVE_POLICY`.
PERMISSIVE: dict[str, Any] = {
    "plugins": [{"name": "resource", "storage_backend_type": "kvstorage"}],
    "http_server": {"sockets": ["0.0.0.0:8080"], "insecure_http": True, "worker_count": 4},
    "admin": {"authorization_mode": "DenyAll"},
    "attestation_token": {"insecure_header_jwk": True},
    "attestation_service": {
        "type": "coco_as_builtin",
        "timeout": 5,
        "attestation_token_broker": {"duration_min": 5},
        "rvps_config": {"type": "BuiltIn", "storage_type": "LocalJson"},
        "verifier_config": {"snp_verifier": {"vcek_sources": [{"type": "OfflineStore"}, {"type": "KDS"}]}},
    },
    "storage_backend": {
        "storage_type": "LocalFs",
        "backends": {"local_fs": {"dir_path": STORAGE}, "local_json": {"dir_path": f"{STORAGE}/local_json"}},
    },
}
# The same of a version before it, whose server knows other settings.
OLD_PERMISSIVE: dict[str, Any] = {
    "plugins": [{"name": "resource", "type": "LocalFs", "dir_path": "/opt/confidential-containers/kbs/repository"}],
    "http_server": {"sockets": ["0.0.0.0:8080"], "insecure_http": True, "worker_count": 4},
    "admin": {"insecure_api": False, "auth_public_key": "/etc/auth-secret/publicKey"},
    "attestation_token": {"insecure_key": True, "attestation_token_type": "CoCo"},
    "attestation_service": {
        "type": "coco_as_builtin",
        "work_dir": "/opt/confidential-containers/attestation-service",
        "policy_engine": "opa",
        "attestation_token_broker": {
            "type": "Ear",
            "policy_dir": "/opt/confidential-containers/attestation-service/policies",
        },
        "attestation_token_config": {"duration_min": 5},
        "rvps_config": {
            "type": "BuiltIn",
            "storage": {
                "type": "LocalJson",
                "file_path": "/opt/confidential-containers/rvps/reference-values/reference-values.json",
            },
        },
    },
    "policy_engine": {"policy_path": "/opt/confidential-containers/opa/policy.rego"},
}
PERMISSIVE_POLICY = "\n".join(
    [
        "package policy",
        "import rego.v1",
        "default allow = false",
        "plugin = data.plugin",
        "allow if {",
        'plugin == "resource"',
        "}",
    ]
)


def toml(settings: dict[str, Any]) -> str:
    """The settings as TOML, in another layout than any template has."""
    lines = [f"{key} = {inline(value)}" for key, value in settings.items() if not isinstance(value, dict)]
    for key, value in settings.items():
        if isinstance(value, dict):
            lines += [f"[{key}]", *(f"{name} = {inline(one)}" for name, one in value.items())]
    return "\n".join(lines)


def inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {inline(one)}" for name, one in value.items()) + " }"
    return f"[{', '.join(map(inline, value))}]" if isinstance(value, list) else json.dumps(value)


def taken_over(settings: dict[str, Any], policy: str = PERMISSIVE_POLICY) -> Cluster:
    """A permissive Trustee of trustee-operator's: nothing is remembered of it."""
    cluster = Cluster()
    cluster.live[SETTINGS] = {**cluster.live[SETTINGS], "data": {"kbs-config.toml": toml(settings)}}
    cluster.live[POLICY] = {**cluster.live[POLICY], "data": {"resource-policy.rego": policy}}
    cluster.memory = None
    return cluster


@pytest.mark.parametrize("settings", [PERMISSIVE, OLD_PERMISSIVE], ids=["0.21", "before"])
@pytest.mark.parametrize("passes_before", [0, 1], ids=["at once", "later"])
def test_a_trustee_that_is_taken_over_and_switched_to_restricted_is_restricted(
    settings: dict[str, Any], passes_before: int
) -> None:
    cluster = taken_over(settings)

    assert [cluster.reconcile() for _ in range(passes_before)] == [set()] * passes_before, "the same profile"
    assert cluster.reconcile(**RESTRICTED) >= {SETTINGS, POLICY}
    assert tomllib.loads(cluster.text(SETTINGS))["http_server"]["insecure_http"] is False
    assert cluster.text(POLICY) == RESOURCE_POLICIES[ResourceAccess.ATTESTED]
    assert cluster.reconcile(**RESTRICTED) == set()
    assert not any(key.startswith((SETTINGS, POLICY)) for key in cluster.resolutions)


def test_what_a_person_changed_in_a_text_of_trustee_operator_stays() -> None:
    edited = {**PERMISSIVE, "http_server": {**PERMISSIVE["http_server"], "worker_count": 16}}
    cluster = taken_over(edited, PERMISSIVE_POLICY.replace("resource", "other"))
    cluster.reconcile(**RESTRICTED)

    assert tomllib.loads(cluster.text(SETTINGS))["http_server"]["worker_count"] == 16
    assert '"other"' in cluster.text(POLICY)
    assert KBS in cluster.live


@pytest.mark.parametrize("profile", ProfileType)
def test_a_generated_file_is_of_its_profile_whatever_its_tls(profile: ProfileType) -> None:
    text = kbs_toml(profile, TlsSettings("custom", "1.2", "1.3", "A:B", "x"))

    assert profile_of(text) is profile
    assert profile_of(text.replace("timeout = 5", "timeout = 6")) is None


@pytest.mark.parametrize("text", ["not TOML", "a = 2026-01-01", "", None, 5])
def test_another_text_is_of_no_profile(text: Any) -> None:
    assert profile_of(text) is None
    assert access_of(text) is None


@pytest.mark.parametrize("access", ResourceAccess)
def test_a_generated_policy_is_known_in_any_layout(access: ResourceAccess) -> None:
    text = RESOURCE_POLICIES[access]

    assert access_of(text) is access
    assert access_of("# Mine.\n\n" + text.replace("\t", "        ")) is access
    assert access_of(text + "\nallow if true\n") is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[http_server]\ninsecure_http = true", ["http_server.insecure_http"]),
        ("[attestation_token]\ninsecure_header_jwk = true", ["attestation_token.insecure_header_jwk"]),
        ("[attestation_token]\ninsecure_key = true", ["attestation_token.insecure_key"]),
        ('[admin]\nauthorization_mode = "InsecureAllowAll"', ["admin.authorization_mode"]),
        ('[admin]\ntype = "InsecureAllowAll"', ["admin.type"]),
        ("[admin]\ninsecure_api = true", ["admin.insecure_api"]),
        (
            "http_server.insecure_http = true\nadmin = {insecure_api = true}",
            ["http_server.insecure_http", "admin.insecure_api"],
        ),
        (kbs_toml(ProfileType.RESTRICTED, TlsSettings("modern")), []),
        ("http_server = 5", []),
        ("not TOML", []),
    ],
)
def test_settings_that_contradict_the_restricted_profile_are_named(text: str, named: list[str]) -> None:
    assert [one.split(" ")[0] for one in contradictions(text)] == named

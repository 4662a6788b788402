"""The status of a TrusteeConfig."""

from typing import Any

import pytest

from setpoint.core.schema.openapi import schema_of
from setpoint.engine.owner import OwnerStatus
from setpoint.engine.resource import Resource
from setpoint.kinds.field_docs import field_docs
from setpoint.kinds.trustee.trustee_config import TrusteeConfigOwner, TrusteeConfigStatus
from tests.kinds.trustee.trustee_objects import made, trustee_config

KBS = "KbsConfig/tc-kbs-config"
SETTINGS = "ConfigMap/tc-kbs-config"
RESTRICTED = {"profileType": "Restricted"}
REF = {
    "apiVersion": "confidentialcontainers.org/v1alpha1",
    "kind": "KbsConfig",
    "name": "tc-kbs-config",
    "namespace": "trust",
}
WAITING = {
    "kbsConfigRef": REF,
    "statusDescription": "TrusteeConfig reconciled but KbsConfig deployment is in progress",
}
WORKING = {
    "isReady": True,
    "kbsConfigRef": REF,
    "statusDescription": "TrusteeConfig is ready and KbsConfig is deployed successfully",
}


def standing(status: Any = None, text: str | None = None, spec: Any = None, **metadata: Any) -> OwnerStatus:
    """The status with a KbsConfig of this status and metadata, and with this `kbs-config.toml`."""
    live = {key: child.object for key, child in made(**(spec or {})).items()}
    kbs: Any = live[KBS]
    live[KBS] = {**kbs, "metadata": {**kbs["metadata"], "generation": 3, **metadata}, "status": status or {}}
    if text is not None:
        live[SETTINGS] = {**live[SETTINGS], "data": {"kbs-config.toml": text}}
    children = {key: Resource(one) for key, one in live.items()}
    return TrusteeConfigOwner().status_of(trustee_config(**(spec or {})), children)


@pytest.mark.parametrize(
    "status", [{"isReady": True}, {"isReady": True, "observedGeneration": 3}], ids=["no generation", "the same"]
)
def test_it_is_ready_when_its_kbs_config_is_ready(status: dict[str, Any]) -> None:
    found = standing(status)

    assert (found.ready.status, found.ready.reason) == ("True", "UpToDate")
    assert found.ready.message == "TrusteeConfig is ready and KbsConfig is deployed successfully"
    assert found.outputs == WORKING


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({}, "KbsConfig trust/tc-kbs-config is not ready yet"),
        ({"isReady": False}, "KbsConfig trust/tc-kbs-config is not ready yet"),
        ({"isReady": "yes"}, "KbsConfig trust/tc-kbs-config is not ready yet"),
        (
            {"isReady": True, "observedGeneration": 2},
            "KbsConfig trust/tc-kbs-config is not ready yet: it speaks of generation 2, and the object is at "
            "generation 3",
        ),
        (
            {"conditions": [{"type": "Ready", "status": "False", "reason": "RollingOut", "message": "0 of 1 there"}]},
            "KbsConfig trust/tc-kbs-config is not ready: 0 of 1 there",
        ),
        (
            {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "ready"}]},
            "KbsConfig trust/tc-kbs-config is not ready yet",
        ),
        (
            {"conditions": [{"type": "Ready", "status": "False", "message": "old", "observedGeneration": 2}]},
            "KbsConfig trust/tc-kbs-config is not ready yet",
        ),
    ],
)
def test_it_is_not_ready_with_the_message_of_the_kbs_config(status: dict[str, Any], why: str) -> None:
    found = standing(status)

    assert (found.ready.status, found.ready.reason, found.ready.message) == ("False", "NotReady", why)
    assert found.outputs == WAITING


def test_a_kbs_config_that_is_being_deleted_is_not_ready() -> None:
    found = standing({"isReady": True}, deletionTimestamp="2026-11-15T12:00:00Z")

    assert found.ready.message == "KbsConfig trust/tc-kbs-config is being deleted"
    assert found.outputs == WAITING


def test_a_missing_kbs_config_is_waited_for() -> None:
    found = TrusteeConfigOwner().status_of(trustee_config(), {})

    assert found.ready.message == "KbsConfig trust/tc-kbs-config is not there yet"
    assert found.outputs == WAITING


INLINE = "http_server = { worker_count = 8 }\n"
TWO = "[[http_server]]\nworker_count = 8\n"
ANEW = "; or delete the ConfigMap, and it is made anew"
HERE = "kbs-config.toml in ConfigMap trust/tc-kbs-config: "


@pytest.mark.parametrize(
    ("text", "spec", "why"),
    [
        ("a = \n", {}, f"{HERE}it is not TOML: Invalid value (at line 1, column 5): correct it{ANEW}"),
        (INLINE, RESTRICTED, f"{HERE}http_server is written as an inline table: write it as [http_server]{ANEW}"),
        (
            TWO,
            RESTRICTED,
            f"{HERE}there is no place for the TLS settings: write [http_server], once, and no other http_server{ANEW}",
        ),
    ],
)
def test_settings_that_cannot_be_merged_are_reported_while_the_server_still_runs(
    text: str, spec: Any, why: str
) -> None:
    running, stopped = standing({"isReady": True}, text, spec), standing({}, text, spec)

    assert (running.ready.status, running.ready.reason, running.ready.message) == ("False", "NotReady", why)
    assert running.outputs == WORKING
    assert stopped.ready.message == f"KbsConfig trust/tc-kbs-config is not ready yet; {why}"


@pytest.mark.parametrize("text", [INLINE, TWO, "# nothing\n"])
def test_without_tls_the_settings_may_have_any_form(text: str) -> None:
    assert standing({"isReady": True}, text).ready.status == "True"


def test_the_schema_of_the_status_has_every_field() -> None:
    shown: Any = schema_of(TrusteeConfigStatus, field_docs)["properties"]

    assert set(shown) == {"isReady", "kbsConfigRef", "statusDescription", "lastGenerated", "conflicts"}
    assert TrusteeConfigOwner().definition.outputs is TrusteeConfigStatus


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("insecure_http = false", "insecure_http = true", "http_server.insecure_http contradicts"),
        ("insecure_header_jwk = false", "insecure_header_jwk = true", "attestation_token.insecure_header_jwk contr"),
        ('"DenyAll"', '"InsecureAllowAll"', "admin.authorization_mode contradicts the profile Restricted"),
    ],
)
def test_an_edit_that_opens_what_the_profile_closes_holds_ready_back(old: str, new: str, named: str) -> None:
    generated: Any = made(**RESTRICTED)[SETTINGS].object["data"]
    found = standing({"isReady": True}, generated["kbs-config.toml"].replace(old, new), RESTRICTED)

    assert (found.ready.status, found.ready.reason) == ("False", "NotReady")
    assert named in found.ready.message
    assert found.outputs["statusDescription"] == "TrusteeConfig is not ready: an edit contradicts its profile"
    assert "isReady" not in found.outputs


def test_the_permissive_policy_holds_a_restricted_one_back() -> None:
    live: dict[str, Any] = {key: child.object for key, child in made(**RESTRICTED).items()}
    live["ConfigMap/tc-resource-policy"] = made()["ConfigMap/tc-resource-policy"].object
    live[KBS] = {**live[KBS], "status": {"isReady": True}}
    children = {key: Resource(one) for key, one in live.items()}
    found = TrusteeConfigOwner().status_of(trustee_config(**RESTRICTED), children)

    assert found.ready.status == "False"
    assert (
        "resource-policy.rego in ConfigMap trust/tc-resource-policy gives every resource to every"
        in found.ready.message
    )


def test_a_permissive_one_may_be_open() -> None:
    assert standing({"isReady": True}, spec={}).ready.status == "True"

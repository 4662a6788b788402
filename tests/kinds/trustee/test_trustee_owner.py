"""The owner TrusteeConfig: its sources, its children, and its key pair."""

import base64
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.merge.children import Child
from setpoint.core.owner_references import Ownership, ownership
from setpoint.engine.owner import GeneratedChildren, Owner
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import DependencyInvalid, DependencyNotFound, ManifestInvalid
from setpoint.kinds.trustee.trustee_config import TrusteeConfigOwner
from tests.kinds.trustee.trustee_objects import HTTPS, TOKEN, VOLUME, certificates, trustee_config

OWNER: Owner = TrusteeConfigOwner()
CLAIM = ResourceRef("", "PersistentVolumeClaim", "trust", "tc-ibmse-certstore-pvc")
FOUND = {one.ref: one for one in map(Resource, (HTTPS, TOKEN, VOLUME))}
SERVER, TOKENS, PV = FOUND
KBS = "KbsConfig/tc-kbs-config"
SETTINGS = "ConfigMap/tc-kbs-config"

PROFILES: tuple[dict[str, Any], ...] = ({}, {"profileType": "Permissive"}, {"profileType": "Restricted"})
WITH_HTTPS: dict[str, Any] = {"httpsSpec": {"tlsSecretName": "server"}}
WITH_TOKEN: dict[str, Any] = {"attestationTokenVerificationSpec": {"tlsSecretName": "token"}}
WITH_IBM = {"ibmSE": {"pvName": "certificates"}}


def wishes() -> Iterator[dict[str, Any]]:
    """Every profile, with and without each certificate, with and without IBM Secure Execution."""
    options: list[tuple[dict[str, Any], ...]] = [({}, one) for one in (WITH_HTTPS, WITH_TOKEN, WITH_IBM)]
    for profile, *chosen in product(PROFILES, *options):
        yield {name: value for part in (profile, *chosen) for name, value in part.items()}


WISHES = list(wishes())


def generated(found: Mapping[ResourceRef, Resource] = FOUND, **spec: Any) -> GeneratedChildren:
    return OWNER.generate(trustee_config(**spec), found)


def keys(made: GeneratedChildren) -> list[str]:
    return [child.key for child in made.children]


def child(key: str, **spec: Any) -> Child:
    return next(one for one in generated(**spec).children if one.key == key)


# --- Spec and sources -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", WISHES)
def test_a_valid_spec_is_accepted(spec: dict[str, Any]) -> None:
    OWNER.check(trustee_config(**spec))

    assert OWNER.dependencies(trustee_config(**spec)) == ()
    assert OWNER.deleted_first(trustee_config(**spec)) == ()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"profile": "Restricted"}, r"TrusteeConfig trust/tc: there is no field spec\.profile; did you mean"),
        ({"httpsSpec": {"tlsSecretName": 1}}, r"spec\.httpsSpec\.tlsSecretName is a number: write text"),
        ({"ibmSE": {}}, r"spec\.ibmSE\.pvName is missing"),
        ({"ibmSE": {"pvName": ""}}, r"spec\.ibmSE\.pvName must be set"),
        ({"tlsConfig": {"minVersion": "1.3", "maxVersion": "1.2"}}, "minVersion must not be greater than maxVersion"),
    ],
)
def test_an_invalid_spec_is_refused_by_every_verb(spec: dict[str, Any], message: str) -> None:
    resource = trustee_config(**spec)

    for verb in (OWNER.check, OWNER.sources, lambda one: OWNER.generate(one, {}), lambda one: OWNER.status_of(one, {})):
        with pytest.raises(ManifestInvalid, match=message):
            verb(resource)


def test_sources_are_the_secrets_of_the_spec_and_the_cluster_scoped_volume() -> None:
    everything = {**WITH_HTTPS, **WITH_TOKEN, **WITH_IBM}

    assert OWNER.sources(trustee_config()) == ()
    assert OWNER.sources(trustee_config(**everything)) == (SERVER, TOKENS, PV, CLAIM)
    assert (SERVER.namespace, PV.namespace) == ("trust", "")


def test_one_secret_may_be_used_for_https_and_tokens() -> None:
    same = {"httpsSpec": {"tlsSecretName": "token"}, **WITH_TOKEN}

    assert OWNER.sources(trustee_config(**same)) == (TOKENS,)
    assert generated(**same).error is None


def test_all_kinds_of_children_and_sources_are_declared() -> None:
    makes = {(one.group, one.kind) for one in OWNER.makes}
    reads = {(one.group, one.kind) for one in OWNER.reads}

    for spec in WISHES:
        assert {Resource(one.object).ref[:2] for one in generated(**spec).children} <= makes
        assert {ref[:2] for ref in OWNER.sources(trustee_config(**spec))} <= makes | reads
    assert [one.kind for one in OWNER.reads if not one.is_namespaced] == ["PersistentVolume"]


def test_a_trustee_config_has_no_finalizer() -> None:
    assert (OWNER.finalizer, OWNER.minimum_outputs) == ("", {})


def test_a_name_that_is_too_long_for_a_label_is_refused() -> None:
    document = trustee_config().document
    long = Resource({**document, "metadata": {"namespace": "n", "name": "t" * 64}})

    with pytest.raises(ManifestInvalid, match="has 64 characters: write 63 at most"):
        OWNER.check(long)
    OWNER.check(Resource({**document, "metadata": {"namespace": "n", "name": "t" * 63}}))


# --- Children ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", WISHES)
def test_every_spec_generates_all_children_with_the_kbs_config_last(spec: dict[str, Any]) -> None:
    made = generated(**spec)

    assert made.error is None
    assert len(set(keys(made))) == len(made.children)
    assert [key.partition("/")[0] for key in keys(made)].index("KbsConfig") == len(made.children) - 1
    for one in made.children:
        metadata: Any = one.object["metadata"]
        assert metadata["namespace"] == "trust"
        assert ownership(one.object, trustee_config(**spec).document) is Ownership.OURS


@pytest.mark.parametrize("spec", WISHES)
def test_the_kbs_config_names_only_generated_objects(spec: dict[str, Any]) -> None:
    names = {key.partition("/")[2] for key in keys(generated(**spec))}
    kbs: Any = child(KBS, **spec).object["spec"]

    referenced = {value for field, value in kbs.items() if field.endswith("Name")}

    assert referenced | set(kbs["kbsSecretResources"]) <= names
    assert kbs.get("ibmSEConfigSpec", {}).get("certStorePvc", "attestation-status") in names


def test_a_restricted_spec_without_certificates_is_generated_with_warnings() -> None:
    made = generated(profileType="Restricted")

    assert keys(made)[-1] == KBS
    assert len(made.warnings) == 2
    assert generated(profileType="Restricted", **WITH_HTTPS, **WITH_TOKEN).warnings == ()


EVERYTHING: dict[str, Any] = {**WITH_HTTPS, **WITH_TOKEN, **WITH_IBM}
BEFORE_THE_CLAIM = [
    SETTINGS,
    "Secret/tc-auth-secret",
    "Secret/attestation-status",
    "ConfigMap/tc-resource-policy",
    "ConfigMap/tc-rvps-reference-values",
]
BEFORE_HTTPS = [*BEFORE_THE_CLAIM, "PersistentVolumeClaim/tc-ibmse-certstore-pvc"]
BEFORE_TOKENS = [*BEFORE_HTTPS, "Secret/tc-https-key-secret", "Secret/tc-https-cert-secret"]
OTHER_VOLUME = Resource({"metadata": {"name": CLAIM.name}, "spec": {"volumeName": "other"}})
NO_PAIR = Resource({**certificates("server", "", "x"), "type": "Opaque"})
HALF_A_PAIR = Resource(certificates("token", "x", ""))


@pytest.mark.parametrize(
    ("found", "made", "error", "message"),
    [
        ({PV: None}, BEFORE_THE_CLAIM, DependencyNotFound, "IBM SE PVC: PersistentVolume certificates not found"),
        ({CLAIM: OTHER_VOLUME}, BEFORE_THE_CLAIM, DependencyInvalid, "is bound to volume other, not certificates"),
        ({SERVER: None}, BEFORE_HTTPS, DependencyNotFound, "HTTPS secrets: Secret server not found"),
        ({SERVER: NO_PAIR}, BEFORE_HTTPS, DependencyInvalid, "HTTPS secrets: Secret server is not of type"),
        ({TOKENS: None}, BEFORE_TOKENS, DependencyNotFound, "attestation secrets: Secret token not found"),
        ({TOKENS: HALF_A_PAIR}, BEFORE_TOKENS, DependencyInvalid, "tls.crt not found in TLS secret token"),
        ({PV: None, SERVER: None, TOKENS: None}, BEFORE_THE_CLAIM, DependencyNotFound, "PersistentVolume"),
    ],
)
def test_a_missing_source_stops_the_generation_after_the_earlier_children(
    found: dict[ResourceRef, Resource | None], made: list[str], error: type[Exception], message: str
) -> None:
    there = {ref: one for ref, one in {**FOUND, **found}.items() if one is not None}

    result = generated(there, **EVERYTHING)

    assert keys(result) == made
    assert type(result.error) is error
    assert message in str(result.error)


def test_a_claim_that_is_bound_to_the_declared_volume_is_accepted() -> None:
    ours = Resource(child(f"PersistentVolumeClaim/{CLAIM.name}", **WITH_IBM).object)

    assert generated({**FOUND, CLAIM: ours}, **WITH_IBM).error is None


@pytest.mark.laws
@given(st.sampled_from(WISHES), st.sets(st.sampled_from(sorted(FOUND))))
def test_a_kbs_config_is_generated_only_when_every_source_exists(spec: dict[str, Any], there: set[ResourceRef]) -> None:
    found = {ref: FOUND[ref] for ref in there}
    resource = trustee_config(**spec)

    made, again = generated(found, **spec), generated(found, **spec)

    whole = keys(generated(**spec))
    is_all = set(OWNER.sources(resource)) - {CLAIM} <= there
    assert (made.error is None) is is_all
    assert keys(made) == (whole if is_all else whole[: len(made.children)])
    assert (KBS in keys(made)) is is_all
    assert [one.object for one in made.children] == [one.object for one in again.children]


# --- Keys -------------------------------------------------------------------------------------------------------------


def test_the_administrator_gets_a_new_key_pair() -> None:
    auth = child("Secret/tc-auth-secret")

    first, second = (OWNER.completed(auth) for _ in range(2))

    data: Any = first["data"]
    private = load_pem_private_key(base64.b64decode(data["privateKey"]), None)
    public = load_pem_public_key(base64.b64decode(data["publicKey"]))
    assert isinstance(private, Ed25519PrivateKey)
    form = (Encoding.Raw, PublicFormat.Raw)
    assert private.public_key().public_bytes(*form) == public.public_bytes(*form)
    assert base64.b64decode(data["privateKey"]).startswith(b"-----BEGIN PRIVATE KEY-----\n")
    assert base64.b64decode(data["publicKey"]).startswith(b"-----BEGIN PUBLIC KEY-----\n")
    assert first["data"] != second["data"]
    assert {**first, "data": {}} == auth.object


def test_every_other_child_is_complete() -> None:
    others = [one for one in generated(**EVERYTHING).children if not one.filled_on_create]

    assert len(others) == 10
    assert all(OWNER.completed(one) is one.object for one in others)

"""The children of a TrusteeConfig in the order of creation, and the Secrets and the volume that they are made from."""

import base64
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from setpoint.core.merge.children import Child, ChildUpdatePolicy, FieldsView
from setpoint.core.merge.threeway import WholeValue
from setpoint.core.owner_references import owner_reference
from setpoint.core.unstructured import text_at
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.resource import Resource
from setpoint.errors import DependencyInvalid, DependencyNotFound
from setpoint.kinds.trustee.constants import (
    API_VERSION,
    CERTIFICATE,
    CPU_POLICY,
    GPU_POLICY,
    KBS_TOML,
    PRIVATE_KEY,
    PUBLIC_KEY,
    REFERENCE_VALUES,
    RESOURCE_POLICY,
    TOKEN_CERTIFICATE,
    TOKEN_KEY,
)
from setpoint.kinds.trustee.trustee_config.generated_texts import access_of
from setpoint.kinds.trustee.trustee_config.kbs_config_child import SAMPLE_SECRET, ChildNames, editable_fields, kbs_spec
from setpoint.kinds.trustee.trustee_config.kbs_toml import kbs_toml, tls_settings
from setpoint.kinds.trustee.trustee_config.kbs_toml_merge import KBS_TOML_EDITS, KbsTomlView
from setpoint.kinds.trustee.trustee_config.policies import CPU_ATTESTATION, GPU_ATTESTATION, resource_policy
from setpoint.kinds.trustee.trustee_config.spec import ProfileType, TrusteeConfigSpec

_TLS_TYPE: Final = "kubernetes.io/tls"


class TlsPair(NamedTuple):
    """A private key and its certificate, in base64 as in the data of a Secret."""

    key: str
    certificate: str


class TrusteeSources(NamedTuple):
    """The live objects that the children are made from; None for one that does not exist."""

    https: JsonObject | None = None
    token: JsonObject | None = None
    volume: JsonObject | None = None
    claim: JsonObject | None = None


def tls_pair(purpose: str, name: str, secret: JsonObject | None) -> TlsPair:
    """The pair in a Secret; DependencyNotFound or DependencyInvalid. `purpose` is `HTTPS` or `attestation`."""
    if secret is None:
        raise DependencyNotFound(
            f"{purpose} secrets: Secret {name} not found: create it, of type {_TLS_TYPE}, in the same namespace"
        )
    if text_at(secret, "type") != _TLS_TYPE:
        raise DependencyInvalid(f"{purpose} secrets: Secret {name} is not of type {_TLS_TYPE}: create one that is")
    return TlsPair(_member(purpose, name, secret, "tls.key"), _member(purpose, name, secret, "tls.crt"))


def _member(purpose: str, name: str, secret: JsonObject, key: str) -> str:
    found = text_at(secret, "data", key)
    if not found:
        raise DependencyInvalid(f"{purpose} secrets: {key} not found in TLS secret {name}: add it")
    return found


def check_volume(name: str, volume: JsonObject | None, claim: JsonObject | None) -> None:
    """DependencyNotFound without the volume; DependencyInvalid if an existing claim is bound to another one."""
    if volume is None:
        raise DependencyNotFound(f"IBM SE PVC: PersistentVolume {name} not found: create it, and put the files there")
    bound: Json = None if claim is None else text_at(claim, "spec", "volumeName")
    if bound and bound != name:
        raise DependencyInvalid(
            f"IBM SE PVC: {text_at(claim, 'metadata', 'name')} is bound to volume {bound}, not {name}: "
            "delete the claim, or name its volume in spec.ibmSE.pvName"
        )


def missing_field_warnings(spec: TrusteeConfigSpec) -> tuple[str, ...]:
    """Warnings for fields that the server needs to start and that the spec leaves out."""
    if spec.profile is not ProfileType.RESTRICTED:
        return ()
    required = {
        "spec.httpsSpec.tlsSecretName": spec.https_secret,
        "spec.attestationTokenVerificationSpec.tlsSecretName": spec.token_secret,
    }
    return tuple(
        f"{field} is not set: a Restricted TrusteeConfig cannot start without it"
        for field, name in required.items()
        if not name
    )


def generate_key_pair() -> Mapping[str, str]:
    """A random Ed25519 key pair as the data of a Secret: PKIX and PKCS#8 in PEM, in base64."""
    # Imported on use: it is slow to load.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    private = Ed25519PrivateKey.generate()
    halves = {
        PUBLIC_KEY: private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        PRIVATE_KEY: private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    }
    return {name: base64.b64encode(half).decode() for name, half in halves.items()}


KEY_PAIR: Final = f"a fresh Ed25519 key pair: {PUBLIC_KEY} as PKIX, {PRIVATE_KEY} as PKCS#8, both in PEM"
_DATA: Final = FieldsView((Path(("data",)),))
_SPEC: Final = FieldsView((Path(("spec",)),))
# base64 of `success`.
_SUCCESS: Final = "c3VjY2Vzcw=="
_NO_REFERENCE_VALUES: Final = "{\n}"
_ANY_EDIT: Final = WholeValue()


def generated_children(resource: Resource, spec: TrusteeConfigSpec, sources: TrusteeSources) -> Iterator[Child]:
    """The children in order, the KbsConfig last; DependencyNotReady at the first one whose sources are missing."""
    return _ChildFactory(resource, ChildNames(resource.ref.name)).all(spec, sources)


@dataclass(frozen=True, slots=True)
class _ChildFactory:
    """Builds the children of one TrusteeConfig."""

    parent: Resource
    names: ChildNames

    def all(self, spec: TrusteeConfigSpec, sources: TrusteeSources) -> Iterator[Child]:
        yield self.settings(spec)
        yield self.secret("auth", self.names.auth_secret, {}, lacks=KEY_PAIR)
        yield self.secret("sample", SAMPLE_SECRET, {"status": _SUCCESS})
        yield self.text(
            self.names.resource_policy, RESOURCE_POLICY, resource_policy(spec), WholeValue(variant_of=access_of)
        )
        yield self.text(self.names.reference_values, REFERENCE_VALUES, _NO_REFERENCE_VALUES)
        if not spec.ibmSE:
            yield self.text(self.names.cpu_policy, CPU_POLICY, CPU_ATTESTATION)
            yield self.text(self.names.gpu_policy, GPU_POLICY, GPU_ATTESTATION)
        else:
            check_volume(spec.ibmSE.pvName, sources.volume, sources.claim)
            yield self.claim(spec.ibmSE.pvName)
        if spec.https_secret:
            yield from self.https_copies(tls_pair("HTTPS", spec.https_secret, sources.https))
        if spec.token_secret:
            yield from self.token_copies(tls_pair("attestation", spec.token_secret, sources.token))
        yield self.kbs_config(spec)

    def settings(self, spec: TrusteeConfigSpec) -> Child:
        text = kbs_toml(spec.profile, tls_settings(spec.tlsConfig or None))
        made = self.config_map(self.names.kbs_config, {KBS_TOML: text})
        return Child(made, ChildUpdatePolicy.MERGE, KbsTomlView(), KBS_TOML_EDITS)

    def text(self, name: str, key: str, text: str, edits: WholeValue = _ANY_EDIT) -> Child:
        """A ConfigMap with one text: an edit is kept, a removal is reverted."""
        path = Path(("data", key))
        return Child(self.config_map(name, {key: text}), ChildUpdatePolicy.MERGE, FieldsView((path,)), {path: edits})

    def https_copies(self, pair: TlsPair) -> Iterator[Child]:
        """A Secret each for key and certificate: copies that follow the source Secret."""
        yield self.copy("https", self.names.https_key, {PRIVATE_KEY: pair.key})
        yield self.copy("https", self.names.https_certificate, {CERTIFICATE: pair.certificate})

    def token_copies(self, pair: TlsPair) -> Iterator[Child]:
        """The same for attestation tokens."""
        yield self.copy("attestation", self.names.token_key, {TOKEN_KEY: pair.key})
        yield self.copy("attestation", self.names.token_certificate, {TOKEN_CERTIFICATE: pair.certificate})

    def kbs_config(self, spec: TrusteeConfigSpec) -> Child:
        body = {"spec": kbs_spec(self.names, spec)}
        made = self.made(API_VERSION, "KbsConfig", self.names.kbs_config, body)
        table = {Path(("spec", *path.steps)): edits for path, edits in editable_fields(self.names.parent).items()}
        return Child(made, ChildUpdatePolicy.MERGE, _SPEC, table)

    def claim(self, volume: str) -> Child:
        spec: JsonObject = {
            "accessModes": ["ReadOnlyMany"],
            "resources": {"requests": {"storage": "100Mi"}},
            # No dynamic provisioning: the volume exists.
            "storageClassName": "",
            "volumeName": volume,
        }
        made = self.made("v1", "PersistentVolumeClaim", self.names.ibm_se_claim, {"spec": spec})
        # The spec of a claim is immutable.
        return Child(made, ChildUpdatePolicy.CREATE_ONLY, _SPEC, {})

    def copy(self, component: str, name: str, data: Mapping[str, str]) -> Child:
        return Child(self.opaque(component, name, data), ChildUpdatePolicy.OVERWRITE, _DATA, {})

    def secret(self, component: str, name: str, data: Mapping[str, str], lacks: str = "") -> Child:
        return Child(self.opaque(component, name, data), ChildUpdatePolicy.CREATE_ONLY, _DATA, {}, lacks)

    def opaque(self, component: str, name: str, data: Mapping[str, str]) -> JsonObject:
        labels = {
            "app.kubernetes.io/managed-by": "trustee-operator",
            "app.kubernetes.io/part-of": "trustee",
            "app.kubernetes.io/instance": self.names.parent,
            "app.kubernetes.io/component": component,
        }
        return self.made("v1", "Secret", name, {"type": "Opaque", "data": dict(data)}, labels)

    def config_map(self, name: str, data: Mapping[str, str]) -> JsonObject:
        return self.made("v1", "ConfigMap", name, {"data": dict(data)})

    def made(
        self, api: str, kind: str, name: str, body: JsonObject, labels: Mapping[str, str] | None = None
    ) -> JsonObject:
        metadata: dict[str, Json] = {
            "name": name,
            "namespace": self.parent.ref.namespace,
            **({"labels": dict(labels)} if labels else {}),
            "ownerReferences": [owner_reference(self.parent.document)],
        }
        return {"apiVersion": api, "kind": kind, "metadata": metadata, **body}

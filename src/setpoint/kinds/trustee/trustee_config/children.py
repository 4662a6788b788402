"""Everything that a TrusteeConfig makes, in the order in which it is made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from setpoint.core.children import Child, Contents, Fields
from setpoint.core.owners import owner_reference
from setpoint.core.paths import Path
from setpoint.core.threeway import Whole
from setpoint.core.values import Json
from setpoint.engine.resource import Resource, Tree
from setpoint.kinds.trustee.trustee_config.kbs_spec import kbs_spec
from setpoint.kinds.trustee.trustee_config.kbs_toml import kbs_toml
from setpoint.kinds.trustee.trustee_config.merging import user_configurable
from setpoint.kinds.trustee.trustee_config.names import SAMPLE_SECRET, Names
from setpoint.kinds.trustee.trustee_config.policies import CPU_ATTESTATION, GPU_ATTESTATION, resource_policy
from setpoint.kinds.trustee.trustee_config.settings_view import SETTINGS, SettingsView
from setpoint.kinds.trustee.trustee_config.sources import Sources, TlsPair, check_volume, tls_pair
from setpoint.kinds.trustee.trustee_config.spec import TrusteeConfigSpec
from setpoint.kinds.trustee.trustee_config.tls import tls_settings
from setpoint.kinds.trustee_places import (
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

KEY_PAIR: Final = f"a fresh Ed25519 key pair: {PUBLIC_KEY} as PKIX, {PRIVATE_KEY} as PKCS#8, both in PEM"
_DATA: Final = Fields((Path(("data",)),))
_SPEC: Final = Fields((Path(("spec",)),))
# base64 of `success`.
_SUCCESS: Final = "c3VjY2Vzcw=="
_NO_REFERENCE_VALUES: Final = "{\n}"


def children(resource: Resource, spec: TrusteeConfigSpec, sources: Sources) -> Iterator[Child]:
    """What there should be, the KbsConfig last. Where one cannot be made, an error says what is missing for it."""
    return _Making(resource, Names(resource.ref.name)).all(spec, sources)


@dataclass(frozen=True, slots=True)
class _Making:
    """The children of one TrusteeConfig on their way."""

    parent: Resource
    names: Names

    def all(self, spec: TrusteeConfigSpec, sources: Sources) -> Iterator[Child]:
        yield self.settings(spec)
        yield self.secret("auth", self.names.auth_secret, {}, lacks=KEY_PAIR)
        yield self.secret("sample", SAMPLE_SECRET, {"status": _SUCCESS})
        yield self.text(self.names.resource_policy, RESOURCE_POLICY, resource_policy(spec))
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
        return Child(made, Contents.MERGED, SettingsView(), SETTINGS)

    def text(self, name: str, key: str, text: str) -> Child:
        """A ConfigMap with one text: whoever edits it keeps it, whoever removes it gets it back."""
        path = Path(("data", key))
        return Child(self.config_map(name, {key: text}), Contents.MERGED, Fields((path,)), {path: Whole()})

    def https_copies(self, pair: TlsPair) -> Iterator[Child]:
        """Secrets with one half of a pair each: they follow the Secret that the author named."""
        yield self.copy("https", self.names.https_key, {PRIVATE_KEY: pair.key})
        yield self.copy("https", self.names.https_certificate, {CERTIFICATE: pair.certificate})

    def token_copies(self, pair: TlsPair) -> Iterator[Child]:
        """The same for tokens."""
        yield self.copy("attestation", self.names.token_key, {TOKEN_KEY: pair.key})
        yield self.copy("attestation", self.names.token_certificate, {TOKEN_CERTIFICATE: pair.certificate})

    def kbs_config(self, spec: TrusteeConfigSpec) -> Child:
        body = {"spec": kbs_spec(self.names, spec)}
        made = self.made(API_VERSION, "KbsConfig", self.names.kbs_config, body)
        table = {Path(("spec", *path.steps)): edits for path, edits in user_configurable(self.names.parent).items()}
        return Child(made, Contents.MERGED, _SPEC, table)

    def claim(self, volume: str) -> Child:
        spec: Tree = {
            "accessModes": ["ReadOnlyMany"],
            "resources": {"requests": {"storage": "100Mi"}},
            # None of the cluster's own: the volume is there already.
            "storageClassName": "",
            "volumeName": volume,
        }
        made = self.made("v1", "PersistentVolumeClaim", self.names.ibm_se_claim, {"spec": spec})
        # A cluster lets nobody change it.
        return Child(made, Contents.ONCE, _SPEC, {})

    def copy(self, component: str, name: str, data: Mapping[str, str]) -> Child:
        return Child(self.opaque(component, name, data), Contents.COPIED, _DATA, {})

    def secret(self, component: str, name: str, data: Mapping[str, str], lacks: str = "") -> Child:
        return Child(self.opaque(component, name, data), Contents.ONCE, _DATA, {}, lacks)

    def opaque(self, component: str, name: str, data: Mapping[str, str]) -> Tree:
        labels = {
            "app.kubernetes.io/managed-by": "trustee-operator",
            "app.kubernetes.io/part-of": "trustee",
            "app.kubernetes.io/instance": self.names.parent,
            "app.kubernetes.io/component": component,
        }
        return self.made("v1", "Secret", name, {"type": "Opaque", "data": dict(data)}, labels)

    def config_map(self, name: str, data: Mapping[str, str]) -> Tree:
        return self.made("v1", "ConfigMap", name, {"data": dict(data)})

    def made(self, api: str, kind: str, name: str, body: Tree, labels: Mapping[str, str] | None = None) -> Tree:
        metadata: dict[str, Json] = {
            "name": name,
            "namespace": self.parent.ref.namespace,
            **({"labels": dict(labels)} if labels else {}),
            "ownerReferences": [owner_reference(self.parent.document)],
        }
        return {"apiVersion": api, "kind": kind, "metadata": metadata, **body}

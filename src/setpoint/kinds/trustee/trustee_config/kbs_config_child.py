"""The generated KbsConfig: names of all children, its spec, and which of its fields users may edit."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from setpoint.core.merge.threeway import (
    EditableFields,
    EditGranularity,
    EntryList,
    EntryMap,
    WholeValue,
)
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.kinds.trustee.trustee_config.spec import ProfileType, TrusteeConfigSpec

# Fixed: clients request it by this name.
SAMPLE_SECRET: Final = "attestation-status"


class ChildNames(NamedTuple):
    """The names of the children, derived from the name of the TrusteeConfig."""

    parent: str

    @property
    def kbs_config(self) -> str:
        """The KbsConfig, and the ConfigMap with `kbs-config.toml`."""
        return f"{self.parent}-kbs-config"

    @property
    def auth_secret(self) -> str:
        """The Secret with the administrator's key pair."""
        return f"{self.parent}-auth-secret"

    @property
    def resource_policy(self) -> str:
        """The ConfigMap with the resource policy."""
        return f"{self.parent}-resource-policy"

    @property
    def reference_values(self) -> str:
        """The ConfigMap with the reference values."""
        return f"{self.parent}-rvps-reference-values"

    @property
    def cpu_policy(self) -> str:
        """The ConfigMap with the attestation policy for CPUs."""
        return f"{self.parent}-attestation-policy-cpu"

    @property
    def gpu_policy(self) -> str:
        """The ConfigMap with the attestation policy for GPUs."""
        return f"{self.parent}-attestation-policy-gpu"

    @property
    def ibm_se_claim(self) -> str:
        """The PersistentVolumeClaim for IBM's certificates."""
        return f"{self.parent}-ibmse-certstore-pvc"

    @property
    def https_key(self) -> str:
        """The Secret with the server's private key."""
        return f"{self.parent}-https-key-secret"

    @property
    def https_certificate(self) -> str:
        """The Secret with the server's certificate."""
        return f"{self.parent}-https-cert-secret"

    @property
    def token_key(self) -> str:
        """The Secret with the signing key of tokens."""
        return f"{self.parent}-attestation-key-secret"

    @property
    def token_certificate(self) -> str:
        """The Secret with the certificate of tokens."""
        return f"{self.parent}-attestation-cert-secret"


def kbs_spec(names: ChildNames, spec: TrusteeConfigSpec) -> dict[str, Json]:
    """The generated spec; managed fields that it leaves out are cleared."""
    return {
        "kbsDeploymentType": "AllInOneDeployment",
        "KbsDeploymentSpec": {"replicas": 1},
        "kbsConfigMapName": names.kbs_config,
        "kbsAuthSecretName": names.auth_secret,
        "kbsResourcePolicyConfigMapName": names.resource_policy,
        "kbsRvpsRefValuesConfigMapName": names.reference_values,
        "kbsSecretResources": [SAMPLE_SECRET],
        **_attestation(names, spec),
        **_tls(names, spec),
        **({"kbsServiceType": spec.kbsServiceType} if spec.kbsServiceType else {}),
        **({"KbsEnvVars": {"RUST_LOG": "debug"}} if spec.profile is ProfileType.PERMISSIVE else {}),
    }


def _attestation(names: ChildNames, spec: TrusteeConfigSpec) -> dict[str, Json]:
    if spec.ibmSE:
        return {"ibmSEConfigSpec": {"certStorePvc": names.ibm_se_claim}}
    return {
        "kbsAttestationPolicyConfigMapName": names.cpu_policy,
        "kbsGpuAttestationPolicyConfigMapName": names.gpu_policy,
    }


def _tls(names: ChildNames, spec: TrusteeConfigSpec) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if spec.https_secret:
        found |= {"kbsHttpsKeySecretName": names.https_key, "kbsHttpsCertSecretName": names.https_certificate}
    if spec.token_secret:
        found |= {
            "kbsAttestationKeySecretName": names.token_key,
            "kbsAttestationCertSecretName": names.token_certificate,
        }
    return found


def editable_fields(parent: str) -> EditableFields:
    """The fields of a KbsConfig's spec that users may edit, and how edits are merged; every other field is managed."""
    # The claim that the TrusteeConfig itself creates is never a user's edit.
    own = (ChildNames(parent).ibm_se_claim,)
    fields = {**_EDITABLE, "ibmSEConfigSpec.certStorePvc": WholeValue(own=own)}
    return {Path.parse(field): edits for field, edits in fields.items()}


_EDITABLE: Final[Mapping[str, EditGranularity]] = {
    "KbsDeploymentSpec.replicas": WholeValue(),
    "KbsEnvVars": EntryMap(),
    "kbsSecretResources": EntryList(),
    "kbsLocalCertCacheSpec.secrets": EntryList("secretName"),
    "ibmSEConfigSpec.certStorePvc": WholeValue(),
    "kbsAttestationPolicyConfigMapName": WholeValue(),
}

"""The generated KbsConfig: names of all children, its spec, and which of its fields users may edit."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from setpoint.core.merge.merge_report import FieldResolution, edited_fields, merge_report
from setpoint.core.merge.threeway import (
    EditableFields,
    EditGranularity,
    EntryList,
    EntryMap,
    LastGenerated,
    WholeValue,
    merge,
    remember,
)
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.kinds.trustee.trustee_config.spec import ProfileType, TrusteeConfigSpec

# The same for all: clients ask for it by this name.
SAMPLE_SECRET: Final = "attestation-status"


class ChildNames(NamedTuple):
    """The names that follow from a TrusteeConfig's own."""

    parent: str

    @property
    def kbs_config(self) -> str:
        """The KbsConfig, and the ConfigMap with its settings."""
        return f"{self.parent}-kbs-config"

    @property
    def auth_secret(self) -> str:
        """The administrator's key pair."""
        return f"{self.parent}-auth-secret"

    @property
    def resource_policy(self) -> str:
        """Who gets which resource."""
        return f"{self.parent}-resource-policy"

    @property
    def reference_values(self) -> str:
        """What measurements are compared with."""
        return f"{self.parent}-rvps-reference-values"

    @property
    def cpu_policy(self) -> str:
        """How evidence of a CPU is judged."""
        return f"{self.parent}-attestation-policy-cpu"

    @property
    def gpu_policy(self) -> str:
        """How evidence of a GPU is judged."""
        return f"{self.parent}-attestation-policy-gpu"

    @property
    def ibm_se_claim(self) -> str:
        """The claim on the volume with IBM's certificates."""
        return f"{self.parent}-ibmse-certstore-pvc"

    @property
    def https_key(self) -> str:
        """The server's private key."""
        return f"{self.parent}-https-key-secret"

    @property
    def https_certificate(self) -> str:
        """The server's certificate."""
        return f"{self.parent}-https-cert-secret"

    @property
    def token_key(self) -> str:
        """The key that tokens are signed with."""
        return f"{self.parent}-attestation-key-secret"

    @property
    def token_certificate(self) -> str:
        """The certificate of tokens."""
        return f"{self.parent}-attestation-cert-secret"


def kbs_spec(names: ChildNames, spec: TrusteeConfigSpec) -> dict[str, Json]:
    """What is generated; what is not there is cleared where it is managed."""
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


class MergeDialect(StrEnum):
    """Whose rules: ours, or those of trustee-operator at one time or another."""

    SETPOINT = "setpoint"
    HEAD = "head"
    V0_17_TO_V0_19 = "v0.17-v0.19"
    BRIEF = "brief"
    INITIAL = "initial"


class EditPolicy(StrEnum):
    """Who has the last word on a field."""

    MANAGED = "managed"
    SCALAR = "user-configurable"
    MAP = "user-configurable by key"
    LIST = "user-configurable by entry"


REPLICAS: Final = "KbsDeploymentSpec.replicas"
ENV: Final = "KbsEnvVars"
SECRET_RESOURCES: Final = "kbsSecretResources"
CERT_CACHE: Final = "kbsLocalCertCacheSpec.secrets"
CERT_STORE: Final = "ibmSEConfigSpec.certStorePvc"
ATTESTATION_POLICY: Final = "kbsAttestationPolicyConfigMapName"

# In every dialect.
_ALWAYS: Final[Mapping[str, EditGranularity]] = {
    REPLICAS: WholeValue(),
    ENV: EntryMap(),
    SECRET_RESOURCES: EntryList(),
    CERT_CACHE: EntryList("secretName"),
}
_ALSO: Final[Mapping[MergeDialect, tuple[str, ...]]] = {
    MergeDialect.SETPOINT: (ATTESTATION_POLICY,),
    MergeDialect.HEAD: (),
    MergeDialect.V0_17_TO_V0_19: (),
    MergeDialect.BRIEF: (ATTESTATION_POLICY,),
    MergeDialect.INITIAL: (
        ATTESTATION_POLICY,
        "kbsHttpsKeySecretName",
        "kbsHttpsCertSecretName",
        "tdxConfigSpec.kbsTdxConfigMapName",
    ),
}
# Where the claim that a TrusteeConfig makes itself is never taken for a person's.
_EXCLUDES_OWN_CLAIM: Final = (MergeDialect.SETPOINT, MergeDialect.HEAD)
_MANAGED: Final = (
    "kbsConfigMapName",
    "kbsAsConfigMapName",
    "kbsRvpsConfigMapName",
    "kbsRvpsRefValuesConfigMapName",
    "kbsAuthSecretName",
    "kbsServiceType",
    "kbsDeploymentType",
    "kbsHttpsKeySecretName",
    "kbsHttpsCertSecretName",
    "kbsAttestationKeySecretName",
    "kbsAttestationCertSecretName",
    "kbsGpuAttestationPolicyConfigMapName",
    "kbsResourcePolicyConfigMapName",
)


def editable_fields(parent: str, dialect: MergeDialect = MergeDialect.SETPOINT) -> EditableFields:
    """The fields of a KbsConfig's spec that people may edit, and how; every other one is managed."""
    own = (ChildNames(parent).ibm_se_claim,) if dialect in _EXCLUDES_OWN_CLAIM else ()
    fields = {**_ALWAYS, CERT_STORE: WholeValue(own=own), **{field: WholeValue() for field in _ALSO[dialect]}}
    return {Path.parse(field): edits for field, edits in fields.items()}


def field_policies() -> Mapping[str, EditPolicy]:
    """Every field of a KbsConfig's spec, and who has the last word on it: what the documentation shows."""
    edited = {str(path): _policy(edits) for path, edits in editable_fields("").items()}
    return {**dict.fromkeys(_MANAGED, EditPolicy.MANAGED), **edited}


def _policy(edits: EditGranularity) -> EditPolicy:
    match edits:
        case EntryMap():
            return EditPolicy.MAP
        case EntryList():
            return EditPolicy.LIST
        case _:
            return EditPolicy.SCALAR


@dataclass(frozen=True, slots=True)
class MergedKbsConfig:
    """The spec that a KbsConfig should have, whose edits it keeps and why, and what the next merge has to know.

    `spec` is the very one that is live when nothing is to be written. `changed` are the fields that differ from what
    is generated, told as trustee-operator tells a manual change: without a memory.
    """

    spec: Json
    findings: tuple[FieldResolution, ...]
    conflicts: tuple[Path, ...]
    changed: tuple[Path, ...]
    memory: LastGenerated


def merge_kbs_config(last: LastGenerated | None, live: Json, generated: Json, table: EditableFields) -> MergedKbsConfig:
    """What the spec of a KbsConfig should be, three ways; two ways where there is no memory.

    `table` is `user_configurable(…)`. Who wants trustee-operator's merge for good passes no memory.
    """
    merged = merge(last, live, generated, table)
    return MergedKbsConfig(
        spec=merged.value,
        findings=merge_report("KbsConfig", merged),
        conflicts=merged.conflicts,
        changed=edited_fields(live, generated, table),
        memory=remember(generated, table),
    )

"""A KbsConfig that people edit while its TrusteeConfig goes on generating it: which fields are whose, and the merge.

A field is managed, or user-configurable: one value, a map by key, or a list by entry. Which ones are
user-configurable has changed over time; a dialect names one set of rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from setpoint.core.edited import edited_fields
from setpoint.core.fates import Finding, fates
from setpoint.core.paths import Path
from setpoint.core.threeway import Edits, EntryList, EntryMap, Memory, Table, Whole, merge, remember
from setpoint.core.values import Json
from setpoint.kinds.trustee.trustee_config.names import Names


class Dialect(StrEnum):
    """Whose rules: ours, or those of trustee-operator at one time or another."""

    SETPOINT = "setpoint"
    HEAD = "head"
    V0_17_TO_V0_19 = "v0.17-v0.19"
    BRIEF = "brief"
    INITIAL = "initial"


class Policy(StrEnum):
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
_ALWAYS: Final[Mapping[str, Edits]] = {
    REPLICAS: Whole(),
    ENV: EntryMap(),
    SECRET_RESOURCES: EntryList(),
    CERT_CACHE: EntryList("secretName"),
}
_ALSO: Final[Mapping[Dialect, tuple[str, ...]]] = {
    Dialect.SETPOINT: (ATTESTATION_POLICY,),
    Dialect.HEAD: (),
    Dialect.V0_17_TO_V0_19: (),
    Dialect.BRIEF: (ATTESTATION_POLICY,),
    Dialect.INITIAL: (
        ATTESTATION_POLICY,
        "kbsHttpsKeySecretName",
        "kbsHttpsCertSecretName",
        "tdxConfigSpec.kbsTdxConfigMapName",
    ),
}
# Where the claim that a TrusteeConfig makes itself is never taken for a person's.
_KNOWS_ITS_CLAIM: Final = (Dialect.SETPOINT, Dialect.HEAD)
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


def user_configurable(parent: str, dialect: Dialect = Dialect.SETPOINT) -> Table:
    """The fields of a KbsConfig's spec that people may edit, and how; every other one is managed."""
    own = (Names(parent).ibm_se_claim,) if dialect in _KNOWS_ITS_CLAIM else ()
    fields = {**_ALWAYS, CERT_STORE: Whole(own=own), **{field: Whole() for field in _ALSO[dialect]}}
    return {Path.parse(field): edits for field, edits in fields.items()}


def field_policies() -> Mapping[str, Policy]:
    """Every field of a KbsConfig's spec, and who has the last word on it: what the documentation shows."""
    edited = {str(path): _policy(edits) for path, edits in user_configurable("").items()}
    return {**dict.fromkeys(_MANAGED, Policy.MANAGED), **edited}


def _policy(edits: Edits) -> Policy:
    match edits:
        case EntryMap():
            return Policy.MAP
        case EntryList():
            return Policy.LIST
        case _:
            return Policy.SCALAR


@dataclass(frozen=True, slots=True)
class MergedKbsConfig:
    """The spec that a KbsConfig should have, whose edits it keeps and why, and what the next merge has to know.

    `spec` is the very one that is live when nothing is to be written. `changed` are the fields that differ from what
    is generated, told as trustee-operator tells a manual change: without a memory.
    """

    spec: Json
    findings: tuple[Finding, ...]
    conflicts: tuple[Path, ...]
    changed: tuple[Path, ...]
    memory: Memory


def merge_kbs_config(last: Memory | None, live: Json, generated: Json, table: Table) -> MergedKbsConfig:
    """What the spec of a KbsConfig should be, three ways; two ways where there is no memory.

    `table` is `user_configurable(…)`. Who wants trustee-operator's merge for good passes no memory.
    """
    merged = merge(last, live, generated, table)
    return MergedKbsConfig(
        spec=merged.value,
        findings=fates("KbsConfig", merged),
        conflicts=merged.conflicts,
        changed=edited_fields(live, generated, table),
        memory=remember(generated, table),
    )

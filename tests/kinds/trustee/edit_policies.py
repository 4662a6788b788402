"""Which fields of a KbsConfig users may edit, as the documentation shows it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from setpoint.core.merge.threeway import EditGranularity, EntryList, EntryMap
from setpoint.kinds.trustee.trustee_config import editable_fields


class EditPolicy(StrEnum):
    """Whether users may edit a field, and how their edits are merged."""

    MANAGED = "managed"
    SCALAR = "user-configurable"
    MAP = "user-configurable by key"
    LIST = "user-configurable by entry"


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


def field_policies() -> Mapping[str, EditPolicy]:
    """Every field of a KbsConfig's spec with its policy."""
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

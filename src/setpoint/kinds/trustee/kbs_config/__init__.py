"""KbsConfig: one Trustee deployment, from ConfigMaps and Secrets by name.

Imported by `app`; imports `kinds.trustee.constants` and no other kind. Start at `owner.py`.
"""

from setpoint.kinds.trustee.kbs_config.inputs import InputObject, input_objects, input_versions
from setpoint.kinds.trustee.kbs_config.owner import (
    DeploymentReadiness,
    KbsConfigOwner,
    TrusteeReadiness,
    deployment_readiness,
)
from setpoint.kinds.trustee.kbs_config.spec import DeploymentType, KbsConfigSpec, KbsConfigStatus
from setpoint.kinds.trustee.kbs_config.workload import (
    DEPLOYMENT,
    FINALIZER,
    SERVICE,
    TrusteeImages,
    WorkloadInputs,
    deployment,
    images,
    service,
)

__all__ = (
    "DEPLOYMENT",
    "FINALIZER",
    "SERVICE",
    "DeploymentReadiness",
    "DeploymentType",
    "InputObject",
    "KbsConfigOwner",
    "KbsConfigSpec",
    "KbsConfigStatus",
    "TrusteeImages",
    "TrusteeReadiness",
    "WorkloadInputs",
    "deployment",
    "deployment_readiness",
    "images",
    "input_objects",
    "input_versions",
    "service",
)

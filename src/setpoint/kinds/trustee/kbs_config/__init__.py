"""KbsConfig: one Trustee, by the names of what it is made of."""

from setpoint.kinds.trustee.kbs_config.containers import Images, images
from setpoint.kinds.trustee.kbs_config.contents import Part, parts, versions
from setpoint.kinds.trustee.kbs_config.owner import KbsConfigOwner
from setpoint.kinds.trustee.kbs_config.readiness import Readiness, Verdict, readiness
from setpoint.kinds.trustee.kbs_config.spec import DeploymentType, KbsConfigSpec
from setpoint.kinds.trustee.kbs_config.status import KbsConfigStatus
from setpoint.kinds.trustee.kbs_config.workload import DEPLOYMENT, FINALIZER, SERVICE, deployment, service

__all__ = (
    "DEPLOYMENT",
    "FINALIZER",
    "SERVICE",
    "DeploymentType",
    "Images",
    "KbsConfigOwner",
    "KbsConfigSpec",
    "KbsConfigStatus",
    "Part",
    "Readiness",
    "Verdict",
    "deployment",
    "images",
    "parts",
    "readiness",
    "service",
    "versions",
)

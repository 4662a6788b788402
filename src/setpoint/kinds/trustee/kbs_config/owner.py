"""The owner KbsConfig: generates the Deployment and the Service, and derives its readiness from the Deployment."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from setpoint.core.merge.children import Child
from setpoint.core.unstructured import count_at, display_name
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.core.wait.rollout import rollout_pending
from setpoint.engine.conditions import ReadyCondition
from setpoint.engine.kind import CrdDetails, Dependency
from setpoint.engine.owner import GeneratedChildren, ObjectKind, OwnerStatus
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import DependencyNotReady, UserError
from setpoint.kind.typed_spec import decode_spec
from setpoint.kinds.trustee.constants import CONFIG_MAP, GROUP, SECRET, VERSION, object_ref
from setpoint.kinds.trustee.kbs_config.inputs import InputObject, input_objects, input_versions, public_auth_keys
from setpoint.kinds.trustee.kbs_config.spec import KbsConfigSpec, KbsConfigStatus, KbsConfigTree
from setpoint.kinds.trustee.kbs_config.workload import (
    DEPLOYMENT,
    FINALIZER,
    WorkloadInputs,
    check_volumes,
    images,
    workload,
)


class TrusteeReadiness(StrEnum):
    """The reason of the Ready condition."""

    READY = "Ready"
    SCALED_TO_ZERO = "ScaledToZero"
    ROLLING_OUT = "RollingOut"
    ABSENT = "DeploymentAbsent"


class DeploymentReadiness(NamedTuple):
    """The readiness of Trustee, with a message."""

    readiness: TrusteeReadiness
    message: str

    @property
    def is_ready(self) -> bool:
        """Whether clients are served by the declared version."""
        return self.readiness is TrusteeReadiness.READY


def deployment_readiness(live: JsonObject | None) -> DeploymentReadiness:
    """Ready when all pods run the current spec: a status of an older generation does not count."""
    if live is None:
        return DeploymentReadiness(TrusteeReadiness.ABSENT, "the Deployment is not there yet")
    left = rollout_pending(live)
    if left is not None:
        return DeploymentReadiness(TrusteeReadiness.ROLLING_OUT, f"{display_name(live)}: {left}")
    if count_at(live, "spec", "replicas", absent=1) == 0:
        return DeploymentReadiness(
            TrusteeReadiness.SCALED_TO_ZERO, f"{display_name(live)} is scaled to zero: no client is served"
        )
    return DeploymentReadiness(TrusteeReadiness.READY, "Trustee deployment is ready")


_DEPLOYMENT_KIND: Final = ObjectKind("apps", "v1", "Deployment", "deployments")
_SERVICE_KIND: Final = ObjectKind("", "v1", "Service", "services")
_PART_KINDS: Final = {kind.kind: kind for kind in (CONFIG_MAP, SECRET)}
_DEFINITION: Final = CrdDetails(
    "A Trustee, by the names of its ConfigMaps and Secrets.", KbsConfigStatus, required=("isReady",)
)


@dataclass(slots=True)
class KbsConfigOwner:
    """The owner KbsConfig. `environ` names the images."""

    environ: Mapping[str, str]
    group: str = GROUP
    version: str = VERSION
    name: str = "KbsConfig"
    # 2: pods get no private key of the auth Secret.
    revision: int = 2
    annotations: Sequence[str] = ()
    tree_type: type[Struct] = KbsConfigTree
    definition: CrdDetails = _DEFINITION
    makes: Sequence[ObjectKind] = (_DEPLOYMENT_KIND, _SERVICE_KIND)
    reads: Sequence[ObjectKind] = (CONFIG_MAP, SECRET)
    finalizer: str = FINALIZER
    minimum_outputs: JsonObject = field(default_factory=lambda: {"isReady": False})

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that no pod can have.

        A spec without some names is valid: a TrusteeConfig may fill them in later.
        """
        check_volumes(_spec(resource))

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """None: ConfigMaps and Secrets are its sources."""
        return ()

    def sources(self, resource: Resource) -> Sequence[ResourceRef]:
        """The ConfigMaps and Secrets that the spec names."""
        return tuple(_input_refs(resource).values())

    def generate(self, resource: Resource, found: Mapping[ResourceRef, Resource]) -> GeneratedChildren:
        """The Deployment and the Service; neither while a ConfigMap or Secret is missing."""
        spec = _spec(resource)
        there = {part: found[ref].document for part, ref in _input_refs(resource).items() if ref in found}
        try:
            inputs = WorkloadInputs(input_versions(spec, there), public_auth_keys(spec, there))
            return GeneratedChildren(workload(resource, spec, images(self.environ, spec), inputs))
        except (DependencyNotReady, UserError) as error:
            return GeneratedChildren((), error)

    def completed(self, child: Child) -> JsonObject:
        """The object unchanged: no values are generated at creation."""
        return child.object

    def status_of(self, resource: Resource, children: Mapping[str, Resource]) -> OwnerStatus:
        """Ready when all pods run the current spec."""
        live = children.get(f"{_DEPLOYMENT_KIND.kind}/{DEPLOYMENT}")
        found = deployment_readiness(None if live is None else live.document)
        ready = ReadyCondition("True" if found.is_ready else "False", found.readiness.value, found.message)
        return OwnerStatus(ready, {"isReady": found.is_ready}, "Trustee deployment is no longer ready")

    def deleted_first(self, resource: Resource) -> Sequence[ResourceRef]:
        """The Deployment, whose pods end before the finalizer is removed."""
        return (object_ref(_DEPLOYMENT_KIND, DEPLOYMENT, resource),)


def _spec(resource: Resource) -> KbsConfigSpec:
    return decode_spec(resource, KbsConfigSpec)


def _input_refs(resource: Resource) -> Mapping[InputObject, ResourceRef]:
    return {part: object_ref(_PART_KINDS[part.kind], part.name, resource) for part in input_objects(_spec(resource))}

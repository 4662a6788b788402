"""The owner KbsConfig: the pods of a Trustee, and how clients reach them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from setpoint.core.children import Child
from setpoint.engine.kind import Definition, Need
from setpoint.engine.owner import Generated, ObjectKind, Standing
from setpoint.engine.report import Ready
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.errors import DependencyNotFound, UserError
from setpoint.kinds.trustee.kbs_config.containers import images
from setpoint.kinds.trustee.kbs_config.contents import Part, parts, versions
from setpoint.kinds.trustee.kbs_config.readiness import readiness
from setpoint.kinds.trustee.kbs_config.spec import KbsConfigSpec, KbsConfigTree
from setpoint.kinds.trustee.kbs_config.status import KbsConfigStatus
from setpoint.kinds.trustee.kbs_config.volumes import check_volumes
from setpoint.kinds.trustee.kbs_config.workload import DEPLOYMENT, FINALIZER, workload
from setpoint.kinds.trustee_places import CONFIG_MAP, GROUP, SECRET, VERSION, place_of
from setpoint.kinds.typed_spec import read_spec

_DEPLOYMENT: Final = ObjectKind("apps", "v1", "Deployment", "deployments")
_SERVICE: Final = ObjectKind("", "v1", "Service", "services")
_PART_KINDS: Final = {kind.kind: kind for kind in (CONFIG_MAP, SECRET)}
_DEFINITION: Final = Definition(
    "One Trustee, by the names of what it is made of.", KbsConfigStatus, required=("isReady",)
)


@dataclass(slots=True)
class KbsConfigOwner:
    """The owner. `environ` names the images."""

    environ: Mapping[str, str]
    group: str = GROUP
    version: str = VERSION
    name: str = "KbsConfig"
    revision: int = 1
    annotations: Sequence[str] = ()
    tree_type: type[Struct] = KbsConfigTree
    definition: Definition = _DEFINITION
    makes: Sequence[ObjectKind] = (_DEPLOYMENT, _SERVICE)
    reads: Sequence[ObjectKind] = (CONFIG_MAP, SECRET)
    finalizer: str = FINALIZER
    least: Tree = field(default_factory=lambda: {"isReady": False})

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that no pod can have.

        One that still lacks names is taken: a TrusteeConfig that comes later fills them in.
        """
        check_volumes(_spec(resource))

    def needs(self, resource: Resource) -> Sequence[Need]:
        """None: ConfigMaps and Secrets are its sources."""
        return ()

    def sources(self, resource: Resource) -> Sequence[ResourceRef]:
        """The ConfigMaps and Secrets that the spec names."""
        return tuple(_places(resource).values())

    def generate(self, resource: Resource, found: Mapping[ResourceRef, Resource]) -> Generated:
        """The Deployment and the Service; neither as long as anything is missing that pods are made of."""
        spec = _spec(resource)
        there = {part: found[ref].document for part, ref in _places(resource).items() if ref in found}
        try:
            return Generated(workload(resource, spec, images(self.environ, spec), versions(spec, there)))
        except (DependencyNotFound, UserError) as error:
            return Generated((), error)

    def completed(self, child: Child) -> Tree:
        """The object as it is: it lacks nothing."""
        return child.object

    def standing(self, resource: Resource, children: Mapping[str, Resource]) -> Standing:
        """Ready when all pods that were asked for run what was asked for."""
        live = children.get(f"{_DEPLOYMENT.kind}/{DEPLOYMENT}")
        verdict = readiness(None if live is None else live.document)
        ready = Ready("True" if verdict.is_ready else "False", verdict.readiness.value, verdict.message)
        return Standing(ready, {"isReady": verdict.is_ready}, "Trustee deployment is no longer ready")

    def goes_first(self, resource: Resource) -> Sequence[ResourceRef]:
        """The Deployment."""
        return (place_of(_DEPLOYMENT, DEPLOYMENT, resource),)


def _spec(resource: Resource) -> KbsConfigSpec:
    return read_spec(resource, KbsConfigSpec)


def _places(resource: Resource) -> Mapping[Part, ResourceRef]:
    return {part: place_of(_PART_KINDS[part.kind], part.name, resource) for part in parts(_spec(resource))}

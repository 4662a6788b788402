"""What the kinds that live in the policy of an object share: which object it is, whose behalf it is on, references."""

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, TypeVar

from msgspec import Struct

from setpoint.clients.google.client import GoogleClient
from setpoint.core.overlay import EffectiveState, effective_state
from setpoint.core.plan import PlanOptions
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject, Missing
from setpoint.core.values.problems import Problems
from setpoint.engine.kind import Dependency, Intent, RemoteOperation, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.kind.spec_references import dependencies_in
from setpoint.kind.typed_spec import decode_spec
from setpoint.kinds.gcp.iam.policies import PolicyClient, PolicyClients
from setpoint.kinds.gcp.iam.spec import GROUP, VERSION, PolicyTargetReference
from setpoint.kinds.gcp.iam.targets import PolicyTarget, target_dependency, target_of
from setpoint.kinds.gcp.shared.config_connector import ANY_PROJECT, PROJECT_ANNOTATION, TenantProjects

K = TypeVar("K", bound="PolicyPartKind")


@dataclass(slots=True)
class PolicyPartKind:
    """A kind whose object is a policy, or a part of one."""

    google: GoogleClient
    clients: PolicyClients = field(default_factory=PolicyClients)
    projects: TenantProjects = ANY_PROJECT
    group: str = GROUP
    version: str = VERSION
    revision: int = 1
    annotations: Sequence[str] = (PROJECT_ANNOTATION,)
    writes_through_clients: ClassVar = True
    spec_type: ClassVar[type[Any]]

    def for_tenant(self: K, tenant: Tenant) -> K:
        """See SupportsTenants."""
        projects = TenantProjects(tenant)
        return replace(self, google=self.google.acting_for(projects.caller), projects=projects)

    @property
    def policies(self) -> PolicyClient:
        """The policies, on behalf of the tenant."""
        return self.clients.of(self.google, self.projects.caller)

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that is invalid whatever the live state."""
        problems = Problems()
        problems.collect(decode_spec, resource, self.spec_type)
        problems.collect(self.dependencies, resource)
        problems.require_none()

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The object that has the policy, and those whose service accounts are members."""
        spec = decode_spec(resource, self.spec_type)
        target = target_dependency(spec.resourceRef, resource)
        return (*(() if target is None else (target,)), *dependencies_in(spec, resource))

    def target(self, resource: Resource, resolved: ResolvedReferences) -> PolicyTarget:
        """The object that has the policy."""
        ref = decode_spec(resource, self.spec_type).resourceRef
        assert isinstance(ref, PolicyTargetReference)
        return target_of(ref, resource, resolved, self.projects)

    def effective(self, spec: Struct, live: Struct | Missing, policy: FieldPolicy) -> EffectiveState[Struct]:
        """The spec: what it leaves out of the policy is not compared."""
        return effective_state(spec, live, policy)

    def abandons(self, resource: Resource) -> bool:
        """Never: the spec has no deletion policy."""
        return False

    def sending(self, intent: Intent) -> PlanOptions:
        """All in one write."""
        return PlanOptions()

    async def poll(self, operation: RemoteOperation) -> bool:
        """Whether the batch of changes was sent."""
        return self.policies.is_sent(operation.name)


def shown_target(target: PolicyTarget) -> JsonObject:
    """The reference to the object, as it is compared."""
    return {"kind": target.kind, "external": target.name}

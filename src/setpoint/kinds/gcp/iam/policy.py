"""IAMPolicy: the whole policy of an object. Members that it does not declare lose their roles, as its plan says."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, Final

from msgspec import Struct, to_builtins

from setpoint.core.plan import PlannedWrite
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.capabilities import ImportPlace, ListScope, LiveIdentity
from setpoint.engine.kind import (
    Absent,
    CrdDetails,
    Intent,
    Location,
    Present,
    Reconciliation,
    ResolvedReferences,
    Unchanged,
)
from setpoint.engine.resource import Resource
from setpoint.kind.typed_spec import decode_spec
from setpoint.kinds.gcp.iam.grants import Grant, bindings_of, changed_policy, grants_in, normal_member
from setpoint.kinds.gcp.iam.members import check_binding, grant_condition
from setpoint.kinds.gcp.iam.policies import PolicyDocument
from setpoint.kinds.gcp.iam.policy_import import identity_of, policy_scopes, target_in
from setpoint.kinds.gcp.iam.policy_kind import PolicyPartKind, shown_target
from setpoint.kinds.gcp.iam.spec import PolicySpec, PolicyStatus, PolicyTree
from setpoint.kinds.gcp.iam.targets import PolicyTarget, target_at
from setpoint.kinds.gcp.shared.config_connector import definition_for

_DEFINITION: Final = replace(
    definition_for("IAMPolicy", PolicyStatus, "The whole IAM policy of an object."), plural="iampolicies"
)
_BINDINGS: Final = Path(("spec", "bindings"))
# Without a mask, services change the bindings alone.
_WITH_AUDIT: Final = "bindings,etag,auditConfigs"
_AUDIT: Final = "auditConfigs"
# The output that has the grants of the resource.
LAST_APPLIED: Final = "lastAppliedBindings"


class LivePolicy(Struct, frozen=True):
    """A live policy: its bindings and audit configs in their one order; None where the spec is silent about these."""

    kind: str
    name: str
    bindings: list[dict[str, Any]]
    audit_configs: list[dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class DeclaredPolicy:
    """What a resource declares."""

    grants: frozenset[Grant]
    audit_configs: list[dict[str, Any]] | None
    # What was declared before, and may still be there.
    before: frozenset[Grant] = frozenset()
    is_deleting: bool = False


@dataclass(slots=True)
class PolicyKind(PolicyPartKind):
    """The kind IAMPolicy."""

    name: str = "IAMPolicy"
    reconciliation: Reconciliation = Reconciliation.STATELESS
    live_type: type[LivePolicy] = LivePolicy
    tree_type: type[Struct] = PolicyTree
    definition: CrdDetails = _DEFINITION
    spec_type: ClassVar = PolicySpec
    # By location, of what was located, or is about to be deleted.
    declared: dict[Location, DeclaredPolicy] = field(default_factory=dict)
    is_imported_beside: ClassVar = True
    # Of buckets that were imported, whose names do not say it.
    bucket_projects: dict[str, str] = field(default_factory=dict)

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that is invalid whatever the live state."""
        PolicyPartKind.check(self, resource)
        for place, binding in enumerate(decode_spec(resource, PolicySpec).bindings or ()):
            at = _BINDINGS / place
            members = ((at / "members" / position, member) for position, member in enumerate(binding.members or ()))
            check_binding(binding.role, members, at, resource)

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`projects/p/topics/t/iamPolicy/PubSubTopic`."""
        location = self.target(resource, resolved).location()
        self.declared[location] = _declared(resource)
        return location

    def prepare_deletion(self, resource: Resource, location: Location) -> None:
        """See SupportsDeletionPreparation: what the resource declares and declared is deleted."""
        self.declared[location] = replace(_declared(resource), is_deleting=True)

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The policy with its bindings in their one order."""
        found = _declared(resource)
        return _tree(self.target(resource, resolved), bindings_of(found.grants), found.audit_configs)

    def view(self, live: LivePolicy) -> JsonObject:
        """The live policy in the terms of the spec."""
        return _tree(PolicyTarget(live.kind, live.name), live.bindings, live.audit_configs)

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LivePolicy] | Unchanged:
        """Reads the policy. One that grants nothing does not exist, unless nothing is declared either."""
        target, _ = target_at(location)
        document = await self.policies.read(target)
        if document is None:
            return Absent()
        found = self._present(location, document)
        return Unchanged() if isinstance(found, Present) and found.body == known else found

    def _present(self, location: Location, document: PolicyDocument) -> Absent | Present[LivePolicy]:
        target, _ = target_at(location)
        declared = self._declared(location)
        audit = None if declared.audit_configs is None else _ordered(document.body.get(_AUDIT) or ())
        own = document.grants & (declared.grants | declared.before)
        grants = own if declared.is_deleting else document.grants
        has_declared = bool(declared.grants or declared.audit_configs)
        if not grants and not audit and (has_declared or declared.is_deleting):
            return Absent()
        live = LivePolicy(target.kind, target.name, bindings_of(grants), audit)
        outputs: JsonObject = {LAST_APPLIED: bindings_of(own)}
        return Present(live, digest(to_builtins(live)), document.etag, outputs, whole=dict(document.body))

    def _declared(self, location: Location) -> DeclaredPolicy:
        return self.declared.get(location) or DeclaredPolicy(frozenset(), None, is_deleting=True)

    def outputs_before_write(self, location: Location) -> JsonObject:
        """See SupportsWriteRecord: what a deletion takes out of the policy."""
        declared = self._declared(location)
        return {LAST_APPLIED: bindings_of(declared.grants | declared.before)}

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """Sets the policy, which was empty."""
        target, _ = target_at(intent.location)
        await self._set(intent.location, wanted, await self.policies.require(target))

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LivePolicy]
    ) -> None:
        """Sets the policy. If it has changed since the plan was made, nothing is sent."""
        assert isinstance(before.whole, Mapping)
        await self._set(intent.location, wanted, before.whole)

    async def _set(self, location: Location, wanted: JsonObject, before: Mapping[str, Any]) -> None:
        target, _ = target_at(location)
        spec: Any = wanted["spec"]
        policy = changed_policy({**before, "bindings": []}, grants_in(spec.get("bindings") or ()), ())
        if _AUDIT in spec:
            policy[_AUDIT] = spec[_AUDIT]
        await self.policies.replace(target, policy, _WITH_AUDIT if _AUDIT in spec else "")

    async def delete(self, location: Location, before: Present[LivePolicy], resource: Resource) -> None:
        """Takes out of the policy what is declared: what another writer has granted since stays."""
        target, _ = target_at(location)
        declared = _declared(resource)
        assert isinstance(before.whole, Mapping)
        policy = changed_policy(before.whole, (), declared.grants | declared.before)
        if declared.audit_configs:
            policy[_AUDIT] = [one for one in _ordered(policy.get(_AUDIT) or ()) if one not in declared.audit_configs]
        await self.policies.replace(target, policy, _WITH_AUDIT if declared.audit_configs else "")

    def parent_kinds(self) -> Sequence[GroupKind]:
        """See SupportsImport: whatever is imported beside it."""
        return ()

    def import_scopes(self, place: ImportPlace) -> Sequence[ListScope]:
        """The policy of the project, and of each object that is known and has one."""
        return tuple(policy_scopes(place))

    async def live_objects(self, list_scope: ListScope) -> AsyncGenerator[tuple[Location, Present[LivePolicy]], None]:
        """The policy of an object, unless it grants nothing."""
        target, project = target_in(list_scope)
        if target.bucket:
            self.bucket_projects[target.bucket] = project
        document = await self.policies.read(target)
        if document is not None and document.grants:
            live = LivePolicy(target.kind, target.name, bindings_of(document.grants))
            yield target.location(), Present(live, digest(to_builtins(live)), document.etag, whole=dict(document.body))

    def identity_at(self, location: Location) -> LiveIdentity:
        """The inverse of `locate`."""
        target, _ = target_at(location)
        return identity_of(target, self.bucket_projects.get(target.bucket, ""))


def _declared(resource: Resource) -> DeclaredPolicy:
    spec = decode_spec(resource, PolicySpec)
    grants = frozenset(
        Grant(binding.role, normal_member(member), grant_condition(binding.condition))
        for binding in spec.bindings or ()
        for member in binding.members or ()
    )
    audit = None if spec.auditConfigs is None or not isinstance(spec.auditConfigs, list) else spec.auditConfigs
    recorded = resource.status.get(LAST_APPLIED)
    before = grants_in(one for one in (recorded if isinstance(recorded, list) else ()) if isinstance(one, Mapping))
    return DeclaredPolicy(grants, None if audit is None else _ordered([to_builtins(one) for one in audit]), before)


def _ordered(configs: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON
    """Audit configs in their one order: by service, then by the sort of access, then by member."""
    return [
        {
            "service": one.get("service", ""),
            _LOGS: sorted(map(_ordered_log, one.get(_LOGS) or ()), key=lambda log: str(log["logType"])),
        }
        for one in sorted(configs, key=lambda one: str(one.get("service")))
    ]


_LOGS: Final = "auditLogConfigs"
_EXEMPTED: Final = "exemptedMembers"


def _ordered_log(log: Mapping[str, Any]) -> dict[str, Json]:
    exempted: list[Json] = [*sorted(set(map(normal_member, log.get(_EXEMPTED) or ())))]
    return {"logType": log.get("logType", ""), **({_EXEMPTED: exempted} if exempted else {})}


def _tree(target: PolicyTarget, bindings: list[dict[str, Any]], audit: list[dict[str, Any]] | None) -> JsonObject:
    shown = [
        {**one, "condition": {"title": "", "expression": "", **one["condition"]}} if "condition" in one else one
        for one in bindings
    ]
    spec: dict[str, Any] = {"resourceRef": shown_target(target), "bindings": shown}
    return {"spec": spec if audit is None else {**spec, _AUDIT: audit}}

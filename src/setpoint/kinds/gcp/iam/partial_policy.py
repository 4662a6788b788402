"""IAMPartialPolicy: some grants in the policy of an object. It owns what it declares, and what it declared before.

What it declared before is on record in the status. What another writer granted is left alone; a grant that was there
already, and is declared here, is adopted.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, ClassVar, Final

from msgspec import Struct

from setpoint.core.plan import PlannedWrite
from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.paths import Path
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
from setpoint.engine.state import StoredState, location_in
from setpoint.kind.typed_spec import decode_spec
from setpoint.kinds.gcp.iam.grants import Grant, bindings_of, changed_policy, grants_in
from setpoint.kinds.gcp.iam.members import check_binding, check_source, direct_member, grant_condition, member_text
from setpoint.kinds.gcp.iam.policies import PolicyDocument
from setpoint.kinds.gcp.iam.policy_kind import PolicyPartKind, shown_target
from setpoint.kinds.gcp.iam.spec import PartialPolicySpec, PartialPolicyStatus, PartialPolicyTree
from setpoint.kinds.gcp.iam.targets import PolicyTarget, target_at
from setpoint.kinds.gcp.shared.config_connector import definition_for

_DEFINITION: Final = replace(
    definition_for("IAMPartialPolicy", PartialPolicyStatus, "Some bindings of the IAM policy of an object."),
    plural="iampartialpolicies",
)
_BINDINGS: Final = Path(("spec", "bindings"))
# The output that has the grants of the resource, as Config Connector calls it.
LAST_APPLIED: Final = "lastAppliedBindings"
_NONE: Final[frozenset[Grant]] = frozenset()


class LiveBindings(Struct, frozen=True):
    """Grants of a resource that are in a live policy, as bindings in their one order."""

    kind: str
    name: str
    bindings: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class OwnedGrants:
    """The grants that a resource declares, and those that it declared before."""

    declared: frozenset[Grant] = _NONE
    before: frozenset[Grant] = _NONE
    is_deleting: bool = False

    @property
    def all(self) -> frozenset[Grant]:
        """Every grant that is the resource's own."""
        return self.declared | self.before


@dataclass(slots=True)
class PartialPolicyKind(PolicyPartKind):
    """The kind IAMPartialPolicy."""

    name: str = "IAMPartialPolicy"
    reconciliation: Reconciliation = Reconciliation.STATELESS
    live_type: type[LiveBindings] = LiveBindings
    tree_type: type[Struct] = PartialPolicyTree
    definition: CrdDetails = _DEFINITION
    spec_type: ClassVar = PartialPolicySpec
    # By location, of what was located, or is about to be deleted: an observation shows these grants.
    owned: dict[Location, OwnedGrants] = field(default_factory=dict)

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that is invalid whatever the live state."""
        PolicyPartKind.check(self, resource)
        for place, binding in enumerate(decode_spec(resource, PartialPolicySpec).bindings or ()):
            at = _BINDINGS / place
            members = [(at / "members" / position, one) for position, one in enumerate(binding.members or ())]
            check_binding(binding.role, ((where, one.member) for where, one in members if one.member), at, resource)
            for where, one in members:
                check_source(one, where, resource)

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`projects/p/topics/t/iamPolicy/PubSubTopic partial namespace/name`."""
        name = f"partial {resource.ref.namespace}/{resource.ref.name}"
        location = self.target(resource, resolved).location(name)
        before = _recorded(resource)
        self.owned[location] = OwnedGrants(_declared(resource, resolved), before)
        recorded = location_in(resource.status)
        if recorded is not None and recorded != location:
            self.owned[recorded] = OwnedGrants(before=before, is_deleting=True)
        return location

    def prepare_deletion(self, resource: Resource, location: Location) -> None:
        """See SupportsDeletionPreparation: what is on record is deleted.

        A creation may have been interrupted before it was on record. It began when none of its grants was there.
        """
        begun = StoredState.of(resource).creating is not None
        self.owned[location] = OwnedGrants(
            before=_recorded(resource) | (_direct(resource) if begun else _NONE), is_deleting=True
        )

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The bindings in their one order, each member as text."""
        target, declared = self.target(resource, resolved), _declared(resource, resolved)
        return _tree(target, bindings_of(declared))

    def view(self, live: LiveBindings) -> JsonObject:
        """The live bindings in the terms of the spec."""
        return _tree(PolicyTarget(live.kind, live.name), live.bindings)

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveBindings] | Unchanged:
        """Looks for the grants of the resource in the policy."""
        target, _ = target_at(location)
        document = await self.policies.read(target)
        if document is None:
            return Absent()
        found = self._present(location, document)
        return Unchanged() if isinstance(found, Present) and found.body == known else found

    def _present(self, location: Location, document: PolicyDocument) -> Absent | Present[LiveBindings]:
        target, _ = target_at(location)
        owned = self._owned(location)
        there = owned.all & document.grants
        # A resource that declares nothing is as declared when nothing of it is there.
        if not there and (owned.declared or owned.is_deleting):
            return Absent()
        live = LiveBindings(target.kind, target.name, bindings_of(there))
        outputs: JsonObject = {LAST_APPLIED: live.bindings, "allBindings": bindings_of(document.grants)}
        return Present(live, digest(live), document.etag, outputs, whole=dict(document.body))

    def _owned(self, location: Location) -> OwnedGrants:
        return self.owned.get(location) or OwnedGrants(is_deleting=True)

    def outputs_before_write(self, location: Location) -> JsonObject:
        """See SupportsWriteRecord: the grants that are, or are going to be, the resource's own."""
        return {LAST_APPLIED: bindings_of(self._owned(location).all)}

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """Adds the grants."""
        target, _ = target_at(intent.location)
        await self._change(intent.location, wanted, await self.policies.require(target))

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveBindings]
    ) -> None:
        """Adds what is missing, and removes what was declared before and is no more."""
        assert isinstance(before.whole, Mapping)
        await self._change(intent.location, wanted, before.whole)

    async def _change(self, location: Location, wanted: JsonObject, before: Mapping[str, Any]) -> None:
        target, _ = target_at(location)
        spec: Any = wanted["spec"]
        add = grants_in(_as_policy(spec.get("bindings") or ()))
        await self.policies.replace(target, changed_policy(before, add, self._owned(location).all))

    async def delete(self, location: Location, before: Present[LiveBindings], resource: Resource) -> None:
        """Removes the grants of the resource."""
        target, _ = target_at(location)
        assert isinstance(before.whole, Mapping)
        await self.policies.replace(target, changed_policy(before.whole, (), self._owned(location).all))


def _declared(resource: Resource, resolved: ResolvedReferences) -> frozenset[Grant]:
    spec = decode_spec(resource, PartialPolicySpec)
    return frozenset(
        Grant(
            binding.role,
            member_text(member, _BINDINGS / place / "members" / position, resolved),
            grant_condition(binding.condition),
        )
        for place, binding in enumerate(spec.bindings or ())
        for position, member in enumerate(binding.members or ())
    )


def _direct(resource: Resource) -> frozenset[Grant]:
    """The declared grants whose members take no other resource: at a deletion those may be gone."""
    spec = decode_spec(resource, PartialPolicySpec)
    return frozenset(
        Grant(binding.role, found, grant_condition(binding.condition))
        for binding in spec.bindings or ()
        for member in binding.members or ()
        if (found := direct_member(member)) is not None
    )


def _recorded(resource: Resource) -> frozenset[Grant]:
    """What the status says that the resource has in the policy."""
    found = resource.status.get(LAST_APPLIED)
    return grants_in(one for one in (found if isinstance(found, list) else ()) if isinstance(one, Mapping))


def _tree(target: PolicyTarget, bindings: list[dict[str, Any]]) -> JsonObject:
    shown = [
        {
            **one,
            "members": [{"member": member} for member in one["members"]],
            **({"condition": {"title": "", "expression": "", **one["condition"]}} if "condition" in one else {}),
        }
        for one in bindings
    ]
    return {"spec": {"resourceRef": shown_target(target), "bindings": shown}}


def _as_policy(bindings: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON
    return [{**one, "members": [member["member"] for member in one.get("members") or ()]} for one in bindings]

"""IAMPolicyMember: one grant in the policy of an object. What else the policy grants is left alone."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct

from setpoint.core.plan import PlannedWrite
from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.capabilities import ListScope
from setpoint.engine.kind import (
    Absent,
    CrdDetails,
    Intent,
    LiveObservation,
    Location,
    Present,
    Reconciliation,
    RemoteOperation,
    ResolvedReferences,
    Unchanged,
)
from setpoint.engine.resource import Resource
from setpoint.errors import Bug, RemoteUnavailable
from setpoint.kind.typed_spec import decode_spec
from setpoint.kinds.gcp.iam.grants import Grant, GrantCondition
from setpoint.kinds.gcp.iam.members import grant_of
from setpoint.kinds.gcp.iam.policies import GrantChange, PolicyDocument
from setpoint.kinds.gcp.iam.policy_kind import PolicyPartKind, shown_target
from setpoint.kinds.gcp.iam.spec import PolicyMemberSpec, PolicyMemberStatus, PolicyMemberTree
from setpoint.kinds.gcp.iam.targets import PolicyTarget, target_at
from setpoint.kinds.gcp.shared.config_connector import definition_for

_DEFINITION: Final = definition_for(
    "IAMPolicyMember", PolicyMemberStatus, "A member with a role in the IAM policy of an object."
)


class LiveGrant(Struct, frozen=True):
    """A grant in a live policy."""

    kind: str
    name: str
    role: str
    member: str
    condition: dict[str, str] | None = None


class _ListedGrant(Struct, frozen=True, array_like=True):
    role: str
    member: str
    condition: list[str] | None


_item_decoder: Final = msgspec.json.Decoder(_ListedGrant)


@dataclass(slots=True)
class PolicyMemberKind(PolicyPartKind):
    """The kind IAMPolicyMember."""

    name: str = "IAMPolicyMember"
    reconciliation: Reconciliation = Reconciliation.STATEFUL
    live_type: type[LiveGrant] = LiveGrant
    tree_type: type[Struct] = PolicyMemberTree
    definition: CrdDetails = _DEFINITION
    spec_type: ClassVar = PolicyMemberSpec

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`projects/p/topics/t/iamPolicy/PubSubTopic roles/r user:u`, and the digest of the condition, if any."""
        grant = grant_of(decode_spec(resource, PolicyMemberSpec), resolved)
        return _location(self.target(resource, resolved), grant)

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The grant, with the member in the form that IAM shows."""
        grant = grant_of(decode_spec(resource, PolicyMemberSpec), resolved)
        return _tree(self.target(resource, resolved), grant)

    def view(self, live: LiveGrant) -> JsonObject:
        """The live grant in the terms of the spec."""
        condition = GrantCondition.of(live.condition)
        return _tree(PolicyTarget(live.kind, live.name), Grant(live.role, live.member, condition))

    # --- The grant ----------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveGrant] | Unchanged:
        """Looks for the grant in the policy."""
        target, _ = target_at(location)
        document = await self.policies.read(target)
        found = None if document is None else _found(location, document)
        if found is None:
            return Absent()
        return Unchanged() if found.body == known else found

    async def observe_many(self, locations: Sequence[Location]) -> Mapping[Location, LiveObservation]:
        """See SupportsBulkObserve: each policy is read once."""
        found = await asyncio.gather(*(self.observe(location) for location in locations))
        return {at: one for at, one in zip(locations, found, strict=True) if not isinstance(one, Unchanged)}

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        """Adds the grant."""
        target, _ = target_at(intent.location)
        answer = await self.policies.change(target, GrantChange(add=(_grant(wanted),)))
        return RemoteOperation(answer) if isinstance(answer, str) else None

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveGrant]
    ) -> RemoteOperation | None:
        """Never called: every field says which grant it is."""
        raise Bug(f"{intent.location} cannot be updated")

    async def delete(
        self, location: Location, before: Present[LiveGrant], resource: Resource
    ) -> RemoteOperation | None:
        """Removes the grant."""
        live = before.live
        grant = Grant(live.role, live.member, GrantCondition.of(live.condition))
        answer = await self.policies.change(PolicyTarget(live.kind, live.name), GrantChange(remove=(grant,)))
        return RemoteOperation(answer) if isinstance(answer, str) else None

    # --- Lists --------------------------------------------------------------------------------------------------------

    def list_scope_of(self, location: Location) -> ListScope | None:
        """The policy."""
        target, _ = target_at(location)
        return ListScope(target.location())

    async def pages(self, list_scope: ListScope) -> AsyncGenerator[Sequence[bytes], None]:
        """The grants of the policy."""
        target, _ = target_at(Location(list_scope))
        document = await self.policies.read(target)
        if document is None:
            raise RemoteUnavailable(f"{target.name} has no policy: it does not exist")
        yield [msgspec.json.encode(grant) for grant in document.grants]

    def location_of(self, item: bytes, list_scope: ListScope) -> Location:
        """The location of a grant in the policy."""
        return _location(target_at(Location(list_scope))[0], _listed(item))

    def read_item(self, item: bytes, location: Location) -> Present[LiveGrant] | None:
        """The grant."""
        return _present(target_at(location)[0], _listed(item))


def _location(target: PolicyTarget, grant: Grant) -> Location:
    return target.location(" ".join(filter(None, (grant.role, grant.member, grant.condition_digest))))


def _tree(target: PolicyTarget, grant: Grant) -> JsonObject:
    spec: dict[str, Any] = {"resourceRef": shown_target(target), "role": grant.role, "member": grant.member}
    return {"spec": spec if grant.condition is None else {**spec, "condition": _whole(grant.condition)}}


def _whole(condition: GrantCondition) -> dict[str, str]:
    """The condition as a spec has it: with its required fields, even where another writer left one empty."""
    return {"title": "", "expression": "", **condition.body}


def _grant(tree: JsonObject) -> Grant:
    spec: Any = tree["spec"]
    return Grant(spec["role"], spec["member"], GrantCondition.of(spec.get("condition")))


def _found(location: Location, document: PolicyDocument) -> Present[LiveGrant] | None:
    target, part = target_at(location)
    role, member, condition = (*part.split(" "), "", "", "")[:3]
    found = document.by_name.get((role, member, condition))
    return None if found is None else _present(target, found)


def _present(target: PolicyTarget, grant: Grant) -> Present[LiveGrant]:
    condition = None if grant.condition is None else grant.condition.body
    live = LiveGrant(target.kind, target.name, grant.role, grant.member, condition)
    return Present(live, digest(live), whole=msgspec.to_builtins(live))


def _listed(item: bytes) -> Grant:
    found = _item_decoder.decode(item)
    return Grant(found.role, found.member, None if found.condition is None else GrantCondition(*found.condition))

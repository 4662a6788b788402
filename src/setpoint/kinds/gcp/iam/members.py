"""Members of a spec: as text, or the service account of another resource."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import structs

from setpoint.core.values.paths import Path, get_at
from setpoint.engine.kind import ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.errors import DependencyNotReady, ManifestInvalid, OutputMissing
from setpoint.kind.typed_spec import field_invalid
from setpoint.kinds.gcp.generic.placement import recorded_location
from setpoint.kinds.gcp.iam.grants import Grant, GrantCondition, normal_member
from setpoint.kinds.gcp.iam.spec import (
    MEMBER,
    ROLE,
    ConnectionReference,
    MemberReference,
    PartialPolicyMember,
    PolicyCondition,
    PolicyMemberSource,
    PolicyMemberSpec,
)

_SERVICE_ACCOUNT: Final = "serviceAccount:"
# The member of the status that has the account, by the field that refers to the resource.
_REPORTED: Final = {
    "logSinkRef": ("writerIdentity",),
    "serviceIdentityRef": ("email",),
    "sqlInstanceRef": ("serviceAccountEmailAddress",),
}


def grant_condition(condition: PolicyCondition | None | object) -> GrantCondition | None:
    """The condition of a binding in a spec."""
    if not isinstance(condition, PolicyCondition):
        return None
    return GrantCondition(condition.title, condition.description or "", condition.expression)


def grant_of(spec: PolicyMemberSpec, resolved: ResolvedReferences) -> Grant:
    """The grant that the spec of an IAMPolicyMember declares."""
    member = member_text(spec, Path(("spec",)), resolved)
    return Grant(spec.role, member, grant_condition(spec.condition))


def member_text(declared: PolicyMemberSpec | PartialPolicyMember, at: Path, resolved: ResolvedReferences) -> str:
    """The member as IAM shows it. DependencyNotReady while the resource that it comes from has no account."""
    if declared.member:
        return normal_member(declared.member)
    source = declared.memberFrom
    for name in structs.asdict(source) if isinstance(source, PolicyMemberSource) else ():
        ref = getattr(source, name)
        if isinstance(ref, MemberReference):
            return normal_member(_with_type(_account(name, ref, str(at / "memberFrom" / name), resolved)))
    # A store keeps what was written, valid or not.
    raise ManifestInvalid(f"{at} has no member: write member, or a reference in memberFrom", str(at))


def check_binding(role: str, members: Iterable[tuple[Path, str]], at: Path, resource: Resource) -> None:
    """ManifestInvalid for a role or a member that is none. An API server cannot afford to check lists of lists."""
    if not ROLE.allows(role):
        raise field_invalid(resource, str(at / "role"), f" is {role!r}: write {ROLE.advice}")
    for where, member in members:
        if not MEMBER.allows(member):
            raise field_invalid(resource, str(where), f" is {member!r}: write {MEMBER.advice}")


def check_source(declared: PartialPolicyMember, at: Path, resource: Resource) -> None:
    """ManifestInvalid for a member that is named in several ways, or in none."""
    source = declared.memberFrom
    given = structs.asdict(source).values() if isinstance(source, PolicyMemberSource) else ()
    references = sum(isinstance(one, MemberReference) for one in given)
    if bool(declared.member) == bool(isinstance(source, PolicyMemberSource)):
        raise field_invalid(resource, str(at), " needs member or memberFrom, and not both: write one of them")
    if not declared.member and references != 1:
        raise field_invalid(
            resource, str(at / "memberFrom"), " needs one reference, and not several: write one of them"
        )


def direct_member(declared: PartialPolicyMember) -> str | None:
    """The member, where that takes no other resource."""
    return normal_member(declared.member) if declared.member else None


def _with_type(account: str) -> str:
    return account if ":" in account else f"{_SERVICE_ACCOUNT}{account}"


def _account(name: str, ref: MemberReference, at: str, resolved: ResolvedReferences) -> str:
    target = resolved.resources.get(at)
    if target is None:
        return str(ref.external).rpartition("/")[2]
    if name == "serviceAccountRef":
        return recorded_location(target).rpartition("/")[2]
    if isinstance(ref, ConnectionReference):
        return _connection_account(target, ref.type or "")
    for path in ((*_REPORTED[name],), ("observedState", *_REPORTED[name])):
        found = get_at(target.document, Path(("status", *path)))
        if isinstance(found, str) and found:
            return found
    raise _without_account(target, f"status.{_REPORTED[name][0]}")


def _connection_account(target: Resource, sort: str) -> str:
    """The service account of a connection; of the type that is asked for, if any is."""
    for holder in (target.status, target.status.get("observedState")):
        for name, value in holder.items() if isinstance(holder, Mapping) else ():
            if isinstance(value, Mapping) and sort.lower() in ("", name.lower()):
                found: Any = value.get("serviceAccountID") or value.get("serviceAccountId")
                if isinstance(found, str):
                    return found
    raise _without_account(target, f"status.observedState.{sort or 'cloudResource'}.serviceAccountID")


def _without_account(target: Resource, where: str) -> DependencyNotReady:
    return OutputMissing(f"reference {target.ref} is not ready: it has no {where}", target.ref, where)

"""Specs and statuses of the kinds that live in a policy: type and mutability of each field."""

from typing import Annotated, ClassVar, Final, Literal

from msgspec import UNSET, Struct, UnsetType

from setpoint.core.schema.checks import Check, ExactlyOne, Given, NotEmpty
from setpoint.core.schema.constraints import Matches
from setpoint.core.schema.shape import Mark
from setpoint.kind.spec_references import RefersTo, ResourceReference
from setpoint.kind.typed_spec import NAMESPACE_NAME, OBJECT_NAME, Maybe, SpecStruct

GROUP: Final = "iam.cnrm.cloud.google.com"
VERSION: Final = "v1beta1"
MEMBER: Final = Matches(
    r"allUsers|allAuthenticatedUsers|(?:deleted:)?[A-Za-z]+:\S+",
    "a member with its type, such as user:jo@example.com or serviceAccount:app@project.iam.gserviceaccount.com",
    2048,
    or_empty=False,
)
ROLE: Final = Matches(
    r"(?:(?:projects|organizations)/[^/\s]+/)?roles/[A-Za-z0-9_.]+",
    "a role: roles/viewer, or projects/PROJECT/roles/NAME for one of your own",
    512,
    or_empty=False,
)


class PolicyTargetReference(SpecStruct, frozen=True):
    """The object whose policy it is: a resource by its name, or an object by its name in the service."""

    kind: str
    """The kind of the object, such as PubSubTopic, Project, Folder, Organization or BillingAccount."""
    apiVersion: Maybe[str] = UNSET
    """The group and version of that kind."""
    external: Maybe[str] = UNSET
    """The name in the service, of an object that is not a resource here."""
    name: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The name of the resource. A Project without name and external is that of the namespace."""
    namespace: Annotated[Maybe[str], NAMESPACE_NAME] = UNSET
    """The namespace of the resource; the same as here when left out."""

    __unit__: ClassVar = True


class MemberReference(ResourceReference, frozen=True):
    """A reference in a list of lists, where an API server could not afford to check rules: the kind checks them."""

    name: str | None | UnsetType = UNSET
    """The name of the resource."""
    namespace: str | None | UnsetType = UNSET
    """The namespace of the resource; the same as here when left out."""

    __checks__: ClassVar = ()  # type: ignore[assignment] # the base has a tuple of one


class ConnectionReference(MemberReference, frozen=True):
    """A connection of BigQuery, and which of its service accounts is meant."""

    type: str | None | UnsetType = UNSET
    """The type of the connection: cloudResource, cloudSQL or spark."""


class PolicyMemberSource(SpecStruct, frozen=True):
    """A resource whose service account is the member."""

    serviceAccountRef: Annotated[Maybe[MemberReference], RefersTo(GROUP, "IAMServiceAccount")] = UNSET
    """A service account."""
    logSinkRef: Annotated[Maybe[MemberReference], RefersTo("logging.cnrm.cloud.google.com", "LoggingLogSink")] = UNSET
    """A sink, whose writer is the member."""
    serviceIdentityRef: Annotated[
        Maybe[MemberReference], RefersTo("serviceusage.cnrm.cloud.google.com", "ServiceIdentity")
    ] = UNSET
    """The service account of a service in a project."""
    sqlInstanceRef: Annotated[Maybe[MemberReference], RefersTo("sql.cnrm.cloud.google.com", "SQLInstance")] = UNSET
    """An instance of Cloud SQL."""
    bigQueryConnectionConnectionRef: Annotated[
        Maybe[ConnectionReference], RefersTo("bigqueryconnection.cnrm.cloud.google.com", "BigQueryConnectionConnection")
    ] = UNSET
    """A connection of BigQuery."""


class PolicyCondition(SpecStruct, frozen=True):
    """When a binding holds. Another condition makes it another binding."""

    expression: str
    """The condition in the Common Expression Language."""
    title: str
    """What the condition is called."""
    description: Maybe[str] = UNSET
    """What the condition is for."""

    __unit__: ClassVar = True
    __checks__: ClassVar = (
        Check(NotEmpty("expression"), "write the condition", "expression"),
        Check(NotEmpty("title"), "write what the condition is called", "title"),
    )


ONE_MEMBER: Final = Check(
    ExactlyOne(NotEmpty("member"), Given("memberFrom")), "write member or memberFrom, and not both"
)


# --- IAMPolicyMember --------------------------------------------------------------------------------------------------


class PolicyMemberSpec(SpecStruct, frozen=True):
    """The spec of an IAMPolicyMember. All of it says which grant it is: nothing of it can change."""

    resourceRef: Annotated[PolicyTargetReference, Mark.IMMUTABLE]
    """The object whose policy gets the member."""
    role: Annotated[str, ROLE, Mark.IMMUTABLE]
    """The role that the member gets."""
    member: Annotated[Maybe[str], MEMBER, Mark.IMMUTABLE] = UNSET
    """The member."""
    memberFrom: Annotated[Maybe[PolicyMemberSource], Mark.IMMUTABLE] = UNSET
    """A resource whose service account is the member."""
    condition: Annotated[Maybe[PolicyCondition], Mark.IMMUTABLE] = UNSET
    """When the grant holds."""

    __checks__: ClassVar = (ONE_MEMBER,)


class PolicyMemberTree(Struct, frozen=True):
    """The compared tree."""

    spec: PolicyMemberSpec


class PolicyMemberStatus(Struct, frozen=True):
    """The status: nothing beside the spec."""


# --- IAMPartialPolicy -------------------------------------------------------------------------------------------------


class PartialPolicyMember(SpecStruct, frozen=True):
    """A member of a binding."""

    member: Maybe[str] = UNSET
    """The member."""
    memberFrom: Maybe[PolicyMemberSource] = UNSET
    """A resource whose service account is the member."""


class PartialPolicyBinding(SpecStruct, frozen=True):
    """Members that get a role."""

    role: str
    """The role that the members get."""
    members: Maybe[list[PartialPolicyMember]] = UNSET
    """The members."""
    condition: Maybe[PolicyCondition] = UNSET
    """When the binding holds."""


class PartialPolicySpec(SpecStruct, frozen=True):
    """The spec of an IAMPartialPolicy: some bindings of a policy. Others in it are left alone."""

    resourceRef: Annotated[PolicyTargetReference, Mark.IMMUTABLE]
    """The object whose policy gets the bindings."""
    bindings: Maybe[list[PartialPolicyBinding]] = UNSET
    """The bindings. What is taken out of here is taken out of the policy."""


class PartialPolicyTree(Struct, frozen=True):
    """The compared tree."""

    spec: PartialPolicySpec


class ReportedBinding(Struct, frozen=True):
    """A binding of the live policy."""

    role: str = ""
    """The role."""
    members: list[str] = []
    """The members that have it."""
    condition: dict[str, str] | UnsetType = UNSET
    """When it holds."""


class PartialPolicyStatus(Struct, frozen=True):
    """The status: the bindings that are this resource's own, and all of the policy."""

    lastAppliedBindings: list[ReportedBinding] | UnsetType = UNSET
    """The bindings in the policy that are or were declared here: these are removed when they are declared no more."""
    allBindings: list[ReportedBinding] | UnsetType = UNSET
    """All bindings of the policy."""


# --- IAMPolicy --------------------------------------------------------------------------------------------------------


class PolicyBinding(SpecStruct, frozen=True):
    """Members that get a role."""

    role: str
    """The role that the members get."""
    members: Maybe[list[str]] = UNSET
    """The members, each with its type: `user:jo@example.com`."""
    condition: Maybe[PolicyCondition] = UNSET
    """When the binding holds."""


class AuditLogConfig(SpecStruct, frozen=True):
    """A sort of access that is logged."""

    logType: Literal["ADMIN_READ", "DATA_READ", "DATA_WRITE"]
    """The sort of access."""
    exemptedMembers: Maybe[list[str]] = UNSET
    """Members whose access is not logged."""


class AuditConfig(SpecStruct, frozen=True):
    """Which access to a service is logged."""

    service: str
    """The service, such as storage.googleapis.com; allServices for all."""
    auditLogConfigs: list[AuditLogConfig]
    """The sorts of access that are logged."""


class PolicySpec(SpecStruct, frozen=True):
    """The spec of an IAMPolicy: all of the policy. Members that are not declared here lose their roles."""

    resourceRef: Annotated[PolicyTargetReference, Mark.IMMUTABLE]
    """The object whose policy it is."""
    bindings: Maybe[list[PolicyBinding]] = UNSET
    """All bindings of the policy."""
    auditConfigs: Maybe[list[AuditConfig]] = UNSET
    """Which access is logged; left out, it stays as it is."""


class PolicyTree(Struct, frozen=True):
    """The compared tree."""

    spec: PolicySpec


class PolicyStatus(Struct, frozen=True):
    """The status: the bindings that are this resource's own."""

    lastAppliedBindings: list[ReportedBinding] | UnsetType = UNSET
    """The bindings in the policy that are or were declared here: these are removed when the resource is deleted."""

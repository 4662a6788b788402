"""The surface for authors of kinds and owners: stable names, each loaded when it is first used.

A kind derives from `BaseKind`, with the type of its spec and of its live object; an owner from `BaseOwner`, with the
type of its spec. The entry point of their package, in the group `setpoint.kinds`, makes them known.
Imported by plug-ins and by our own kinds; imports the engine and clients.
"""

# Spelled out instead of imported: `typing` alone would double the time to start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from setpoint.clients.ratelimit.token_bucket import AimdSettings
    from setpoint.core.merge.children import Child, ChildUpdatePolicy, FieldsView
    from setpoint.core.merge.threeway import EntryList, EntryMap, WholeValue
    from setpoint.core.overlay import Declared, EffectiveState, effective_state
    from setpoint.core.owner_references import owner_reference
    from setpoint.core.plan import Action, PlannedWrite, PlanOptions, WriteStage
    from setpoint.core.schema.checks import AnyOf, Check, ExactlyOne, Given, InOrder, Is, Not, NotEmpty, Sized
    from setpoint.core.schema.constraints import Between, IsDuration, IsTrue, Matches, NoneOf, OneOf
    from setpoint.core.schema.policy import FieldPolicy
    from setpoint.core.schema.shape import Default, Keyed, Mark
    from setpoint.core.values.json_types import MISSING, Int64, Json, JsonObject, Missing
    from setpoint.core.values.paths import Path
    from setpoint.core.wait.wait_for import WaitFor, parse_wait
    from setpoint.engine.capabilities import (
        GeneratedSecret,
        ImportPlace,
        KnownObject,
        ListScope,
        LiveIdentity,
        SupportsAliases,
        SupportsBulkObserve,
        SupportsCreationCheck,
        SupportsDeletionPreparation,
        SupportsDeletionProtection,
        SupportsDryRun,
        SupportsFormerRevisions,
        SupportsGeneratedSecret,
        SupportsImport,
        SupportsList,
        SupportsReplace,
        SupportsUpdateCheck,
        SupportsWait,
        SupportsWatch,
        WatchTopic,
    )
    from setpoint.engine.claims.object_claims import ClaimKey, SupportsClaimKeys
    from setpoint.engine.conditions import UP_TO_DATE, ReadyCondition
    from setpoint.engine.contention.operation_queue import OperationScope
    from setpoint.engine.kind import (
        Absent,
        CrdDetails,
        Dependency,
        Intent,
        Kind,
        Location,
        Present,
        Reconciliation,
        Reference,
        RemoteOperation,
        ResolvedReferences,
        SecretKeyReference,
        Unchanged,
        ValueReference,
        Written,
        match_location,
    )
    from setpoint.engine.owner import GeneratedChildren, ObjectKind, Owner, OwnerStatus
    from setpoint.engine.resource import Resource, ResourceRef
    from setpoint.engine.tenancy.tenants import SupportsTenants, Tenant
    from setpoint.errors import (
        AlreadyExists,
        DependencyInvalid,
        DependencyNotFound,
        DependencyNotReady,
        ManagementConflict,
        ManifestInvalid,
        NotReady,
        OperationRunning,
        RemoteConflict,
        RemoteError,
        RemoteInvalid,
        RemoteRefused,
        RemoteUnavailable,
        SetpointError,
        UserError,
        WriteBlocked,
    )
    from setpoint.kind.base_kind import BaseKind, Observation
    from setpoint.kind.base_owner import BaseOwner
    from setpoint.kind.json_service import FromEnvironment, FromSecret, JsonService, ServiceToken
    from setpoint.kind.kind_context import KindContext
    from setpoint.kind.spec_references import (
        RefersTo,
        ResourceReference,
        SecretSource,
        SecretValue,
        object_name,
        referenced_name,
    )
    from setpoint.kind.typed_spec import Maybe, SecretKeyRef, SpecStruct, ValueFrom, decode_spec, field_invalid

# The names by the module that has them.
_HOMES = {
    "clients.ratelimit.token_bucket": "AimdSettings",
    "core.merge.children": "Child ChildUpdatePolicy FieldsView",
    "core.merge.threeway": "EntryList EntryMap WholeValue",
    "core.overlay": "Declared EffectiveState effective_state",
    "core.owner_references": "owner_reference",
    "core.plan": "Action PlanOptions PlannedWrite WriteStage",
    "core.schema.checks": "AnyOf Check ExactlyOne Given InOrder Is Not NotEmpty Sized",
    "core.schema.constraints": "Between IsDuration IsTrue Matches NoneOf OneOf",
    "core.schema.policy": "FieldPolicy",
    "core.schema.shape": "Default Keyed Mark",
    "core.values.json_types": "MISSING Int64 Json JsonObject Missing",
    "core.values.paths": "Path",
    "core.wait.wait_for": "WaitFor parse_wait",
    "engine.capabilities": (
        "GeneratedSecret ImportPlace KnownObject ListScope LiveIdentity "
        "SupportsAliases SupportsBulkObserve SupportsCreationCheck "
        "SupportsDeletionPreparation SupportsDeletionProtection SupportsDryRun SupportsFormerRevisions "
        "SupportsGeneratedSecret SupportsImport SupportsList SupportsReplace SupportsUpdateCheck SupportsWait "
        "SupportsWatch WatchTopic"
    ),
    "engine.claims.object_claims": "ClaimKey SupportsClaimKeys",
    "engine.conditions": "UP_TO_DATE ReadyCondition",
    "engine.contention.operation_queue": "OperationScope",
    "engine.kind": (
        "Absent CrdDetails Dependency Intent Kind Location Present Reconciliation Reference RemoteOperation "
        "ResolvedReferences SecretKeyReference Unchanged ValueReference Written match_location"
    ),
    "engine.owner": "GeneratedChildren ObjectKind Owner OwnerStatus",
    "engine.resource": "Resource ResourceRef",
    "engine.tenancy.tenants": "SupportsTenants Tenant",
    "errors": (
        "AlreadyExists DependencyInvalid DependencyNotFound DependencyNotReady ManagementConflict "
        "ManifestInvalid NotReady OperationRunning RemoteConflict RemoteError RemoteInvalid RemoteRefused "
        "RemoteUnavailable SetpointError UserError WriteBlocked"
    ),
    "kind.base_kind": "BaseKind Observation",
    "kind.base_owner": "BaseOwner",
    "kind.json_service": "FromEnvironment FromSecret JsonService ServiceToken",
    "kind.kind_context": "KindContext",
    "kind.spec_references": "RefersTo ResourceReference SecretSource SecretValue object_name referenced_name",
    "kind.typed_spec": "Maybe SecretKeyRef SpecStruct ValueFrom decode_spec field_invalid",
}

__all__ = (  # the names above, spelled out for those who read
    "MISSING",
    "UP_TO_DATE",
    "Absent",
    "Action",
    "AimdSettings",
    "AlreadyExists",
    "AnyOf",
    "BaseKind",
    "BaseOwner",
    "Between",
    "Check",
    "Child",
    "ChildUpdatePolicy",
    "ClaimKey",
    "CrdDetails",
    "Declared",
    "Default",
    "Dependency",
    "DependencyInvalid",
    "DependencyNotFound",
    "DependencyNotReady",
    "EffectiveState",
    "EntryList",
    "EntryMap",
    "ExactlyOne",
    "FieldPolicy",
    "FieldsView",
    "FromEnvironment",
    "FromSecret",
    "GeneratedChildren",
    "GeneratedSecret",
    "Given",
    "ImportPlace",
    "InOrder",
    "Int64",
    "Intent",
    "Is",
    "IsDuration",
    "IsTrue",
    "Json",
    "JsonObject",
    "JsonService",
    "Keyed",
    "Kind",
    "KindContext",
    "KnownObject",
    "ListScope",
    "LiveIdentity",
    "Location",
    "ManagementConflict",
    "ManifestInvalid",
    "Mark",
    "Matches",
    "Maybe",
    "Missing",
    "NoneOf",
    "Not",
    "NotEmpty",
    "NotReady",
    "ObjectKind",
    "Observation",
    "OneOf",
    "OperationRunning",
    "OperationScope",
    "Owner",
    "OwnerStatus",
    "Path",
    "PlanOptions",
    "PlannedWrite",
    "Present",
    "ReadyCondition",
    "Reconciliation",
    "Reference",
    "RefersTo",
    "RemoteConflict",
    "RemoteError",
    "RemoteInvalid",
    "RemoteOperation",
    "RemoteRefused",
    "RemoteUnavailable",
    "ResolvedReferences",
    "Resource",
    "ResourceRef",
    "ResourceReference",
    "SecretKeyRef",
    "SecretKeyReference",
    "SecretSource",
    "SecretValue",
    "ServiceToken",
    "SetpointError",
    "Sized",
    "SpecStruct",
    "SupportsAliases",
    "SupportsBulkObserve",
    "SupportsClaimKeys",
    "SupportsCreationCheck",
    "SupportsDeletionPreparation",
    "SupportsDeletionProtection",
    "SupportsDryRun",
    "SupportsFormerRevisions",
    "SupportsGeneratedSecret",
    "SupportsImport",
    "SupportsList",
    "SupportsReplace",
    "SupportsTenants",
    "SupportsUpdateCheck",
    "SupportsWait",
    "SupportsWatch",
    "Tenant",
    "Unchanged",
    "UserError",
    "ValueFrom",
    "ValueReference",
    "WaitFor",
    "WatchTopic",
    "WholeValue",
    "WriteBlocked",
    "WriteStage",
    "Written",
    "decode_spec",
    "effective_state",
    "field_invalid",
    "match_location",
    "object_name",
    "owner_reference",
    "parse_wait",
    "referenced_name",
)


def __getattr__(name: str) -> object:
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"setpoint.kind has no {name!r}: see dir(setpoint.kind)")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"setpoint.{home}"), name)
    return found


def __dir__() -> tuple[str, ...]:
    return tuple(sorted(__all__))

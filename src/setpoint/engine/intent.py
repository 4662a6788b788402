"""The intent: the spec and everything else that changes its meaning, and the digest that stands for all of it."""

from typing import Final

from setpoint.core.canonical import digest
from setpoint.core.diff import redact
from setpoint.core.overlay import Declared
from setpoint.core.policy import DEFAULT_TO_GCP, IGNORE_UNSPECIFIED, UNMANAGED, FieldPolicy
from setpoint.core.shape import Field, shape_of
from setpoint.core.values import Json
from setpoint.engine.cadence import mean_seconds
from setpoint.engine.kind import AnyKind, Intent, Resolved
from setpoint.engine.ports import Store
from setpoint.engine.references import resolve_needs
from setpoint.engine.resource import Resource
from setpoint.engine.scene import management_of

_POLICIES: Final = (UNMANAGED, DEFAULT_TO_GCP, IGNORE_UNSPECIFIED)


def check_manifest(resource: Resource, kind: AnyKind) -> None:
    """ManifestInvalid or UnknownField for what only its author can mend; the world is not asked."""
    FieldPolicy.parse(resource.annotations, shape_of(kind.tree_type))
    management_of(resource.annotations)
    mean_seconds(resource.annotations)
    kind.check(resource)


async def resolve(resource: Resource, kind: AnyKind, store: Store) -> Intent:
    """The intent of `resource` as it is now; what it refers to has to be there and ready."""
    resolved = await resolve_needs(kind.needs(resource), store)
    return intent_of(resource, kind, resolved)


def intent_of(resource: Resource, kind: AnyKind, resolved: Resolved) -> Intent:
    """The intent once its references are known."""
    location = kind.locate(resource, resolved)
    shape = shape_of(kind.tree_type)
    policy = FieldPolicy.parse(resource.annotations, shape)
    declared = Declared(kind.declare(resource, resolved), shape, policy)
    return Intent(resource, location, declared, resolved, _digest(declared, resource, kind, resolved))


def _digest(declared: Declared, resource: Resource, kind: AnyKind, resolved: Resolved) -> str:
    meaning = [key for key in (*_POLICIES, *kind.annotations) if key in resource.annotations]
    covered: dict[str, Json] = {
        "spec": resource.spec,
        # Labels and resolved references as the kind maps them; a secret counts by its version, never by its value.
        "declared": redact(declared.tree, Field(declared.shape)),
        "secrets": resolved.versions,
        "annotations": {key: resource.annotations[key] for key in meaning},
        "revision": kind.revision,
    }
    return digest(covered)

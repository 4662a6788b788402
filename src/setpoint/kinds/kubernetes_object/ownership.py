"""Who owns what of an object: its managedFields."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from setpoint.core.kubernetes import text_at
from setpoint.core.paths import Path, get_at
from setpoint.core.values import Json
from setpoint.engine.resource import ResourceRef
from setpoint.kinds.kubernetes_object.projection import NO_FIELDS, Fields, Projection, project, union

# Each KubernetesObject is a manager of its own: this, its namespace and its name.
PREFIX: Final = "setpoint/"
APPLY, UPDATE = "Apply", "Update"
_LONGEST: Final = 128
_MANAGED: Final = Path(("metadata", "managedFields"))


@dataclass(frozen=True, slots=True)
class Owner:
    """A manager, how it wrote, and what it owns."""

    manager: str
    operation: str
    fields: Fields
    subresource: str = ""

    @property
    def is_keeper(self) -> bool:
        """Whether it is a KubernetesObject."""
        return self.manager.startswith(PREFIX) and self.operation == APPLY and not self.subresource


def manager_of(ref: ResourceRef) -> str:
    """What a KubernetesObject is called as a manager; a name that would be too long ends in a digest of it."""
    name = f"{PREFIX}{ref.namespace}/{ref.name}"
    if len(name) <= _LONGEST:
        return name
    trace = sha256(name.encode()).hexdigest()[:16]
    return f"{name[: _LONGEST - len(trace) - 1]}~{trace}"


def owners_of(live: Json) -> tuple[Owner, ...]:
    """All of them."""
    found = get_at(live, _MANAGED)
    return tuple(_owners(found if isinstance(found, list) else ()))


def _owners(entries: list[Json] | tuple[()]) -> Iterator[Owner]:
    for entry in entries:
        fields = entry.get("fieldsV1") if isinstance(entry, dict) else None
        if isinstance(fields, dict):
            texts = (text_at(entry, name) for name in ("manager", "operation", "subresource"))
            manager, operation, subresource = texts
            yield Owner(manager, operation, fields, subresource)


def kept_fields(live: Json) -> Fields:
    """What KubernetesObjects own."""
    found = NO_FIELDS
    for owner in owners_of(live):
        if owner.is_keeper:
            found = union(found, owner.fields)
    return found


def fields_of(live: Json, manager: str) -> Fields | None:
    """What one of them owns; None when it has nothing to do with the object."""
    return next((one.fields for one in owners_of(live) if one.is_keeper and one.manager == manager), None)


def others_fields(live: Json) -> Fields:
    """What anybody else owns."""
    found = NO_FIELDS
    for owner in owners_of(live):
        if not owner.is_keeper:
            found = union(found, owner.fields)
    return found


def kept(live: Json) -> Projection:
    """What stands where KubernetesObjects own something."""
    return project(live, kept_fields(live), others_fields(live))

"""Owner references of Kubernetes objects: reading, comparing and adding the controller reference."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from setpoint.core.unstructured import group_kind, text_at
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path, get_at, set_at

_REFERENCES: Final = Path(("metadata", "ownerReferences"))


class Ownership(StrEnum):
    """Whose a live object is, as seen from one that would make it."""

    OURS = "ours"
    UNOWNED = "nobody's: it can be adopted"
    OTHER_OWNER = "another owner's: it is left alone"


class OwnerRef(NamedTuple):
    """An owner, by its kind and name; it is in the namespace of what it owns."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def owner_reference(owner: JsonObject) -> JsonObject:
    """The reference that makes an object go with `owner`, and not before it is gone."""
    return {
        "apiVersion": text_at(owner, "apiVersion"),
        "kind": text_at(owner, "kind"),
        "name": text_at(owner, "metadata", "name"),
        "uid": text_at(owner, "metadata", "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def ownership(live: JsonObject, owner: JsonObject) -> Ownership:
    """Whose `live` is: an object has one controller, and goes by its uid."""
    controller = _controller(live)
    if controller is None:
        return Ownership.UNOWNED
    return Ownership.OURS if controller.get("uid") == text_at(owner, "metadata", "uid") else Ownership.OTHER_OWNER


def controller_of(live: JsonObject) -> "OwnerRef | None":
    """Who has the say over `live`, if anybody has."""
    found = _controller(live)
    if found is None:
        return None
    group, kind = group_kind(found)
    return OwnerRef(group, kind, text_at(live, "metadata", "namespace"), text_at(found, "name"))


def with_owner_reference(live: JsonObject, owner: JsonObject) -> JsonObject:
    """`live` with `owner` as its controller beside whoever else is named; the very same when it is so already.

    Only for what is ours or nobody's.
    """
    wanted = owner_reference(owner)
    references = _references(live)
    if any(one == wanted for one in references):
        return live
    others: list[Json] = [one for one in references if one.get("uid") != wanted["uid"]]
    made = set_at(live, _REFERENCES, [*others, wanted])
    assert isinstance(made, Mapping)
    return made


def _controller(live: JsonObject) -> JsonObject | None:
    return next((one for one in _references(live) if one.get("controller") is True), None)


def _references(live: JsonObject) -> list[JsonObject]:
    found = get_at(live, _REFERENCES)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []

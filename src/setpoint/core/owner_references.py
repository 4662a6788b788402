"""Owner references of Kubernetes objects: reading, comparing and adding the controller reference."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from setpoint.core.unstructured import group_kind, text_at
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path, get_at, set_at

_REFERENCES: Final = Path(("metadata", "ownerReferences"))


class Ownership(StrEnum):
    """Who controls a live object, as seen from an owner that would create it."""

    OURS = "controlled by this owner"
    UNOWNED = "without a controller: it can be adopted"
    OTHER_OWNER = "controlled by another owner: it is left alone"


class OwnerRef(NamedTuple):
    """An owner by kind and name, in the namespace of the object that it owns."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def owner_reference(owner: JsonObject) -> JsonObject:
    """The controller reference to `owner`: the object is garbage-collected with it, and blocks its deletion."""
    return {
        "apiVersion": text_at(owner, "apiVersion"),
        "kind": text_at(owner, "kind"),
        "name": text_at(owner, "metadata", "name"),
        "uid": text_at(owner, "metadata", "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def ownership(live: JsonObject, owner: JsonObject) -> Ownership:
    """Who controls `live`: an object has at most one controller, identified by its uid."""
    controller = _controller(live)
    if controller is None:
        return Ownership.UNOWNED
    return Ownership.OURS if controller.get("uid") == text_at(owner, "metadata", "uid") else Ownership.OTHER_OWNER


def controller_of(live: JsonObject) -> OwnerRef | None:
    """The controller of `live`; None when it has none."""
    found = _controller(live)
    if found is None:
        return None
    group, kind = group_kind(found)
    return OwnerRef(group, kind, text_at(live, "metadata", "namespace"), text_at(found, "name"))


def with_owner_reference(live: JsonObject, owner: JsonObject) -> JsonObject:
    """`live` with `owner` as its controller, other references kept; `live` itself when nothing changes.

    Only for an object without another controller.
    """
    wanted = owner_reference(owner)
    references = _references(live)
    if any(one == wanted for one in references):
        return live
    others: list[Json] = [one for one in references if one.get("uid") != wanted["uid"]]
    changed = set_at(live, _REFERENCES, [*others, wanted])
    assert isinstance(changed, Mapping)
    return changed


def _controller(live: JsonObject) -> JsonObject | None:
    return next((one for one in _references(live) if one.get("controller") is True), None)


def _references(live: JsonObject) -> list[JsonObject]:
    found = get_at(live, _REFERENCES)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []

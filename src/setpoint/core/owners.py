"""Who owns an object that another one made: owner references, read and written."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from setpoint.core.kubernetes import group_and_kind, text_at
from setpoint.core.paths import Path, get_at, set_at
from setpoint.core.values import Json

Tree: TypeAlias = Mapping[str, Json]
_REFERENCES: Final = Path(("metadata", "ownerReferences"))


class Ownership(StrEnum):
    """Whose a live object is, as seen from one that would make it."""

    OURS = "ours"
    NOBODYS = "nobody's: it can be adopted"
    ANOTHERS = "another owner's: it is left alone"


class OwnerName(NamedTuple):
    """An owner, by its kind and name; it is in the namespace of what it owns."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def owner_reference(owner: Tree) -> Tree:
    """The reference that makes an object go with `owner`, and not before it is gone."""
    return {
        "apiVersion": text_at(owner, "apiVersion"),
        "kind": text_at(owner, "kind"),
        "name": text_at(owner, "metadata", "name"),
        "uid": text_at(owner, "metadata", "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def ownership(live: Tree, owner: Tree) -> Ownership:
    """Whose `live` is: an object has one controller, and goes by its uid."""
    controller = _controller(live)
    if controller is None:
        return Ownership.NOBODYS
    return Ownership.OURS if controller.get("uid") == text_at(owner, "metadata", "uid") else Ownership.ANOTHERS


def controller_of(live: Tree) -> "OwnerName | None":
    """Who has the say over `live`, if anybody has."""
    found = _controller(live)
    if found is None:
        return None
    group, kind = group_and_kind(found)
    return OwnerName(group, kind, text_at(live, "metadata", "namespace"), text_at(found, "name"))


def owned_by(live: Tree, owner: Tree) -> Tree:
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


def _controller(live: Tree) -> Tree | None:
    return next((one for one in _references(live) if one.get("controller") is True), None)


def _references(live: Tree) -> list[Tree]:
    found = get_at(live, _REFERENCES)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []

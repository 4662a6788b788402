"""Fields of other field managers that become ours: of client-side appliers, and of managers that are handed over.

A field that two managers own stays when one of them no longer declares it. So the managers that an author has stopped
using give their fields up, as with `kubectl apply --server-side` (csaupgrade in client-go): what they own is merged
into our entry of managedFields, by a patch of its own, before the apply. If the process ends in between, the object is
unchanged, and the next apply has the same result.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, Final, TypeAlias

from setpoint.core.redaction import LAST_APPLIED
from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path, get_at, set_at
from setpoint.kinds.kubernetes_object.managed_fields import (
    APPLY,
    NO_FIELDS,
    PREFIX,
    UPDATE,
    FieldSet,
    is_patch_manager,
    manager_fields,
    without_member,
)

CLIENT_SIDE_APPLY: Final = "kubectl-client-side-apply"
# What an object without managedFields had at its first apply: values of every writer, controllers and defaults too.
BEFORE_FIRST_APPLY: Final = "before-first-apply"
# The commands of kubectl, such as `kubectl-create` and `kubectl-edit`.
_KUBECTL: Final = "kubectl"
_MANAGED: Final = Path(("metadata", "managedFields"))
_SELF: Final = "."
# The path of a member of a field set.
_Member: TypeAlias = tuple[str, ...]
_LAST_APPLIED: Final[_Member] = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")


class _Share(Enum):
    """How much of an entry becomes ours."""

    WHOLE = "all of its fields"
    SHARED = "the fields that are ours as well"


@dataclass(frozen=True, slots=True)
class Takeover:
    """Who takes over: the field manager; and from which managers, by name, besides client-side appliers."""

    manager: str
    names: Collection[str] = ()

    def applied_to(self, live: Json) -> Json:
        """`live` with the managedFields after the takeover; `live` itself when there is nothing to take over.

        An object that this manager has never applied is adopted: client-side appliers give up all of their fields.
        Later they give up those that are ours as well. Other commands of kubectl, and `before-first-apply`, never give
        up more than these. A patch takes nothing over: the rest of the object belongs to the others.
        """
        if is_patch_manager(self.manager):
            return live
        found = get_at(live, _MANAGED)
        entries = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
        own = next((one for one in entries if self._is_own(one)), None)
        taken = [(one, share) for one in entries if (share := self._share(one, is_adopted=own is None)) is not None]
        parts = [(one, _taken(one, share, own)) for one, share in taken]
        parts = [(one, part) for one, part in parts if part]
        if not parts:
            return live
        rest = [one for one in entries if one is not own and all(one is not other for other, _ in parts)]
        left = [_with_members(one, _members(one["fieldsV1"]) - part) for one, part in parts]
        return set_at(live, _MANAGED, [self._own(own, parts), *rest, *(one for one in left if one["fieldsV1"])])

    def left_over(self, live: Json, after: Json) -> Json:
        """`after`, an apply of this manager to `live`, without the fields that no manager declares after the takeover.

        `live` has the managedFields after the takeover, and so has the result, with ours as in `after`.
        """
        ours = _members(manager_fields(live, self.manager) or NO_FIELDS)
        found = get_at(live, _MANAGED)
        others = [one for one in found if not self._is_own(one)] if isinstance(found, list) else []
        declared = _members(manager_fields(after, self.manager) or NO_FIELDS)
        kept = declared.union(*(_members(one["fieldsV1"]) for one in others if isinstance(one, dict)))
        without = _without_members(after, ours - kept, kept)
        entries = get_at(after, _MANAGED)
        own = [one for one in entries if self._is_own(one)] if isinstance(entries, list) else []
        return set_at(without, _MANAGED, [*own, *others])

    def _is_own(self, entry: Json) -> bool:
        return _identity(entry) == (self.manager, APPLY, "")

    def _share(self, entry: dict[str, Json], *, is_adopted: bool) -> _Share | None:
        manager, operation, subresource = _identity(entry)
        if subresource or manager.startswith(PREFIX) or not isinstance(entry.get("fieldsV1"), dict):
            return None
        if manager in self.names:
            return _Share.WHOLE
        if operation != UPDATE:
            return None
        if manager == CLIENT_SIDE_APPLY or _LAST_APPLIED in _members(entry["fieldsV1"]):
            return _Share.WHOLE if is_adopted and manager != BEFORE_FIRST_APPLY else _Share.SHARED
        return _Share.SHARED if manager == BEFORE_FIRST_APPLY or manager.startswith(_KUBECTL) else None

    def _own(self, own: dict[str, Json] | None, parts: Sequence[tuple[dict[str, Any], set[_Member]]]) -> Json:
        """Our entry. A new one has the version of the first entry that it takes over."""
        first = own or {**parts[0][0], "manager": self.manager, "operation": APPLY, "fieldsV1": {}}
        version = first.get("apiVersion")
        taken = [part for entry, part in parts if entry.get("apiVersion") == version]
        # Fields of other versions have other names: such an entry is dropped, and what only it declared stays as it is.
        return _with_members(first, _members(first["fieldsV1"]).union(*taken))


def _identity(entry: Json) -> tuple[str, str, str]:
    return text_at(entry, "manager"), text_at(entry, "operation"), text_at(entry, "subresource")


def _taken(entry: dict[str, Any], share: _Share, own: dict[str, Any] | None) -> set[_Member]:
    members = _members(entry["fieldsV1"])
    if share is _Share.WHOLE:
        return members
    is_comparable = own is not None and own.get("apiVersion") == entry.get("apiVersion")
    return members & _members(own["fieldsV1"]) if own is not None and is_comparable else set()


# --- Field sets as sets of members -----------------------------------------------------------------------------------


def _members(fields: object) -> set[_Member]:
    """The paths that a field set owns: `f:a` of `{"f:a": {}}`, and with it `f:a` of `{"f:a": {".": {}, "f:b": {}}}`."""
    return set(_walk(fields, ())) if isinstance(fields, dict) else set()


def _walk(fields: FieldSet, at: _Member) -> Iterator[_Member]:
    for step, below in fields.items():
        if step == _SELF:
            yield at
        elif below:
            yield from _walk(below, (*at, step))
        else:
            yield (*at, step)


def _with_members(entry: dict[str, Any], members: Iterable[_Member]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for member in members:
        here = tree
        for step in member:
            here = here.setdefault(step, {})
        here[_SELF] = {}
    return {**entry, "fieldsV1": _without_marks(tree)}


def _without_marks(tree: dict[str, Any]) -> dict[str, Any]:
    """Without the mark of a member that has no other member below it."""
    return {step: {} if below.keys() == {_SELF} else _without_marks(below) for step, below in tree.items()}


def _without_members(value: Json, gone: Iterable[_Member], kept: Iterable[_Member]) -> Json:
    """`value` without what is at `gone`, unless something of it is at or below a member of `kept`."""
    needed = {member[:depth] for member in kept for depth in range(len(member) + 1)}
    # Outer ones first: an item of a list is found by its key, which is a member as well.
    for member in sorted(gone, key=len):
        if member not in needed:
            value = without_member(value, member, needed)
    return value


def with_managers_of(other: Json, live: Json) -> Json:
    """`live` with the managedFields of another form of it."""
    managed = get_at(other, _MANAGED)
    return live if isinstance(managed, Missing) else set_at(live, _MANAGED, managed)


# --- The patches -----------------------------------------------------------------------------------------------------


def takeover_patch(taken: Json) -> Json:
    """The JSON patch that writes the managedFields of `taken`; a conflict if the object has changed since."""
    version = text_at(taken, "metadata", "resourceVersion")
    managed = get_at(taken, _MANAGED)
    assert not isinstance(managed, Missing)
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": managed},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
    ]


def content_patch(live: Json, wanted: Json) -> Json:
    """The JSON patch from the content of one object to that of another: no status, nothing that the server sets."""
    paths = {name for tree in (live, wanted) if isinstance(tree, dict) for name in tree} - _NO_CONTENT
    return [
        *_operations(live, wanted, [Path(("metadata", name)) for name in _METADATA]),
        *_operations(live, wanted, [Path((name,)) for name in sorted(paths)]),
    ]


_NO_CONTENT: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_METADATA: Final = ("annotations", "finalizers", "labels", "ownerReferences")


def _operations(live: Json, wanted: Json, paths: Iterable[Path]) -> Iterator[Json]:
    for path in paths:
        before, after = get_at(live, path), get_at(wanted, path)
        pointer = "".join(f"/{step}" for step in path.steps)
        if isinstance(after, Missing):
            if not isinstance(before, Missing):
                yield {"op": "remove", "path": pointer}
        elif isinstance(before, Missing) or not same(before, after):
            yield {"op": "add", "path": pointer, "value": after}

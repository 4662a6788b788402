"""The result of a server-side apply, dry run or real: the object, changed fields, conflicts with managers, immutable
fields."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from setpoint.clients.kubernetes.watched_objects import ObjectVersion, version_of
from setpoint.clients.response_bodies import UNDECODABLE, decode_tree
from setpoint.core.decide import Decision
from setpoint.core.diff import FieldChange, redact_changes, redacted_change
from setpoint.core.redaction import LAST_APPLIED_PATH
from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import same, sha256_hex
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.messages import FieldTerm, ManifestAdvice, Message, SettingTerm
from setpoint.core.values.paths import Path, PathStep, Selector, get_at
from setpoint.engine.kind import Present
from setpoint.errors import (
    HeldByOthers,
    ImmutableFieldChanged,
    ManifestInvalid,
    RemoteConflict,
    RemoteError,
    RemoteInvalid,
    RemoteRefused,
)
from setpoint.kinds.kubernetes_object.location import ObjectLocation
from setpoint.kinds.kubernetes_object.managed_fields import (
    PREFIX,
    UPDATE,
    FieldSet,
    Projection,
    foreign_fields,
    is_patch_manager,
    managed_fields_of,
    manager_fields,
    owners_at,
    project,
    setpoint_fields,
    setpoint_projection,
    union,
)
from setpoint.kinds.kubernetes_object.spec import LiveObject, live_object

# Messages of the API server about immutable fields; `Forbidden` alone is ambiguous.
_IMMUTABLE: Final = re.compile(
    r"immutable|updates? to \S.* (?:is|are) forbidden|may not change (?:once set|fields other than)"
    r"|cannot change roleRef",
    re.IGNORECASE,
)
# Members that no manager owns.
_IDENTITY: Final = frozenset({("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")})
# So many fields are listed in a message.
_MOST_FIELDS: Final = 20
_FORCE: Final = SettingTerm("spec.forceConflicts", "true")


def is_manual_change(error: HeldByOthers, live: Json, decision: Decision) -> bool:
    """Whether the conflict is drift: fields of ours that were changed by an Update, and that no other manager applies.

    A manager that applies declares a field, as setpoint does; an Update only changes it.
    """
    if decision is not Decision.DRIFTED:
        return False
    operations = {(owner.manager, owner.operation) for owner in managed_fields_of(live)}
    return bool(error.held) and all(
        {operation for name, operation in operations if name == manager} == {UPDATE} for _, manager in error.held
    )


def may_be_forced(live: Json, manager: str, decision: Decision) -> bool:
    """Whether each conflict of an apply would be a manual change: every other manager has only updated the object.

    Then a dry run without force, which shows the conflicts, is not needed.
    """
    others = (one for one in managed_fields_of(live) if one.manager != manager)
    return decision is Decision.DRIFTED and all(one.operation == UPDATE for one in others)


def takes_fields(live: Json, changes: Iterable[FieldChange], manager: str) -> bool:
    """Whether one of these changes is of a field that another manager owns: only a forced apply makes it."""
    return any(owner.manager != manager for one in changes for owner in owners_at(live, one.path))


def is_handed_over(error: HeldByOthers, names: Collection[str]) -> bool:
    """Whether every field of the conflict is held by a manager whose fields are taken over."""
    return bool(error.held) and all(manager in names for _, manager in error.held)


def conflict_error(
    error: HeldByOthers,
    location: ObjectLocation,
    ignored_fields: Sequence[Path] = (),
    taken_over: Collection[str] = (),
) -> RemoteError:
    """The conflict error: every field, its manager, and what to do. Fields that are `taken_over` are no conflict.

    RemoteConflict when only ignored fields conflict: another writer changed them in the same moment.
    """
    left = tuple(one for one in error.held if one[1] not in taken_over)
    fields = [parse_field_path(field) for field, _ in left]
    if fields and all(any(path.covers(field) for path in ignored_fields) for field in fields):
        return RemoteConflict(f"{location.title} was changed meanwhile: {error}")
    held = "; ".join(f"{field} is held by {manager}" for field, manager in left[:_MOST_FIELDS]) or str(error)
    message = Message(
        f"{location.title}: {held}. Set ",
        _FORCE,
        " to take it over, list it in ",
        FieldTerm("spec.ignoreFields"),
        " to leave it to its holder, or leave it out of the manifest",
    )
    return HeldByOthers(message, error.held)


def require_unclaimed(live: Json, manager: str, location: ObjectLocation) -> None:
    """RemoteRefused for an object that another KubernetesObject has applied, and this one never has.

    A patch owns fields and not the object: it claims none, and none stands in its way.
    """
    appliers = [owner.manager for owner in managed_fields_of(live) if owner.is_setpoint and not owner.is_patch]
    if manager in appliers or not appliers or is_patch_manager(manager):
        return
    owners = ", ".join(f"KubernetesObject {one.removeprefix(PREFIX)}" for one in appliers)
    abandon = ManifestAdvice(", with cnrm.cloud.google.com/deletion-policy: abandon if the object is to stay")
    raise RemoteRefused(
        Message(f"{location.title} is kept by {owners}: delete that one", abandon, "; or take it over with ", _FORCE)
    )


def immutable_fields_of(error: RemoteInvalid) -> tuple[str, ...]:
    """The immutable fields that were changed; empty if anything else is wrong, too."""
    if error.causes and all(_IMMUTABLE.search(message) for _, message in error.causes):
        return tuple(dict.fromkeys(field for field, _ in error.causes))
    return ()


def unknown_fields_of(error: RemoteRefused) -> tuple[str, ...]:
    """The fields that the kind does not have; empty if something else is wrong."""
    causes = error.causes if isinstance(error, RemoteInvalid) else ()
    return error.unknown_fields or tuple(field for field, message in causes if "not declared in schema" in message)


def immutable_error(error: RemoteInvalid, fields: Sequence[str], location: ObjectLocation) -> ImmutableFieldChanged:
    """The error for a change of immutable fields."""
    why = "; ".join(f"{field}: {message}" for field, message in error.causes[:_MOST_FIELDS])
    replace = ManifestAdvice(", or set spec.replace: true to have it deleted and made anew")
    return ImmutableFieldChanged(Message(f"{location.title}: {why}. Put the old value back", replace), tuple(fields))


def parse_field_path(field: str) -> Path:
    """The path of a field as the API server names it."""
    try:
        return Path.parse(field.removeprefix("."))
    except ManifestInvalid:
        return Path((field,))


def creation_changes(made: Json) -> tuple[FieldChange, ...]:
    """The changes of a create: every owned field, or the name of an object without any."""
    changes = _without_key_changes(
        tuple([FieldChange(path, MISSING, value) for path, value in setpoint_projection(made).leaves.items()])
    )
    name = Path(("metadata", "name"))
    return redact_changes(changes or (FieldChange(name, MISSING, text_at(made, *name_steps(name))),), made)


def name_steps(path: Path) -> tuple[str, ...]:
    """The steps of a path that are names."""
    return tuple(step for step in path.steps if isinstance(step, str))


def apply_changes(live: Json, after: Json, manager: str) -> tuple[FieldChange, ...]:
    """The changes of an apply: owned fields, before or after, that differ; else the change of ownership."""
    was, now = _projections(live, after)
    found = _without_key_changes((*_leaves(was, now), *_orders(was, now)))
    # kubectl's copy of the manifest repeats everything, secrets included.
    shown = [redacted_change(one) if LAST_APPLIED_PATH.covers(one.path) else one for one in found]
    return redact_changes(shown or tuple(_ownership(live, after, manager)), live)


def _projections(live: Json, after: Json) -> tuple[Projection, Projection]:
    """Both objects, reduced to what is owned before or after."""
    before, then = setpoint_fields(live), setpoint_fields(after)
    if same(before, then):
        return setpoint_projection(live), setpoint_projection(after)
    fields = union(before, then)
    return project(live, fields, foreign_fields(live)), project(after, fields, foreign_fields(after))


def immutable_changes(fields: Iterable[str], live: Json, wanted: Json) -> tuple[FieldChange, ...]:
    """The changes of immutable fields, as the API server names them."""
    paths = dict.fromkeys(parse_field_path(field) for field in fields)
    return redact_changes(tuple(FieldChange(path, get_at(live, path), get_at(wanted, path)) for path in paths), live)


def foreseen_creation(wanted: Json) -> tuple[FieldChange, ...]:
    """The changes of a create, as `creation_changes` finds them afterwards; empty where that cannot be foreseen."""
    found = _differences(wanted, MISSING, Path())
    return () if found is None else redact_changes(found, wanted)


def foreseen_changes(live: Json, wanted: Json, manager: str) -> tuple[FieldChange, ...]:
    """The changes of an apply, mostly as `apply_changes` finds them afterwards; empty where they cannot be foreseen.

    A value that the API server takes for the same may not change after all. A field that is no longer declared goes, or
    gets a default, or stays because another manager owns it as well: that is not foreseen.
    """
    owned, found = manager_fields(live, manager), _differences(wanted, live, Path())
    if owned is None or found is None:
        return ()
    is_alone = same(owned, setpoint_fields(live))
    leaves = (setpoint_projection(live) if is_alone else project(live, owned)).leaves
    if any(_missing_leaves(wanted, leaves)):
        return ()
    shown = [redacted_change(one) if LAST_APPLIED_PATH.covers(one.path) else one for one in found]
    return redact_changes(redact_changes(shown, live), wanted)


def _missing_leaves(wanted: Json, leaves: Iterable[Path]) -> Iterator[Path]:
    """The leaves that `wanted` has not. Most are members of few objects, which are looked for once."""
    holders: dict[tuple[PathStep, ...], Json | Missing] = {}
    for path in leaves:
        above = path.steps[:-1]
        if above not in holders:
            holders[above] = get_at(wanted, path.parent)
        holder = holders[above]
        is_member = type(holder) is dict and path.steps != () and path.steps[-1] in holder
        if not is_member and get_at(wanted, path) is MISSING:
            yield path


def _differences(wanted: Json, live: Json | Missing, at: Path) -> list[FieldChange] | None:
    """The fields of `wanted` that differ; None where the schema of the kind decides what becomes of one."""
    if not isinstance(live, Missing) and not isinstance(wanted, dict) and contains(live, wanted):
        return []
    if wanted is None or isinstance(wanted, list) or (wanted == {} and not isinstance(live, dict)):
        return None
    if not isinstance(wanted, dict):
        return None if isinstance(live, dict | list) else [FieldChange(at, live, wanted)]
    return _member_differences(wanted, live, at) if isinstance(live, dict | Missing) else None


def _member_differences(wanted: JsonObject, live: JsonObject | Missing, at: Path) -> list[FieldChange] | None:
    present = {} if isinstance(live, Missing) else live
    found: list[FieldChange] = []
    for name, one in wanted.items():
        was = present.get(name, MISSING)
        # The first checks are for speed: most fields are texts.
        if (type(one) is str and one == was) or (*at.steps, name) in _IDENTITY:
            continue
        if type(one) is str and (type(was) is str or was is MISSING):
            found.append(FieldChange(at / name, was, one))
            continue
        below = _differences(one, was, at / name)
        if below is None:
            return None
        found += below
    return found


def contains(live: Json, sent: Json) -> bool:
    """Whether `live` has every value of `sent`: lists element by element, and objects with perhaps more members."""
    if type(sent) is str:
        return sent == live
    if isinstance(sent, dict) and isinstance(live, dict):
        for name, one in sent.items():
            # The first check is for speed: most fields are texts, and have the same value.
            was = live.get(name, MISSING)
            if not (type(one) is str and one == was) and (was is MISSING or not contains(was, one)):
                return False
        return True
    if isinstance(sent, list) and isinstance(live, list):
        return len(sent) == len(live) and all(map(contains, live, sent))
    return same(live, sent)


def _without_key_changes(changes: tuple[FieldChange, ...]) -> tuple[FieldChange, ...]:
    """Without the changes of an element's key where other fields of the element change."""
    # The parent of a key is an element of a keyed list: most changes are of none.
    if Selector not in {type(step) for one in changes for step in one.path.steps[-2:-1]}:
        return changes
    rest = [one for one in changes if not _is_key(one.path)]
    parents = {one.path.steps[:depth] for one in rest for depth in range(len(one.path.steps))}
    return tuple(one for one in changes if not _is_key(one.path) or one.path.parent.steps not in parents)


def _is_key(path: Path) -> bool:
    holder = path.steps[-2] if len(path.steps) > 1 else None
    return isinstance(holder, Selector) and any(name == path.steps[-1] for name, _ in holder.pairs)


def _leaves(was: Projection, now: Projection) -> Iterator[FieldChange]:
    if [path.steps for path in was.leaves] == [path.steps for path in now.leaves]:
        # As it mostly is: then no path need be looked for.
        for (path, before), after in zip(was.leaves.items(), now.leaves.values(), strict=True):
            if not (type(before) is str and before == after) and not same(before, after):
                yield FieldChange(path, before, after)
        return
    for path, before in was.leaves.items():
        found = now.leaves.get(path, MISSING)
        if isinstance(found, Missing) or not same(before, found):
            yield FieldChange(path, before, found)
    yield from (FieldChange(path, MISSING, one) for path, one in now.leaves.items() if path not in was.leaves)


def _orders(was: Projection, now: Projection) -> Iterator[FieldChange]:
    """Lists whose common elements are in another order."""
    for path in was.orders.keys() & now.orders.keys():
        both = set(was.orders[path]) & set(now.orders[path])
        before, after = ([str(step) for step in side.orders[path] if step in both] for side in (was, now))
        if before != after:
            yield FieldChange(path, before, after)


def _ownership(live: Json, after: Json, manager: str) -> Iterator[FieldChange]:
    """The change of owned fields alone: needed to detect later changes of them as drift."""
    was, now = manager_fields(live, manager), manager_fields(after, manager)
    if now is not None and (was is None or not same(was, now)):
        location = Path(("metadata", "managedFields", Selector((("manager", manager),))))
        yield FieldChange(location, _field_count(was, live), _field_count(now, after))


def _field_count(fields: FieldSet | None, of: Json) -> Json | Missing:
    if fields is None:
        return MISSING
    count = len(project(of, fields).leaves)
    return "1 field" if count == 1 else f"{count} fields"


# --- Objects as the API server sends them -----------------------------------------------------------------------------


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct, rename="camel", gc=False):
    metadata: _Metadata
    api_version: str = ""


_trees: Final[msgspec.json.Decoder[dict[str, Json]]] = msgspec.json.Decoder(dict[str, Any])
_versions: Final = msgspec.json.Decoder(_Object)
# The length of a digest of bytes in hexadecimal digits.
_DIGEST_LENGTH: Final = 64


def observation_of(body: bytes, title: str) -> Present[LiveObject]:
    """The observation of an object that the API server sent; `title` names it in errors."""
    live = decode_tree(_trees, body, title)
    kept, metadata = live_object(live), live.get("metadata")
    shown: dict[str, Json] = {"apiVersion": kept.apiVersion, "kind": kept.kind}
    for member in ("namespace", "name"):
        if name := text_at(metadata, member):
            shown[member] = name
    if kept.uid:
        shown["uid"] = kept.uid
    resource_version = text_at(metadata, "resourceVersion")
    version = version_of(kept.uid, resource_version)
    mark = sha256_hex(body) if version is None else version.mark
    return Present(kept, mark, resource_version or None, {"object": shown}, live)


def version_in(body: bytes) -> ObjectVersion | None:
    """The version of an object that the API server sent; None for one that has none."""
    found = _read_version(body)
    return None if found is None else version_of(found.metadata.uid, found.metadata.resource_version)


def is_body(body: bytes, known: str, api_version: str) -> bool:
    """Whether an object that the API server sent is the one that `known` identifies, by its version or its bytes.

    In another version of its API it is not.
    """
    if len(known) == _DIGEST_LENGTH:
        return sha256_hex(body) == known
    found = _read_version(body)
    if found is None or found.api_version != api_version:
        return False
    version = version_of(found.metadata.uid, found.metadata.resource_version)
    return version is not None and version.mark == known


def _read_version(body: bytes) -> "_Object | None":
    try:
        return _versions.decode(body)
    except UNDECODABLE:
        return None

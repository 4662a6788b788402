"""Request bodies of writes: server-side apply of a manifest, and PUT of an object over the state that was read."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from setpoint.clients.kubernetes.requests import ApiWriteOptions, Endpoint, FieldValidation
from setpoint.core.unstructured import display_name
from setpoint.core.values.canonical import canonical, same
from setpoint.core.values.json_limits import decode_cut
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.messages import FieldTerm, Message, message_of
from setpoint.core.values.paths import Path
from setpoint.engine.ports import ResourceUpdate
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import ManifestInvalid, StoreError
from setpoint.stores.manifest_types import ANY_TYPE, ManifestTypes
from setpoint.stores.manifests import (
    AuthoredManifest,
    being_deleted_error,
    is_secret,
    read_manifest,
    require_same_ref,
    take_secret_data,
)
from setpoint.stores.records import decode

# The field managers: of what authors apply, and of what the engine writes.
AUTHOR_WRITE, ENGINE_WRITE = ApiWriteOptions("setpoint"), ApiWriteOptions("setpoint-controller")
# A definition may be older than this process: what it has is written, and ServedDefinitions reports the rest.
STATUS_WRITE: Final = ApiWriteOptions(ENGINE_WRITE.field_manager, field_validation=FieldValidation.IGNORE)
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_LABELLED: Final = ("labels", "annotations", "ownerReferences")


def read_applicable(manifest: JsonObject, types: ManifestTypes = ANY_TYPE) -> AuthoredManifest:
    """The author's part; ManifestInvalid for what a cluster would store differently, or prune."""
    authored = read_manifest(manifest, types=types)
    require_int64_numbers(authored.ref, decode(authored.body))
    return authored


def require_int64_numbers(ref: ResourceRef, body: JsonObject) -> None:
    """ManifestInvalid for a number that a cluster would round."""
    for path, number in _beyond_int64(body, Path(())):
        problem = f" cannot be {number}: a cluster keeps whole numbers of 64 bits, and would round it"
        raise ManifestInvalid(Message(f"{ref.kind} {ref.name}: ", FieldTerm(str(path)), problem))


def authored_version(authored: AuthoredManifest) -> str:
    """The version of the API group in the manifest: the cluster converts it."""
    return str(decode(authored.body)["apiVersion"]).rpartition("/")[2]


def apply_body(authored: AuthoredManifest, endpoint: Endpoint, present: bytes | None = None) -> JsonObject:
    """The body of an apply or a create at `endpoint`: the author's part, and nothing else.

    An annotation of the engine that the author repeats unchanged stays the engine's alone.
    """
    body: dict[str, Any] = decode(authored.body)
    if authored.secret:
        body["data"] = decode(authored.secret)
    repeated = {} if present is None else engine_annotations(present)
    declared = authored.metadata.get("annotations", {})
    own = {key: text for key, text in declared.items() if repeated.get(key) != text}
    metadata = {"name": authored.ref.name, "namespace": endpoint.namespace, **authored.metadata, "annotations": own}
    return {**body, "metadata": {name: value for name, value in metadata.items() if value}}


class _Fields(msgspec.Struct):
    manager: str = ""
    subresource: str = ""
    time: str = ""
    owned: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)


class _Metadata(msgspec.Struct, rename="camel"):
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    managed_fields: list[_Fields] = msgspec.field(default_factory=list)


class _Object(msgspec.Struct):
    metadata: _Metadata


_objects: Final = msgspec.json.Decoder(_Object)


def engine_annotations(present: bytes) -> dict[str, str]:
    """The annotations of an object that the engine changed last."""
    metadata = decode_cut(_objects.decode, present).metadata
    owned: set[str] = set()
    for one in metadata.managed_fields:
        if one.manager == ENGINE_WRITE.field_manager:
            owned |= set(one.owned.get("f:metadata", {}).get("f:annotations", {}))
    return {key: text for key, text in metadata.annotations.items() if f"f:{key}" in owned}


def last_manager_of(present: bytes, path: Path) -> str:
    """The field manager that set the field at `path` last, or else any field of the object; empty for none."""
    entries = decode_cut(_objects.decode, present).metadata.managed_fields
    authors = [one for one in entries if not one.subresource and one.manager != ENGINE_WRITE.field_manager]
    owners = [one for one in authors if _owns(one.owned, path)]
    return max(owners or authors, key=lambda one: one.time, default=_Fields()).manager


def _owns(owned: Mapping[str, Any], path: Path) -> bool:
    """Whether the field is among these, or the list that it is in."""
    for step in path.steps:
        if not isinstance(step, str):
            return True
        found = owned.get(f"f:{step}")
        if not isinstance(found, Mapping):
            return False
        owned = found
    return True


def require_may_apply(authored: AuthoredManifest, present: Resource) -> None:
    """NotReady while the resource is being deleted, unless its annotations or labels are all that is new."""
    if not present.is_deleting:
        return
    metadata = present.document["metadata"]
    assert isinstance(metadata, dict)
    body = {name: value for name, value in present.document.items() if name not in ("metadata", "status", "data")}
    data = present.document.get("data")
    is_same = same(decode(authored.body), body) and same(decode(authored.secret) if authored.secret else None, data)
    says_more = any(_adds(authored.metadata.get(name), metadata.get(name)) for name in _LABELLED)
    if not (says_more and is_same):
        raise being_deleted_error(present.ref)


def _beyond_int64(value: Any, path: Path) -> Iterator[tuple[Path, int]]:  # noqa: ANN401 - any JSON
    if isinstance(value, bool):
        return
    if isinstance(value, int) and not _LEAST <= value <= _GREATEST:
        yield path, value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _beyond_int64(member, path / name)
    elif isinstance(value, list):
        for position, member in enumerate(value):
            yield from _beyond_int64(member, path / position)


def _adds(declared: Json, present: Json) -> bool:
    """Whether `declared` has something that `present` has not."""
    if isinstance(declared, dict) and isinstance(present, dict):
        return any(present.get(key) != value for key, value in declared.items())
    return bool(declared) and not same(declared, present)


_AUTHORED_METADATA: Final = ("labels", "annotations", "ownerReferences")


def replacement_body(seen: Resource, document: JsonObject) -> JsonObject | None:
    """The body of a PUT that the cluster accepts only over `seen`; None when `document` changes nothing.

    ManifestInvalid for what the cluster would store differently. managedFields are left out, so they are kept.
    """
    wanted = decode(canonical(document))
    require_same_ref(seen.ref, Resource(wanted).ref)
    require_int64_numbers(seen.ref, wanted)
    made = _body_over(seen, wanted)
    return None if same(made, _body_over(seen, decode(canonical(seen.document)))) else made


def _body_over(seen: Resource, wanted: dict[str, Any]) -> JsonObject:
    body = {name: value for name, value in wanted.items() if name not in ("metadata", "status")}
    if is_secret(seen.ref):
        body = _with_secret_data(seen, body)
    found, declared = seen.document["metadata"], wanted["metadata"]
    assert isinstance(found, dict)
    metadata = {
        **{name: value for name, value in found.items() if name not in _AUTHORED_METADATA},
        **{name: declared[name] for name in _AUTHORED_METADATA if declared.get(name)},
    }
    # Without a status subresource, a PUT without the status would remove it.
    return {**body, "metadata": metadata, **({"status": dict(seen.status)} if seen.status else {})}


def _with_secret_data(seen: Resource, body: dict[str, Any]) -> dict[str, Any]:
    try:
        data = take_secret_data(body)
    except ValueError as error:
        raise ManifestInvalid(Message(f"{display_name(seen.document)}: ", message_of(error))) from None
    return {**body, **({"data": data} if data else {})}


def metadata_changes(seen: Resource, update: ResourceUpdate) -> dict[str, Json]:
    """The members of the metadata that `update` changes.

    StoreError for a new finalizer on a resource that is being deleted.
    """
    changes: dict[str, Json] = {}
    if update.finalizers is not None:
        wanted = list(dict.fromkeys(update.finalizers))
        if seen.is_deleting and not set(wanted) <= set(seen.finalizers):
            raise StoreError(f"{seen.ref} is being deleted: finalizers can be taken off, not added")
        if tuple(wanted) != seen.finalizers:
            changes["finalizers"] = [*wanted] or None
    if update.annotations is not None:
        edits: dict[str, Json] = {k: text for k, text in update.annotations.items() if seen.annotations.get(k) != text}
        if edits:
            changes["annotations"] = edits
    return changes


def metadata_patch(seen: Resource, changes: Mapping[str, Json]) -> Json:
    """A merge patch of metadata that the cluster accepts only over the revision that was `seen`."""
    return {"metadata": {"uid": seen.uid, "resourceVersion": seen.revision, **changes}}


def status_patch(seen: Resource, status: JsonObject) -> Json:
    """A JSON patch of the status that the cluster accepts only over the revision that was `seen`."""
    guard: dict[str, Json] = {"op": "replace", "path": "/metadata/resourceVersion", "value": seen.revision}
    change: dict[str, Json] = {"op": "add", "path": "/status", "value": dict(status)}
    return [guard, change if status else {"op": "remove", "path": "/status"}]

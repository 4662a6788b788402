"""Mutations: what each write does to a record or a lease, shared by all stores that keep records.

A mutation takes the record as it is and returns the record as it should be: the same one when nothing changes, None
when the resource is to be removed. The store assigns the revision and commits. Writes use optimistic concurrency.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from setpoint.core.schema.annotations import SET, SOURCE
from setpoint.core.values.canonical import canonical, same
from setpoint.core.values.json_types import Json
from setpoint.engine.ports import ResourceUpdate
from setpoint.engine.resource import Resource
from setpoint.engine.sets.resource_set import (
    SetMember,
    file_of,
    is_leaving,
    set_of,
    source_of,
)
from setpoint.engine.state import RECONCILE_REQUESTED
from setpoint.errors import ChildRefused, ServiceAccountNotFound, SetpointError, StoreError, WriteConflict
from setpoint.stores.manifests import AuthoredManifest, being_deleted_error
from setpoint.stores.records import ResourceRecord, decode, to_resource


def changed_since_read(seen: Resource, now: Resource | None) -> WriteConflict:
    """The conflict of a write over a revision that is not the newest."""
    if now is None:
        return WriteConflict(f"{seen.ref} is gone: read again and plan again")
    if now.uid != seen.uid:
        return WriteConflict(f"{seen.ref} was deleted and made anew: read it again and plan again")
    return WriteConflict(
        f"{seen.ref} has changed since it was read (revision {seen.revision}, now {now.revision}): "
        "read it again and plan again"
    )


def already_exists(there: Resource) -> WriteConflict:
    """The conflict of a create when the name is taken."""
    if there.is_deleting:
        return WriteConflict(f"{there.ref} is being deleted: wait until it is gone, then make it anew")
    return WriteConflict(f"{there.ref} is there already (uid {there.uid}): read it and plan again")


Mutation: TypeAlias = Callable[[ResourceRecord | None], ResourceRecord | None]
# Marks owner references that the engine set, among its annotation keys. No annotation can have this key.
OWNERS_KEY: Final = ":ownerReferences"


def applied(authored: AuthoredManifest, now: str, new_uid: Callable[[], str]) -> Mutation:
    """The author's part becomes `authored`; NotReady while the resource is being deleted, but for new metadata."""

    def mutation(before: ResourceRecord | None) -> ResourceRecord:
        if before is None:
            return _created(authored, now, new_uid())
        edited = _edited(before, authored)
        # Annotations may still change how it is deleted; a new spec is too late.
        if _is_deleting(before) and (
            edited.body != before.body or _authored_metadata(edited) == _authored_metadata(before)
        ):
            raise being_deleted_error(before.ref)
        return edited

    return mutation


def joined(authored: AuthoredManifest, member: SetMember, now: str, new_uid: Callable[[], str]) -> Mutation:
    """The same, as a member of a set; WriteConflict when it has come into a set that was not seen."""
    apply = applied(authored, now, new_uid)

    def mutation(before: ResourceRecord | None) -> ResourceRecord | None:
        recorded = {} if before is None else decode(before.metadata).get("annotations", {})
        if set_of(recorded) not in (member.seen, member.set_name):
            raise WriteConflict(f"{authored.ref} has come into the set {set_of(recorded)}: plan again")
        after = apply(before)
        assert after is not None
        was = (set_of(recorded), file_of(source_of(recorded)), is_leaving(recorded))
        if after is before and was == (member.set_name, file_of(member.source), False):
            return before
        return _with_annotations(after, {SET: member.set_name, SOURCE: member.source})

    return mutation


def left(set_name: str, *, is_pruned: bool) -> Mutation:
    """A resource that left this set is to be pruned; or it stays, and belongs to no set."""
    dropped: Mapping[str, None] = {SOURCE: None} if is_pruned else {SET: None, SOURCE: None}

    def mutation(before: ResourceRecord | None) -> ResourceRecord | None:
        if before is None or set_of(decode(before.metadata).get("annotations", {})) != set_name:
            return before
        return _with_annotations(before, dropped)

    return mutation


def created(authored: AuthoredManifest, now: str, new_uid: Callable[[], str]) -> Mutation:
    """A new resource; WriteConflict when there is one."""

    def mutation(before: ResourceRecord | None) -> ResourceRecord:
        if before is not None:
            raise already_exists(to_resource(before))
        owned = frozenset({OWNERS_KEY}) if "ownerReferences" in authored.metadata else frozenset[str]()
        return replace(_created(authored, now, new_uid()), engine_keys=owned)

    return mutation


def replaced(seen: Resource, authored: AuthoredManifest) -> Mutation:
    """The author's part becomes `authored`, if it has not changed since `seen`."""

    def mutation(before: ResourceRecord | None) -> ResourceRecord:
        return _edited(_require_unchanged(seen, before), authored, by_engine=True)

    return mutation


def updated(seen: Resource, update: ResourceUpdate) -> Mutation:
    """The parts of `update` are changed, if the resource has not changed since `seen`.

    A resource that is being deleted is removed with its last finalizer.
    """
    status, finalizers, annotations = update.status, update.finalizers, update.annotations
    encoded = None if status is None else canonical(status) if status else b""

    def mutation(before: ResourceRecord | None) -> ResourceRecord | None:
        record = _require_unchanged(seen, before)
        if annotations is not None:
            record = _with_annotations(record, annotations)
        if encoded is not None and record.status != encoded:
            record = replace(record, status=encoded)
        return record if finalizers is None else _with_finalizers(record, finalizers)

    return mutation


def _with_finalizers(record: ResourceRecord, finalizers: tuple[str, ...]) -> ResourceRecord | None:
    wanted = list(dict.fromkeys(finalizers))
    metadata = decode(record.metadata)
    present = metadata.get("finalizers", [])
    if "deletionTimestamp" in metadata:
        if not set(wanted) <= set(present):
            raise StoreError(f"{record.ref} is being deleted: finalizers can be taken off, not added")
        if not wanted:
            return None
    return _with_metadata(record, {**metadata, "finalizers": wanted})


def _with_annotations(record: ResourceRecord, annotations: Mapping[str, str | None]) -> ResourceRecord:
    metadata = decode(record.metadata)
    present = dict(metadata.get("annotations", {}))
    ours = set(record.engine_keys)
    for key, text in annotations.items():
        if text is None:
            present.pop(key, None)
            ours.discard(key)
        elif present.get(key) != text:
            present[key] = text
            ours.add(key)
    return _with_metadata(record, {**metadata, "annotations": present}, frozenset(ours))


def deleted(now: str, set_name: str | None = None) -> Mutation:
    """Marked for deletion while it has finalizers, removed without any; with `set_name`, only if it left that set."""

    def mutation(before: ResourceRecord | None) -> ResourceRecord | None:
        if before is None:
            return None
        metadata = decode(before.metadata)
        recorded = metadata.get("annotations", {})
        if set_name is not None and not (is_leaving(recorded) and set_of(recorded) == set_name):
            return before
        if "finalizers" not in metadata:
            return None
        return _with_metadata(before, {"deletionTimestamp": now, **metadata})

    return mutation


def _created(authored: AuthoredManifest, now: str, uid: str) -> ResourceRecord:
    metadata = {
        **authored.metadata,
        "name": authored.ref.name,
        "namespace": authored.ref.namespace,
        "uid": uid,
        "creationTimestamp": now,
        "generation": 1,
    }
    parts = (_encoded(metadata), authored.body, authored.secret, b"")
    return ResourceRecord(authored.ref, uid, 0, *parts, redacted=authored.redacted)


def _edited(before: ResourceRecord, authored: AuthoredManifest, *, by_engine: bool = False) -> ResourceRecord:
    metadata = decode(before.metadata)
    annotations, engine_keys = _merged_annotations(before, metadata.get("annotations", {}), authored)
    owners, are_ours = _merged_owners(before, metadata.get("ownerReferences", []), authored, by_engine=by_engine)
    metadata = {
        **{name: value for name, value in metadata.items() if name != "labels"},
        **authored.metadata,
        "annotations": annotations,
        "ownerReferences": owners,
    }
    engine_keys |= {OWNERS_KEY} if are_ours else set()
    if before.redacted != authored.redacted:
        # Also without a change by the author: another version of a kind may mark other fields as secret.
        before = replace(before, redacted=authored.redacted)
    if (before.body, before.secret) == (authored.body, authored.secret):
        return _with_metadata(before, metadata, engine_keys)
    metadata["generation"] += 1
    return _with_metadata(replace(before, body=authored.body, secret=authored.secret), metadata, engine_keys)


def _is_deleting(record: ResourceRecord) -> bool:
    # Most are not, and this check is cheaper than decoding.
    return b"deletionTimestamp" in record.metadata and "deletionTimestamp" in decode(record.metadata)


def _merged_annotations(
    before: ResourceRecord, present: Mapping[str, str], authored: AuthoredManifest
) -> tuple[dict[str, str], frozenset[str]]:
    """The annotations after an apply, and which of them are the engine's: those that it changed last."""
    ours = {key: text for key, text in present.items() if key in before.engine_keys}
    merged: dict[str, str] = {**ours, **authored.metadata.get("annotations", {})}
    return merged, frozenset(key for key, text in ours.items() if merged[key] == text)


def _merged_owners(
    before: ResourceRecord, present: Json, authored: AuthoredManifest, *, by_engine: bool
) -> tuple[Json, bool]:
    """The owner references after a write, and whether the engine set them: an author who names none keeps those."""
    authored_owners = authored.metadata.get("ownerReferences", [])
    if by_engine:
        return authored_owners, bool(authored_owners)
    are_ours = OWNERS_KEY in before.engine_keys
    owners = present if are_ours and not authored_owners else authored_owners
    return owners, are_ours and same(owners, present)


def _authored_metadata(record: ResourceRecord) -> dict[str, Any]:
    """The metadata without the reconcile request: to leave that out again is no change."""
    metadata = decode(record.metadata)
    annotations = {key: text for key, text in metadata.get("annotations", {}).items() if key != RECONCILE_REQUESTED}
    return {**metadata, "annotations": annotations}


def _with_metadata(
    record: ResourceRecord, metadata: dict[str, Any], engine_keys: frozenset[str] | None = None
) -> ResourceRecord:
    """`record` with this metadata; the same object when nothing changes."""
    encoded = _encoded(metadata)
    if encoded == record.metadata:
        return record
    return replace(record, metadata=encoded, engine_keys=record.engine_keys if engine_keys is None else engine_keys)


def _encoded(metadata: Mapping[str, Any]) -> bytes:
    """The canonical bytes, without empty members."""
    return canonical({name: value for name, value in metadata.items() if value})


def _require_unchanged(seen: Resource, before: ResourceRecord | None) -> ResourceRecord:
    if before is None or (before.uid, str(before.revision)) != (seen.uid, seen.revision):
        raise changed_since_read(seen, None if before is None else to_resource(before))
    return before


@contextmanager
def child_refusals(index: int) -> Iterator[None]:
    """ChildRefused for whatever is wrong with the write of one child among several; failures of the store stay."""
    try:
        yield
    except (StoreError, ServiceAccountNotFound):
        raise
    except SetpointError as error:
        raise ChildRefused(str(error), index) from error


def refusing_as_child(index: int, mutation: Mutation) -> Mutation:
    """The mutation, refused as the write of a child."""

    def refusing(before: ResourceRecord | None) -> ResourceRecord | None:
        with child_refusals(index):
            return mutation(before)

    return refusing

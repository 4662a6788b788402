"""What each write does to a resource: the rules that every store shares.

A rule takes the record as it is and gives the record as it should be: the very same one when there is nothing to
change, None when the resource is to go. The store numbers the change and puts it on record.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from setpoint.core.canonical import canonical, same
from setpoint.core.values import Json
from setpoint.engine.remembered import REQUESTED
from setpoint.engine.resource import Resource, Tree
from setpoint.errors import StoreError
from setpoint.stores.conflicts import already_there, changed_since
from setpoint.stores.manifests import Authored, being_deleted
from setpoint.stores.records import Record, decode, to_resource

Rule: TypeAlias = Callable[[Record | None], Record | None]
# Among the keys of the engine's annotations, for owners that the engine named. No annotation can have it.
OWNERS: Final = ":ownerReferences"


def applied(authored: Authored, now: str, new_uid: Callable[[], str]) -> Rule:
    """The author's part becomes `authored`; NotReady while the resource is being deleted, but for new metadata."""

    def rule(before: Record | None) -> Record:
        if before is None:
            return _created(authored, now, new_uid())
        edited = _edited(before, authored)
        # How it goes may still be said, by annotations; what it should be is past.
        if _is_deleting(before) and (edited.body != before.body or _said(edited) == _said(before)):
            raise being_deleted(before.ref)
        return edited

    return rule


def created(authored: Authored, now: str, new_uid: Callable[[], str]) -> Rule:
    """A new resource; WriteConflict when there is one."""

    def rule(before: Record | None) -> Record:
        if before is not None:
            raise already_there(to_resource(before))
        owned = frozenset({OWNERS}) if "ownerReferences" in authored.metadata else frozenset[str]()
        return replace(_created(authored, now, new_uid()), engine_keys=owned)

    return rule


def replaced(seen: Resource, authored: Authored) -> Rule:
    """The author's part becomes `authored`, if nobody wrote since `seen`."""

    def rule(before: Record | None) -> Record:
        return _edited(_unchanged_since(seen, before), authored, by_engine=True)

    return rule


def with_status(seen: Resource, status: Tree) -> Rule:
    """The status becomes `status`, if nobody wrote since `seen`."""
    encoded = canonical(status) if status else b""

    def rule(before: Record | None) -> Record:
        record = _unchanged_since(seen, before)
        return record if record.status == encoded else replace(record, status=encoded)

    return rule


def with_finalizers(seen: Resource, finalizers: tuple[str, ...]) -> Rule:
    """The finalizers become these, if nobody wrote since `seen`; a resource that only they held goes."""
    wanted = list(dict.fromkeys(finalizers))

    def rule(before: Record | None) -> Record | None:
        record = _unchanged_since(seen, before)
        metadata = decode(record.metadata)
        present = metadata.get("finalizers", [])
        if "deletionTimestamp" in metadata:
            if not set(wanted) <= set(present):
                raise StoreError(f"{record.ref} is being deleted: finalizers can be taken off, not added")
            if not wanted:
                return None
        return _with_metadata(record, {**metadata, "finalizers": wanted})

    return rule


def with_annotations(seen: Resource, annotations: Mapping[str, str | None]) -> Rule:
    """These annotations are set, or taken off where None, if nobody wrote since `seen`."""

    def rule(before: Record | None) -> Record:
        record = _unchanged_since(seen, before)
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

    return rule


def deleted(now: str) -> Rule:
    """Marked for deletion while finalizers hold it, and gone without any."""

    def rule(before: Record | None) -> Record | None:
        if before is None:
            return None
        metadata = decode(before.metadata)
        if "finalizers" not in metadata:
            return None
        return _with_metadata(before, {"deletionTimestamp": now, **metadata})

    return rule


def _created(authored: Authored, now: str, uid: str) -> Record:
    metadata = {
        **authored.metadata,
        "name": authored.ref.name,
        "namespace": authored.ref.namespace,
        "uid": uid,
        "creationTimestamp": now,
        "generation": 1,
    }
    return Record(authored.ref, uid, 0, _encoded(metadata), authored.body, authored.secret, b"")


def _edited(before: Record, authored: Authored, *, by_engine: bool = False) -> Record:
    metadata = decode(before.metadata)
    annotations, engine_keys = _merged(before, metadata.get("annotations", {}), authored)
    owners, are_ours = _owners(before, metadata.get("ownerReferences", []), authored, by_engine=by_engine)
    metadata = {
        **{name: value for name, value in metadata.items() if name != "labels"},
        **authored.metadata,
        "annotations": annotations,
        "ownerReferences": owners,
    }
    engine_keys |= {OWNERS} if are_ours else set()
    if (before.body, before.secret) == (authored.body, authored.secret):
        return _with_metadata(before, metadata, engine_keys)
    metadata["generation"] += 1
    return _with_metadata(replace(before, body=authored.body, secret=authored.secret), metadata, engine_keys)


def _is_deleting(record: Record) -> bool:
    # Most are not, and to see that is cheaper than to decode them.
    return b"deletionTimestamp" in record.metadata and "deletionTimestamp" in decode(record.metadata)


def _merged(before: Record, present: Mapping[str, str], authored: Authored) -> tuple[dict[str, str], frozenset[str]]:
    """The annotations after an apply, and which of them are the engine's: those it was the last to change."""
    ours = {key: text for key, text in present.items() if key in before.engine_keys}
    merged: dict[str, str] = {**ours, **authored.metadata.get("annotations", {})}
    return merged, frozenset(key for key, text in ours.items() if merged[key] == text)


def _owners(before: Record, present: Json, authored: Authored, *, by_engine: bool) -> tuple[Json, bool]:
    """The owners after a write, and whether the engine named them: then an author who names none leaves them there."""
    said = authored.metadata.get("ownerReferences", [])
    if by_engine:
        return said, bool(said)
    are_ours = OWNERS in before.engine_keys
    owners = present if are_ours and not said else said
    return owners, are_ours and same(owners, present)


def _said(record: Record) -> dict[str, Any]:
    """What the metadata says; a request for a look is for the moment, and says nothing when it is left out."""
    metadata = decode(record.metadata)
    annotations = {key: text for key, text in metadata.get("annotations", {}).items() if key != REQUESTED}
    return {**metadata, "annotations": annotations}


def _with_metadata(record: Record, metadata: dict[str, Any], engine_keys: frozenset[str] | None = None) -> Record:
    """`record` with this metadata; the very same one when it says nothing new."""
    encoded = _encoded(metadata)
    if encoded == record.metadata:
        return record
    return replace(record, metadata=encoded, engine_keys=record.engine_keys if engine_keys is None else engine_keys)


def _encoded(metadata: Mapping[str, Any]) -> bytes:
    """Members that are empty say nothing, so they are left out."""
    return canonical({name: value for name, value in metadata.items() if value})


def _unchanged_since(seen: Resource, before: Record | None) -> Record:
    if before is None or (before.uid, str(before.revision)) != (seen.uid, seen.revision):
        raise changed_since(seen, None if before is None else to_resource(before))
    return before

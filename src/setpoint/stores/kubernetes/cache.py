"""The cache of watched objects: compressed unless they are recent, never older than what this process wrote itself."""

import zlib
from collections import defaultdict
from collections.abc import Iterable
from struct import Struct
from typing import Final

import msgspec

from setpoint.core.unstructured import GroupKind
from setpoint.engine.ports import ResourceChangeType
from setpoint.engine.resource import ResourceRef, Revision
from setpoint.errors import Bug
from setpoint.stores.kubernetes.objects import ClusterResource, ObjectState

_LEVEL: Final = 3
# The window of the compression in bytes, as a power of two.
_WINDOW_BITS: Final = 14
_MEMORY_LEVEL: Final = 7
# The first texts always go into the dictionary; later ones only if they compress by less than this factor.
_FIRST_SAMPLES: Final = 2
_MIN_RATIO: Final = 3
_MAX_SAMPLES: Final = 8
# So many objects that were written last are not compressed: most are read, or written again, within seconds.
_MAX_RECENT: Final = 256
# The most writes whose event is awaited: a watch that is behind by more decodes its events.
_MAX_OWN_WRITES: Final = 512


class CompressedText(msgspec.Struct, frozen=True, gc=False):
    """A text, compressed with a dictionary that many texts share."""

    sample: bytes
    data: bytes

    def text(self) -> bytes:
        """The text, decompressed."""
        return zlib.decompressobj(-_WINDOW_BITS, self.sample).decompress(self.data)


class DictionaryCompressor:
    """Compresses texts of one kind. The first ones, and a few unlike all before, become part of the dictionary."""

    def __init__(self) -> None:
        self._sample = b""
        self._template = _compressor(self._sample)
        self._sample_count = 0

    def compress(self, text: bytes) -> CompressedText:
        """The text, compressed."""
        data = self._compress(text)
        if self._sample_count < _FIRST_SAMPLES or (
            len(data) * _MIN_RATIO > len(text) and self._sample_count < _MAX_SAMPLES
        ):
            self._add_sample(text)
            data = self._compress(text)
        return CompressedText(self._sample, data)

    def _compress(self, text: bytes) -> bytes:
        # A copy: its state after this text is of no use to the next.
        compression = self._template.copy()
        return compression.compress(text) + compression.flush()

    def _add_sample(self, text: bytes) -> None:
        self._sample_count += 1
        # The newest is nearest to the text; what is beyond the window would only take memory.
        self._sample = (self._sample + text)[-(1 << _WINDOW_BITS) :]
        self._template = _compressor(self._sample)


def _compressor(sample: bytes) -> "zlib._Compress":
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, -_WINDOW_BITS, _MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, sample)


# How long metadata and body are; the rest is the status.
_lengths: Final = Struct("<II")


class _Entry(msgspec.Struct, frozen=True, gc=False):
    uid: str
    revision: Revision
    parts: CompressedText


class ObjectCache:
    """The newest known state of each object. It answers for a kind while that kind is watched."""

    def __init__(self, enumerated: Iterable[GroupKind] = ()) -> None:
        self._kept: dict[ResourceRef, _Entry | ObjectState] = {}
        # Those that are not compressed; the one that was put last is the last one.
        self._recent: dict[ResourceRef, None] = {}
        # The objects of the kinds that are asked for by namespace, by kind and namespace.
        self._enumerated = frozenset(enumerated)
        self._by_namespace: defaultdict[tuple[GroupKind, str], set[ResourceRef]] = defaultdict(set)
        self._compressors: defaultdict[GroupKind, DictionaryCompressor] = defaultdict(DictionaryCompressor)
        # Objects deleted by this process before the watch reported it: later events of them are stale.
        self._gone: dict[ResourceRef, str] = {}
        self._watched: set[GroupKind] = set()

    def __len__(self) -> int:
        return len(self._kept)

    def knows(self, kind: GroupKind) -> bool:
        """Whether the cache has all objects of `kind`."""
        return kind in self._watched

    def get(self, ref: ResourceRef) -> ObjectState | None:
        """The newest state that was seen."""
        entry = self._kept.get(ref)
        return None if entry is None else _unpacked(ref, entry)

    def all_in(self, kind: GroupKind, namespace: str) -> tuple[ObjectState, ...]:
        """The newest state of every object of a kind that is enumerated, in that namespace."""
        if kind not in self._enumerated:
            raise Bug(f"objects of {kind} are not enumerated: only single ones can be found")
        refs = sorted(self._by_namespace.get((kind, namespace), ()))
        return tuple(_unpacked(ref, self._kept[ref]) for ref in refs)

    def put(self, kept: ObjectState) -> None:
        """Adds a state that was read, watched or written, if it is newer than the cached one."""
        ref = kept.ref
        before = self._kept.get(ref)
        if self._gone.get(ref) == kept.uid or (before is not None and _is_stale(kept, before)):
            return
        self._gone.pop(ref, None)
        self._keep(kept)
        if ref.group_kind in self._enumerated:
            self._by_namespace[ref.group_kind, ref.namespace].add(ref)

    def _keep(self, kept: ObjectState) -> None:
        """Keeps it as it is, and compresses the one that has been quiet for the longest time."""
        self._recent.pop(kept.ref, None)
        self._recent[kept.ref] = None
        self._kept[kept.ref] = kept
        if len(self._recent) > _MAX_RECENT:
            quiet = next(iter(self._recent))
            del self._recent[quiet]
            whole = self._kept[quiet]
            assert isinstance(whole, ObjectState), "what is recent is not compressed"
            self._kept[quiet] = _packed(whole, self._compressors[quiet.group, quiet.kind])

    def drop(self, ref: ResourceRef, uid: str) -> None:
        """Removes an object that this process deleted: the watch reports it later."""
        before = self._kept.get(ref)
        if before is not None and before.uid == uid:
            self._remove(ref)
            self._gone[ref] = uid

    def observe(self, change: ResourceChangeType, kept: ObjectState) -> None:
        """The watch reports a change."""
        if change is ResourceChangeType.DELETED:
            self.observe_deletion(kept)
        else:
            self.put(kept)

    def observe_deletion(self, last: ObjectState) -> None:
        """The watch reports a deletion; a successor of the same name stays."""
        if self._gone.get(last.ref) == last.uid:
            del self._gone[last.ref]
        before = self._kept.get(last.ref)
        if before is not None and before.uid == last.uid:
            self._remove(last.ref)

    def begin(self, kinds: Iterable[GroupKind]) -> None:
        """From now on these kinds are watched."""
        self._watched.update(kinds)

    def end(self, kinds: Iterable[GroupKind]) -> None:
        """These kinds are not watched any more: their cached states may be stale."""
        self._watched.difference_update(kinds)

    def restart(self, kinds: Iterable[GroupKind]) -> None:
        """These kinds are relisted: what the list does not show is gone."""
        listed = set(kinds)
        for ref in [ref for ref in self._kept if (ref.group, ref.kind) in listed]:
            self._remove(ref)
        for ref in [ref for ref in self._gone if (ref.group, ref.kind) in listed]:
            del self._gone[ref]

    def _remove(self, ref: ResourceRef) -> None:
        del self._kept[ref]
        self._recent.pop(ref, None)
        if ref.group_kind in self._enumerated:
            self._by_namespace[ref.group_kind, ref.namespace].discard(ref)
            if not self._by_namespace[ref.group_kind, ref.namespace]:
                del self._by_namespace[ref.group_kind, ref.namespace]


class OwnWrites:
    """Objects as this process writes them: the answer and the event of a write show one state, decoded once.

    Which of the two comes first is chance.
    """

    def __init__(self) -> None:
        # By object: none while no answer has come and no event, or else what the first of them shows.
        self._written: dict[ResourceRef, ClusterResource | None] = {}

    def begin(self, ref: ResourceRef) -> None:
        """A write is about to be sent."""
        self._written.pop(ref, None)
        self._written[ref] = None
        if len(self._written) > _MAX_OWN_WRITES:
            del self._written[next(iter(self._written))]

    def expects(self, ref: ResourceRef) -> bool:
        """Whether the answer to a write of the object, or its event, is still to come."""
        return ref in self._written

    def shown(self, resource: ClusterResource) -> None:
        """The answer or an event shows this state."""
        if resource.ref in self._written:
            self._written[resource.ref] = resource

    def take(self, ref: ResourceRef, uid: str, revision: Revision) -> ClusterResource | None:
        """The object in this state, if the answer or an event has shown it; then neither is expected any more."""
        found = self._written.get(ref)
        if found is None or (found.uid, found.revision) != (uid, revision):
            return None
        del self._written[ref]
        return found


def _is_stale(kept: ObjectState, before: _Entry | ObjectState) -> bool:
    """Whether `kept` is not newer: resource versions of one name are numbers that grow."""
    return kept.revision == before.revision or int(kept.revision) < int(before.revision)


def _packed(kept: ObjectState, compressor: DictionaryCompressor) -> _Entry:
    text = _lengths.pack(len(kept.metadata), len(kept.body)) + kept.metadata + kept.body + kept.status
    return _Entry(kept.uid, kept.revision, compressor.compress(text))


def _unpacked(ref: ResourceRef, entry: _Entry | ObjectState) -> ObjectState:
    if isinstance(entry, ObjectState):
        return entry
    text = entry.parts.text()
    body = _lengths.size + _lengths.unpack_from(text)[0]
    status = body + _lengths.unpack_from(text)[1]
    return ObjectState(ref, entry.uid, entry.revision, text[_lengths.size : body], text[body:status], text[status:])

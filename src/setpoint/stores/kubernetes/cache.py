"""What a process remembers of the objects it watches: packed bytes, never older than what it wrote itself."""

from collections import defaultdict
from collections.abc import Iterable
from struct import Struct
from typing import Final

import msgspec

from setpoint.engine.resource import ResourceRef, Revision
from setpoint.stores.kubernetes.objects import Kept
from setpoint.stores.kubernetes.packing import Packed, Packer
from setpoint.stores.kubernetes.positions import KindName

# How long metadata and body are; the rest is the status.
_lengths: Final = Struct("<II")


class _Entry(msgspec.Struct, frozen=True, gc=False):
    uid: str
    revision: Revision
    parts: Packed


class Cache:
    """The newest state of each object that was seen. A kind is answered for while somebody watches it."""

    def __init__(self) -> None:
        self._kept: dict[ResourceRef, _Entry] = {}
        self._packers: defaultdict[KindName, Packer] = defaultdict(Packer)
        # Objects that we saw go before the watch did: what it still tells of them is past.
        self._gone: dict[ResourceRef, str] = {}
        self._watched: set[KindName] = set()

    def __len__(self) -> int:
        return len(self._kept)

    def knows(self, kind: KindName) -> bool:
        """Whether what is here of `kind` is all there is."""
        return kind in self._watched

    def get(self, ref: ResourceRef) -> Kept | None:
        """The newest state that was seen."""
        entry = self._kept.get(ref)
        return None if entry is None else _unpacked(ref, entry)

    def put(self, kept: Kept) -> None:
        """A state that was read, watched or written; one that is not newer than what is here says nothing."""
        ref = kept.ref
        before = self._kept.get(ref)
        if self._gone.get(ref) == kept.uid or (before is not None and _is_past(kept, before)):
            return
        self._gone.pop(ref, None)
        self._kept[ref] = _packed(kept, self._packers[ref.group, ref.kind])

    def drop(self, ref: ResourceRef, uid: str) -> None:
        """The object went, by our own hand: the watch will tell so later."""
        before = self._kept.get(ref)
        if before is not None and before.uid == uid:
            del self._kept[ref]
            self._gone[ref] = uid

    def hear_of_end(self, last: Kept) -> None:
        """The watch tells that an object went; a successor of the same name that is here already stays."""
        if self._gone.get(last.ref) == last.uid:
            del self._gone[last.ref]
        before = self._kept.get(last.ref)
        if before is not None and before.uid == last.uid:
            del self._kept[last.ref]

    def begin(self, kinds: Iterable[KindName]) -> None:
        """From here on these kinds are watched."""
        self._watched.update(kinds)

    def end(self, kinds: Iterable[KindName]) -> None:
        """Nobody watches these kinds any more: what is here of them may be past."""
        self._watched.difference_update(kinds)

    def restart(self, kinds: Iterable[KindName]) -> None:
        """These kinds are listed anew: what the list does not show is gone."""
        listed = set(kinds)
        for ref in [ref for ref in self._kept if (ref.group, ref.kind) in listed]:
            del self._kept[ref]
        for ref in [ref for ref in self._gone if (ref.group, ref.kind) in listed]:
            del self._gone[ref]


def _is_past(kept: Kept, before: _Entry) -> bool:
    """Resource versions of one object are numbers that grow; those of an earlier object of the same name are lower."""
    return kept.revision == before.revision or int(kept.revision) < int(before.revision)


def _packed(kept: Kept, packer: Packer) -> _Entry:
    text = _lengths.pack(len(kept.metadata), len(kept.body)) + kept.metadata + kept.body + kept.status
    return _Entry(kept.uid, kept.revision, packer.pack(text))


def _unpacked(ref: ResourceRef, entry: _Entry) -> Kept:
    text = entry.parts.text()
    body = _lengths.size + _lengths.unpack_from(text)[0]
    status = body + _lengths.unpack_from(text)[1]
    return Kept(ref, entry.uid, entry.revision, text[_lengths.size : body], text[body:status], text[status:])

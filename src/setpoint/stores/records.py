"""The stored record of one resource in encoded parts, and the document made of it."""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

import msgspec

from setpoint.core.values.json_types import JsonObject
from setpoint.engine.resource import Resource, ResourceRef

# msgspec, not orjson: orjson reads a whole number beyond 64 bits as a float and loses digits.
decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class ResourceRecord(msgspec.Struct, frozen=True, gc=False):
    """One state of a resource in encoded parts, so that a write touches its own part and no other.

    The parts are canonical bytes: two are equal exactly when their values are the `same()`.
    """

    ref: ResourceRef
    uid: str
    revision: int
    metadata: bytes  # without resourceVersion: that is `revision`
    body: bytes  # the author's: everything but metadata and status
    secret: bytes  # a Secret's `data`, never written to disk in plain text; empty for other kinds
    status: bytes  # empty before the first step
    # The annotations that the engine changed last; and a mark for its owner references, see mutations.OWNERS_KEY.
    engine_keys: frozenset[str] = frozenset()
    # `body` with its secret values redacted; empty when it holds none. Then `body` is never on disk in plain text.
    redacted: bytes = b""

    @property
    def holds_secrets(self) -> bool:
        """Whether some of it has to be encrypted."""
        return bool(self.secret or self.redacted)

    def without_secrets(self) -> "ResourceRecord":
        """What the journal shows once the values are superseded."""
        return msgspec.structs.replace(self, body=self.redacted or self.body, secret=b"", redacted=b"")


def to_resource(record: ResourceRecord) -> Resource:
    """The resource for the engine; every call makes a new document."""
    body = decode(record.body)
    document = {"apiVersion": body.pop("apiVersion"), "kind": body.pop("kind"), "metadata": decode(record.metadata)}
    document["metadata"]["resourceVersion"] = str(record.revision)
    document.update(body)
    if record.secret:
        document["data"] = decode(record.secret)
    if record.status:
        document["status"] = decode(record.status)
    # The body of a Secret lacks its data.
    return Resource(document, None if record.secret else record.body)


class LazyResource(Resource):
    """A resource whose parts are decoded on use: for readers of many resources that need little of each."""

    def __init__(self, record: ResourceRecord) -> None:
        vars(self).update(_record=record, written=None if record.secret else record.body)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resource) and self.document == other.document

    __hash__ = None  # type: ignore[assignment] # like every resource: its document can change

    @cached_property
    def document(self) -> JsonObject:
        return to_resource(self._own).document

    @cached_property
    def ref(self) -> ResourceRef:
        return self._own.ref

    @cached_property
    def status(self) -> JsonObject:
        return decode(self._own.status) if self._own.status else {}

    @property
    def status_hash(self) -> int:
        return hash(self._own.status)

    @cached_property
    def _metadata(self) -> JsonObject:
        return {**decode(self._own.metadata), "resourceVersion": str(self._own.revision)}

    @property
    def _own(self) -> ResourceRecord:
        record: ResourceRecord = vars(self)["_record"]
        return record


def to_resources(records: Iterable[ResourceRecord]) -> list[Resource]:
    """Many at once, with the garbage collector paused: it only slows down the building of objects that stay."""
    with _collector_paused():
        return [to_resource(record) for record in records]


@contextmanager
def _collector_paused() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

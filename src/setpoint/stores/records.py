"""The stored record of one resource in encoded parts, and the document made of it."""

from typing import Any, Final

import msgspec

from setpoint.core.values.cached_property import cached_property
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
    return LazyResource(record)


class LazyResource(Resource):
    """A resource whose parts are decoded on use: most readers need little of it."""

    _own: ResourceRecord

    def __init__(self, record: ResourceRecord) -> None:
        # The body of a Secret lacks its data.
        vars(self).update(_own=record, ref=record.ref, written=None if record.secret else record.body)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resource) and self.document == other.document

    __hash__ = None  # type: ignore[assignment] # like every resource: its document can change

    @cached_property
    def document(self) -> JsonObject:
        names: dict[str, Any] = {"apiVersion": None, "kind": None, "metadata": self._metadata}
        document = {**names, **self._body}
        if self._own.secret:
            document["data"] = decode(self._own.secret)
        if self._own.status:
            document["status"] = self.status
        return document

    @property
    def spec(self) -> JsonObject:
        spec: Any = self._body.get("spec")
        return spec if isinstance(spec, dict) else {}

    @cached_property
    def status(self) -> JsonObject:
        return decode(self._own.status) if self._own.status else {}

    @property
    def status_hash(self) -> int:
        return hash(self._own.status)

    def shows(self, word: str) -> bool:
        own, text = self._own, word.encode()
        return text in own.body or text in own.status or text in own.metadata or text in own.secret

    @cached_property
    def _metadata(self) -> JsonObject:
        return {**decode(self._own.metadata), "resourceVersion": str(self._own.revision)}

    @cached_property
    def _body(self) -> JsonObject:
        return decode(self._own.body)

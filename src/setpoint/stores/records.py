"""What a store keeps of one resource, and the document that this makes."""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from setpoint.engine.resource import Resource, ResourceRef

# msgspec, not orjson: orjson reads a whole number beyond 64 bits as a float and loses digits.
decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class Record(msgspec.Struct, frozen=True, gc=False):
    """One state of a resource in encoded parts, so that a write touches its own part and no other.

    The parts are canonical bytes: two are equal exactly when their values are the `same()`.
    """

    ref: ResourceRef
    uid: str
    revision: int
    metadata: bytes  # without resourceVersion: that is `revision`
    body: bytes  # the author's: everything but metadata and status
    secret: bytes  # a Secret's `data`, which no disk may see; empty for anything else
    status: bytes  # empty before the first look
    engine_keys: frozenset[str] = frozenset()  # the annotations that the engine was the last to change


def to_resource(record: Record) -> Resource:
    """The resource as the engine sees it; every call makes a document of its own."""
    body = decode(record.body)
    document = {"apiVersion": body.pop("apiVersion"), "kind": body.pop("kind"), "metadata": decode(record.metadata)}
    document["metadata"]["resourceVersion"] = str(record.revision)
    document.update(body)
    if record.secret:
        document["data"] = decode(record.secret)
    if record.status:
        document["status"] = decode(record.status)
    return Resource(document)


def to_resources(records: Iterable[Record]) -> list[Resource]:
    """Many at once: the garbage collector only slows down the making of trees that stay."""
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

"""The state of a cluster object that a store keeps: its bytes in three parts, decoded on use."""

from functools import cache
from sys import intern
from typing import Any, Final

import msgspec
from msgspec import Raw

from setpoint.core.values.cached_property import cached_property
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_limits import decode_cut, excess_of
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import NotJson, StoreError
from setpoint.stores.records import decode

_parts: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_text: Final = msgspec.json.Decoder(str).decode
_encode: Final = msgspec.json.Encoder().encode
# Field managers take often more space than the rest of the object, and are not used.
_NOT_KEPT: Final = ("managedFields", "selfLink")
_EMPTY_TEXT: Final = Raw(b'""')
# The members of a document that are not the author's part.
_NOT_AUTHORED: Final = ("metadata", "status")


class ObjectState(msgspec.Struct, frozen=True, gc=False):
    """One state of an object."""

    ref: ResourceRef
    uid: str
    revision: Revision
    metadata: bytes
    body: bytes  # the author's: everything but metadata and status
    status: bytes  # empty before the first step


def decode_object(raw: bytes | Raw, api_version: str, kind: str) -> ObjectState:
    """The object in `raw`; StoreError when it is none. Items of a list lack apiVersion and kind: they are given."""
    try:
        # Cut: an API server keeps objects that are nested more deeply than can be decoded. Its author is told.
        parts = decode_cut(_parts, raw)
        metadata = _parts(parts.pop("metadata"))
        # Few namespaces, very many objects.
        namespace = intern(_text(metadata.get("namespace", _EMPTY_TEXT)))
        ref = ResourceRef(_group_of(api_version), kind, namespace, _text(metadata["name"]))
        # The answer to a dry run has no resource version.
        uid, revision = _text(metadata["uid"]), Revision(_text(metadata.get("resourceVersion", _EMPTY_TEXT)))
    except (msgspec.MsgspecError, KeyError, UnicodeDecodeError) as error:
        raise StoreError(f"the cluster answered with something that is no {kind}: {error!r}") from error
    for name in _NOT_KEPT:
        metadata.pop(name, None)
    status = parts.pop("status", None)
    # A PartialObjectMetadata has a kind of its own, which is replaced.
    body = {**parts, "apiVersion": api_version, "kind": kind}
    return ObjectState(ref, uid, revision, _encode(metadata), _encode(body), _status_bytes(status))


@cache
def _group_of(api_version: str) -> str:
    """The API group; one string for all objects of a kind."""
    return api_version.rpartition("/")[0]


def _status_bytes(status: Raw | None) -> bytes:
    """The bytes of a status; none for an empty one."""
    text = b"" if status is None else bytes(status)
    return b"" if text in (b"{}", b"null") else text


class _Kind(msgspec.Struct):
    kind: str = ""


class _Details(msgspec.Struct):
    uid: str = ""


class _Ending(msgspec.Struct):
    """The answer to the deletion of an object that is gone."""

    details: _Details = msgspec.field(default_factory=_Details)


_kinds, _endings = msgspec.json.Decoder(_Kind), msgspec.json.Decoder(_Ending)


def uid_of_deleted(answer: bytes) -> str | None:
    """The uid of an object that is gone, by the answer to its deletion; None while finalizers hold it."""
    return _endings.decode(answer).details.uid if decode_cut(_kinds.decode, answer).kind == "Status" else None


class ClusterResource(Resource):
    """A resource in a cluster, decoded on use."""

    kept: ObjectState

    def __init__(self, kept: ObjectState) -> None:
        vars(self).update(kept=kept, ref=kept.ref)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resource) and self.document == other.document

    __hash__ = None  # type: ignore[assignment] # like every resource: its document can change

    @cached_property
    def author_digest(self) -> str:
        document = vars(self).get("document")
        if document is None:
            return digest(self._decoded_body())
        return digest({name: value for name, value in document.items() if name not in _NOT_AUTHORED})

    def mentions(self, *words: str) -> bool:
        body = self.kept.body
        return any(word.encode() in body for word in words)

    def shows(self, word: str) -> bool:
        kept, text = self.kept, word.encode()
        return text in kept.body or text in kept.status or text in kept.metadata

    @cached_property
    def document(self) -> JsonObject:
        body = self._decoded_body()
        head = {"apiVersion": body.pop("apiVersion"), "kind": body.pop("kind"), "metadata": decode(self.kept.metadata)}
        tail = {"status": decode(self.kept.status)} if self.kept.status else {}
        return {**head, **body, **tail}

    @property
    def uid(self) -> str:
        return self.kept.uid

    @property
    def revision(self) -> Revision:
        return self.kept.revision

    @cached_property
    def status(self) -> JsonObject:
        return decode(self.kept.status) if self.kept.status else {}

    @property
    def status_hash(self) -> int:
        # An API server sends equal objects in equal bytes.
        return hash(self.kept.status)

    @cached_property
    def _metadata(self) -> JsonObject:
        return decode(self.kept.metadata)

    def _decoded_body(self) -> dict[str, Any]:
        """The author's part; NotJson for one beyond the limits of a manifest, which an API server does not have."""
        if excess := excess_of(self.kept.body):
            raise NotJson(f"{self.ref}: its manifest {excess}: write less of it, in several resources")
        return decode(self.kept.body)

"""What is kept of an object of the cluster: its bytes in three parts, decoded when somebody asks."""

from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import Raw

from setpoint.core.canonical import digest
from setpoint.engine.resource import Resource, ResourceRef, Revision, Tree
from setpoint.errors import StoreError
from setpoint.stores.records import decode

_parts: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_encode: Final = msgspec.json.Encoder().encode
# Who set which field: often more than the rest of the object, and nothing that we go by.
_NOT_KEPT: Final = ("managedFields", "selfLink")


class Kept(msgspec.Struct, frozen=True, gc=False):
    """One state of an object."""

    ref: ResourceRef
    uid: str
    revision: Revision
    metadata: bytes
    body: bytes  # the author's: everything but metadata and status
    status: bytes  # empty before the first look


class _Names(msgspec.Struct, rename="camel", gc=False):
    name: str
    uid: str
    # What would be made, but is not, has none.
    resource_version: str = ""
    namespace: str = ""


_names: Final = msgspec.json.Decoder(_Names).decode


def kept_from(raw: bytes | Raw, api_version: str, kind: str) -> Kept:
    """The object in `raw`; StoreError for what is none. The items of a list do not say what they are: `kind` does."""
    try:
        parts = _parts(raw)
        names = _names(parts["metadata"])
        metadata = _parts(parts.pop("metadata"))
    except (msgspec.MsgspecError, KeyError, UnicodeDecodeError) as error:
        raise StoreError(f"the cluster answered with something that is no {kind}: {error!r}") from error
    for name in _NOT_KEPT:
        metadata.pop(name, None)
    status = parts.pop("status", None)
    # Whatever form it was asked for in: one of metadata alone says that it is that.
    body = {**parts, "apiVersion": api_version, "kind": kind}
    ref = ResourceRef(api_version.rpartition("/")[0], kind, names.namespace, names.name)
    revision = Revision(names.resource_version)
    return Kept(ref, names.uid, revision, _encode(metadata), _encode(body), _said(status))


def _said(status: Raw | None) -> bytes:
    """The bytes of a status that says something."""
    text = b"" if status is None else bytes(status)
    return b"" if text in (b"{}", b"null") else text


class ClusterResource(Resource):
    """A resource in a cluster, each part decoded when it is asked for."""

    def __init__(self, kept: Kept) -> None:
        vars(self).update(_kept=kept, written=None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resource) and self.document == other.document

    __hash__ = None  # type: ignore[assignment] # like every resource: its document can change

    @property
    def kept(self) -> Kept:
        """The bytes."""
        kept: Kept = vars(self)["_kept"]
        return kept

    @cached_property
    def author_digest(self) -> str:
        return digest(decode(self.kept.body))

    def mentions(self, *words: str) -> bool:
        return any(word.encode() in self.kept.body for word in words)

    @cached_property
    def document(self) -> Tree:
        body: dict[str, Any] = decode(self.kept.body)
        head = {"apiVersion": body.pop("apiVersion"), "kind": body.pop("kind"), "metadata": decode(self.kept.metadata)}
        tail = {"status": decode(self.kept.status)} if self.kept.status else {}
        return {**head, **body, **tail}

    @cached_property
    def ref(self) -> ResourceRef:
        return self.kept.ref

    @cached_property
    def status(self) -> Tree:
        return decode(self.kept.status) if self.kept.status else {}

    @cached_property
    def _metadata(self) -> Tree:
        return decode(self.kept.metadata)

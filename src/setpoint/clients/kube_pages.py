"""Lists of objects, which stay bytes until somebody wants to know what is in one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from setpoint.errors import RemoteUnavailable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page:
    """Objects, each as the bytes that came: `bytes(item)`. While one is kept, so are all of its page: keep a copy.

    Objects of a kind that Kubernetes itself brings have no apiVersion and kind in a list. `token` leads to the next
    page; there is none after the last. A page that `is_first` begins the list, or begins it anew: what the pages
    before it said is void.
    """

    items: Sequence[Raw]
    resource_version: str
    token: str
    is_first: bool


class _Metadata(Struct, rename="camel"):
    resource_version: str = ""
    token: str = msgspec.field(name="continue", default="")


class _List(Struct, gc=False):
    metadata: _Metadata
    items: list[Raw] | None = None


_decoder: Final = msgspec.json.Decoder(_List)


def page_in(body: bytes, what: object, *, is_first: bool) -> Page:
    """The page that came as an answer to `what`."""
    found = decoded(_decoder, body, what)
    return Page(found.items or (), found.metadata.resource_version, found.metadata.token, is_first)


def decoded(decoder: "msgspec.json.Decoder[T]", body: bytes | Raw, what: object) -> T:
    """The body as its type; RemoteUnavailable when it is not: nothing can be concluded from such an answer."""
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RemoteUnavailable(f"{what}: the answer is not what it should be: {error}") from error

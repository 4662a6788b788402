"""Lists of Google's services, a page at a time: the items as the bytes that came, for most of them need no decoding."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.google import Call, GoogleClient, decoded
from setpoint.errors import RemoteRefused, RemoteUnavailable

# The most that Cloud SQL and Cloud Storage give.
_ITEMS: Final = "1000"


class _Page(Struct, frozen=True, rename="camel"):
    items: list[msgspec.Raw] = []
    next_page_token: str = ""


class _Named(Struct, frozen=True):
    name: str


_page: Final = msgspec.json.Decoder(_Page)
_named: Final = msgspec.json.Decoder(_Named)


async def pages_of(google: GoogleClient, call: Call, what: str) -> AsyncGenerator[Sequence[bytes], None]:
    """Everything that the list `call` gives. RemoteRefused when there is no such list; it never goes on for ever."""
    tokens = {""}
    token = ""
    while True:
        query = {**call.query, "maxResults": _ITEMS, **({"pageToken": token} if token else {})}
        body = await google.get(replace(call, query=query))
        if body is None:
            raise RemoteRefused(f"{what} cannot be listed: the service says that there is no such list")
        page = decoded(_page, body, what)
        yield page.items
        token = page.next_page_token
        if not token:
            return
        if token in tokens:
            raise RemoteUnavailable(f"{what}: the list leads back to a page that was there before")
        tokens.add(token)


def name_in(item: bytes, what: str) -> str:
    """The name of an item; RemoteUnavailable when it has none."""
    return decoded(_named, item, what).name

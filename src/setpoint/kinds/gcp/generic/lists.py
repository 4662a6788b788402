"""The lists of a collection, page by page; each item as the bytes that came."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final

import msgspec

from setpoint.catalogue.rows import KindFacts
from setpoint.clients.google.calls import GoogleCall
from setpoint.clients.google.client import GoogleClient
from setpoint.clients.http import decode_response
from setpoint.core.values.json_limits import MAX_LIST_VALUES
from setpoint.engine.capabilities import ListScope
from setpoint.errors import RemoteRefused, RemoteUnavailable, ResponseTooLarge
from setpoint.kinds.gcp.generic.requests import api_of

# The most that most services allow; and by how much a page is made smaller when it was too large.
_PAGE_SIZE: Final = 500
_SMALLER_PAGE: Final = 10
_TOKEN: Final = "nextPageToken"
_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items: Final = msgspec.json.Decoder(list[msgspec.Raw])


async def listed_pages(row: KindFacts, google: GoogleClient, scope: ListScope) -> AsyncGenerator[Sequence[bytes], None]:
    """The objects of a collection. RemoteRefused when there is no such list; RemoteUnavailable for one without end."""
    method, tokens, token, size = row.methods["list"], {""}, "", _PAGE_SIZE
    # The older APIs, whose paths start with their names, call it otherwise.
    limit = "maxResults" if row.prefix.startswith(f"{row.api}/") else "pageSize"
    while True:
        query = {limit: str(size), **({"pageToken": token} if token else {})}
        try:
            page = await _page(GoogleCall(api_of(row), tuple(scope.split("/")), query), google, scope)
        except ResponseTooLarge:
            if size == 1:
                raise
            size = max(1, size // _SMALLER_PAGE)
            continue
        yield _objects(page, method.items)
        token = _text(page.get(_TOKEN))
        if not token:
            return
        if token in tokens:
            raise RemoteUnavailable(f"{scope}: the list leads back to a page that was there before")
        tokens.add(token)


async def _page(call: GoogleCall, google: GoogleClient, scope: ListScope) -> dict[str, Any]:
    body = await google.get(call)
    if body is None:
        raise RemoteRefused(f"{scope} cannot be listed: the service says that there is no such list")
    return decode_response(_decoder, body, scope, MAX_LIST_VALUES)


def _objects(page: dict[str, Any], name: str) -> Sequence[bytes]:
    found = page.get(name)
    return [] if found is None else [bytes(one) for one in _items.decode(found)]


def _text(raw: Any) -> str:  # noqa: ANN401 - bytes that are not decoded yet
    return "" if raw is None else str(msgspec.json.decode(raw))

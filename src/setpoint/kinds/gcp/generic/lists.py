"""The lists of a collection, page by page; each item as the bytes that came."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import msgspec

from setpoint.catalogue.rows import KindFacts
from setpoint.clients.google.calls import GoogleCall
from setpoint.clients.google.client import GoogleClient, item_name
from setpoint.clients.response_bodies import decode_object, decode_response
from setpoint.core.values.json_limits import MAX_LIST_VALUES
from setpoint.engine.capabilities import ListScope
from setpoint.engine.kind import Location, Present
from setpoint.errors import RemoteRefused, RemoteUnavailable, ResponseTooLarge
from setpoint.kinds.gcp.generic.equivalence import relative_name
from setpoint.kinds.gcp.generic.placement import fields_of_id
from setpoint.kinds.gcp.generic.requests import api_of

if TYPE_CHECKING:
    from setpoint.engine.importing.live_lists import ListedKind

# The most that most services allow; and by how much a page is made smaller when it was too large.
_PAGE_SIZE: Final = 500
_SMALLER_PAGE: Final = 10
_TOKEN: Final = "nextPageToken"
# The segment of a path that is each location.
ANYWHERE: Final = "-"
# Compute Engine has lists of their own for that.
_AGGREGATED: Final = re.compile(r"(projects/[^/]+)/(?:regions|zones)/-/([^/]+)")
_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items: Final = msgspec.json.Decoder(list[msgspec.Raw])
_places: Final = msgspec.json.Decoder(dict[str, dict[str, msgspec.Raw]])


async def listed_pages(
    row: KindFacts, google: GoogleClient, scope: ListScope, parameters: Mapping[str, str] | None = None
) -> AsyncGenerator[Sequence[bytes], None]:
    """The objects of a collection. RemoteRefused when there is no such list; RemoteUnavailable for one without end."""
    # The older APIs, whose paths start with their names, call it otherwise.
    limit = "maxResults" if row.prefix.startswith(f"{row.api}/") else "pageSize"
    aggregated = _AGGREGATED.fullmatch(scope) if row.api == "compute" else None
    path = scope if aggregated is None else f"{aggregated[1]}/aggregated/{aggregated[2]}"
    call = GoogleCall(api_of(row, scope), tuple(path.split("/")))
    if aggregated is not None:
        async for page in pages_at(replace(call, query=parameters or {}), "items", google, limit=limit):
            yield [one for one in page if is_in(location_in_item(one, scope).rpartition("/")[0], scope)]
        return
    async for page in pages_at(replace(call, query=parameters or {}), row.methods["list"].items, google, limit=limit):
        yield page


async def pages_at(
    call: GoogleCall, items: str, google: GoogleClient, *, limit: str = "pageSize"
) -> AsyncGenerator[Sequence[bytes], None]:
    """The objects that a call lists as its member `items`; `limit` is the parameter for the size of a page."""
    tokens, token, size, scope = {""}, "", _PAGE_SIZE, "/".join(call.parts)
    while True:
        query = {**call.query, limit: str(size), **({"pageToken": token} if token else {})}
        try:
            page = await _page(replace(call, query=query), google, scope)
        except ResponseTooLarge:
            if size == 1:
                raise
            size = max(1, size // _SMALLER_PAGE)
            continue
        yield _objects(page, items)
        token = _text(page.get(_TOKEN))
        if not token:
            return
        if token in tokens:
            raise RemoteUnavailable(f"{scope}: the list leads back to a page that was there before")
        tokens.add(token)


def live_objects_of(kind: "ListedKind", scope: ListScope) -> AsyncGenerator[tuple[Location, Present[Any]], None]:
    """The objects of a collection with their locations. Imported when they are asked for: steps do without."""
    from setpoint.engine.importing.live_lists import listed_objects

    return listed_objects(kind, scope)


def listed_location(row: KindFacts, item: bytes, scope: ListScope) -> Location:
    """Where an object in a list is: in the collection, or where it says itself."""
    if ANYWHERE in scope.split("/"):
        return location_in_item(item, scope)
    return Location(f"{scope}/{listed_id(row, item, scope)}")


def listed_id(row: KindFacts, item: bytes, scope: ListScope) -> str:
    """The id of an object in a list: where a creation has it, if the list does too; else the last part of its name."""
    if fields := fields_of_id(row):
        members = decode_object(item, scope)
        return "/".join(str(members.get(name, "")) for name in fields)
    found: Any = None
    if row.id.where == "body" and row.id.name != "name":
        found = decode_object(item, scope)
        for step in row.id.name.split("."):
            found = found.get(step) if isinstance(found, dict) else None
    return (found if isinstance(found, str) and found else item_name(item, scope)).rpartition("/")[2]


async def _page(call: GoogleCall, google: GoogleClient, scope: str) -> dict[str, Any]:
    body = await google.get(call)
    if body is None:
        raise RemoteRefused(
            f"{scope} cannot be listed: the service says that there is no such list", HTTPStatus.NOT_FOUND
        )
    return decode_response(_decoder, body, scope, MAX_LIST_VALUES)


def _objects(page: dict[str, Any], name: str) -> Sequence[bytes]:
    """The items of a page; of one that has them by place, those of each."""
    found = page.get(name)
    if found is None:
        return []
    if not bytes(found).startswith(b"{"):
        return [bytes(one) for one in _items.decode(found)]
    lists = (below for place in _places.decode(found).values() for key, below in place.items() if key != "warning")
    return [bytes(one) for below in lists for one in _items.decode(below)]


def is_in(collection: str, scope: str) -> bool:
    """Whether a collection is this one, or one of those of which each location is meant."""
    if ANYWHERE not in scope.split("/"):
        return collection == scope
    pairs = zip_longest(collection.split("/"), scope.split("/"))
    return all(one == other or (other == ANYWHERE and one) for one, other in pairs)


def location_in_item(item: bytes, scope: str) -> Location:
    """The location that an item of a list tells itself; RemoteUnavailable for one that does not."""
    members = decode_object(item, scope)
    for name in ("selfLink", "name"):
        found = relative_name(str(members.get(name) or ""))
        if "/" in found:
            return Location(found)
    raise RemoteUnavailable(f"{scope}: the list does not say where its objects are: name their locations")


def _text(raw: Any) -> str:  # noqa: ANN401 - bytes that are not decoded yet
    return "" if raw is None else str(msgspec.json.decode(raw))

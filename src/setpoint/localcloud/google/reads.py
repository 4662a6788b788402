"""Requests to collections, and the methods that read: get, and list with pages and filters."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final

from setpoint.catalogue.rows import MethodFacts
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.localcloud import api_errors
from setpoint.localcloud.faults import Faults
from setpoint.localcloud.google import api_words
from setpoint.localcloud.google.collections import ApiCollection, ApiPath, collection_of
from setpoint.localcloud.google.operations import CatalogueObject, CatalogueState
from setpoint.localcloud.google.outputs import ObjectAddress, reference_texts, while_created, with_links
from setpoint.localcloud.google.validation import camel, invalid_argument
from setpoint.localcloud.routing import ServiceCall
from setpoint.localcloud.schema import JsonBody

_ALWAYS_THERE: Final = frozenset({"projects", "folders", "organizations", "billingAccounts", "locations"})
_MAX_PAGE: Final = 1000
_DEFAULT_PAGE: Final = 500


@dataclass(slots=True)
class CatalogueServices:
    """All services of the catalogue: their state, the active faults, and how long operations take."""

    state: CatalogueState
    faults: Faults
    operation_seconds: float
    # Whether an object of a hand-written service exists.
    exists_elsewhere: Callable[[str], bool]
    # Whether what an object refers to must exist, not only what it is in.
    checks_references: bool = False


@dataclass(frozen=True, slots=True)
class CollectionCall:
    """A request to a method of a collection."""

    collection: ApiCollection
    method: str
    facts: MethodFacts
    # Without the custom verb after a colon.
    path: ApiPath
    query: Mapping[str, str]
    body: object
    now: datetime
    if_match: str = ""

    def address(self, name: str | None = None) -> ObjectAddress:
        """The address of the object at the path, or of another one in the same collection."""
        return ObjectAddress(self.collection, self.path.name if name is None else name)


def address_of(api: str, name: str) -> ObjectAddress:
    """The address of an object, by the name that it has in its API."""
    collection = collection_of(api, ApiPath("", "", tuple(name.split("/"))))
    if collection is None:
        raise api_errors.not_found()
    return ObjectAddress(collection, name)


def body_of(call: ServiceCall, *members: str) -> JsonBody:
    """The body of a request that may have these members and no other."""
    body = call.body if call.body is not None else {}
    if not isinstance(body, dict):
        raise api_errors.bad_json("The body is not an object.")
    for name in body:
        if camel(name) not in members:
            raise api_errors.unknown_name(name, "")
    return {camel(name): value for name, value in body.items()}


def check_parent(services: CatalogueServices, address: ObjectAddress) -> None:
    """Refuses an object whose container, itself of the catalogue, does not exist."""
    parts = address.name.split("/")
    for length in range(len(parts) - 2, 1, -2):
        if parts[length - 2] in _ALWAYS_THERE:
            return
        holder = collection_of(address.collection.api, ApiPath("", "", tuple(parts[:length])))
        container = ObjectAddress(holder or address.collection, "/".join(parts[:length]))
        if holder is not None and "create" in holder.methods and container.key not in services.state.objects:
            raise api_words.not_found(container)
        if holder is None and address.collection.api == "storage" and not services.exists_elsewhere(container.name):
            raise api_words.not_found(container)


def check_references(services: CatalogueServices, address: ObjectAddress, body: JsonBody) -> None:
    """Refuses an object that refers to one of the same API that does not exist, where the cloud is that strict."""
    if not services.checks_references:
        return
    for at, text in reference_texts(address.collection.shape, with_links(address, body)):
        name = text.partition("/compute/v1/")[2] or text
        target = collection_of(address.collection.api, ApiPath("", "", tuple(name.split("/"))))
        if target is not None and f"{target.api}/{name}" not in services.state.objects:
            raise api_words.no_referent(ObjectAddress(target, name), at)


def find(services: CatalogueServices, address: ObjectAddress) -> CatalogueObject:
    """The object at an address; one of a collection that has no creation exists from the start."""
    found = services.state.objects.get(address.key)
    if found is not None:
        return found
    if not address.collection.is_single:
        raise api_words.not_found(address)
    return CatalogueObject({"name": address.name})


def get_object(services: CatalogueServices, call: CollectionCall) -> JsonBody:
    """The object; while it is being created, its state says so."""
    found = find(services, call.address())
    operation = services.state.operations.get(found.pending)
    if operation is None or operation.verb != "create":
        return found.body
    return while_created(call.collection, found.body)


def list_objects(services: CatalogueServices, call: CollectionCall) -> JsonBody:
    """A page of the objects in a parent; `-` in its path is any parent."""
    address = call.address()
    if "-" not in call.path.segments:
        check_parent(services, call.address(f"{address.name}/any"))
    found = sorted(_below(services, call, address.key.split("/")))
    after = call.query.get("pageToken", "")
    left = [key for key in found if key > after]
    size = _page_size(call)
    items = [services.state.objects[key].body for key in left[:size]]
    kept = [one for one in items if _passes(call.query.get("filter", ""), one) and _is_asked_for(call, one)]
    result: JsonBody = {call.collection.list_key: kept} if kept or call.collection.api == "compute" else {}
    if call.collection.api in ("compute", "dns", "bigquery"):
        result = {"kind": f"{call.collection.api}#{call.collection.singular}List", **result}
    return {**result, "nextPageToken": left[size - 1]} if len(left) > size else result


def _is_asked_for(call: CollectionCall, body: JsonBody) -> bool:
    """Whether a list shows an object: of the parent in the query, and not one that was deleted a short time ago."""
    if "parent" in call.facts.query and body.get("parent", "") != call.query.get("parent", ""):
        return False
    return call.query.get("showDeleted") == "true" or not is_deleted(call.collection, body)


def is_deleted(collection: ApiCollection, body: JsonBody) -> bool:
    """Whether an object was deleted, and the service keeps it for a time."""
    return any(body.get(name) in values for name, values in collection.row.absent.items())


def _below(services: CatalogueServices, call: CollectionCall, parent: list[str]) -> Iterator[str]:
    for key in services.state.objects:
        parts = key.split("/")
        if len(parts) == len(parent) + 1 and _same_parts(parent, parts[:-1]):
            yield key


def _same_parts(pattern: list[str], parts: list[str]) -> bool:
    return all(want in ("-", part) for want, part in zip(pattern, parts, strict=True))


def _page_size(call: CollectionCall) -> int:
    text = call.query.get("pageSize") or call.query.get("maxResults") or "0"
    if not text.isdecimal():
        raise api_errors.wrong_value("page_size", "TYPE_INT32", text)
    return min(int(text) or _DEFAULT_PAGE, _MAX_PAGE)


_TERM: Final = re.compile(r"\(?\s*([\w.]+)\s*(=|:|eq)\s*\"?([^\s\"()]*)\"?\s*\)?")


def _passes(text: str, body: JsonBody) -> bool:
    """Whether an object passes a filter: terms such as `name = x`, joined by AND."""
    for term in re.split(r"\s+AND\s+", text) if text else ():
        found = _TERM.fullmatch(term.strip())
        if found is None:
            raise invalid_argument(f"Invalid filter: the local cloud does not understand '{term}'.")
        here: object = body
        for step in found[1].split("."):
            here = here.get(step) if isinstance(here, dict) else None
        if str(here) != found[3]:
            return False
    return True

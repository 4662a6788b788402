"""What deletes an object; and retirement of one that no method deletes: what is in it is destroyed or cleared."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from setpoint.catalogue.rows import KindFacts, RetirementFacts
from setpoint.clients.google.calls import GoogleCall
from setpoint.clients.google.client import GoogleClient
from setpoint.clients.response_bodies import decode_object
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import Location
from setpoint.kinds.gcp.generic.lists import pages_at
from setpoint.kinds.gcp.generic.requests import GoogleRequest, object_call, path_call, query_of


def delete_method(row: KindFacts, spec: JsonObject) -> str | None:
    """The method that the spec wants in place of a deletion; empty for none, None for a deletion."""
    chosen = (condition.partition("=") for condition in row.delete_methods)
    return next((row.delete_methods[f"{name}={value}"] for name, _, value in chosen if spec.get(name) == value), None)


def deletion(row: KindFacts, location: Location, spec: JsonObject) -> GoogleRequest:
    """The request that deletes the object."""
    if other := delete_method(row, spec):
        return GoogleRequest("POST", replace(object_call(row, location), method=other), {})
    method = row.methods["delete"]
    query = query_of(row, method, location, spec)
    if method.verb == "DELETE":
        return GoogleRequest(method.verb, object_call(row, location, query))
    return GoogleRequest(method.verb, path_call(row, method, location, query), {})


async def empty_first(row: KindFacts, live: Mapping[str, Any], location: Location, google: GoogleClient) -> None:
    """Empties the members that keep the service from a deletion."""
    members = [name for name in row.emptied_first if live.get(name)]
    if members:
        await google.patch(object_call(row, location), {name: [] for name in members})


async def retire(row: KindFacts, facts: RetirementFacts, location: Location, google: GoogleClient) -> None:
    """Makes the object unusable. What was done before is not done again."""
    call = object_call(row, location)
    children = GoogleCall(call.service, (*call.parts, facts.collection))
    async for page in pages_at(children, facts.collection, google):
        for item in page:
            child = decode_object(item, location)
            if child.get("state") not in facts.done:
                own = str(child.get("name", "")).rpartition("/")[2]
                await google.post(GoogleCall(call.service, (*children.parts, own), method=facts.method), {})
    await _clear(row, facts, location, google)


async def _clear(row: KindFacts, facts: RetirementFacts, location: Location, google: GoogleClient) -> None:
    live = decode_object(await google.get(object_call(row, location)), location)
    members = [name for name in facts.clears if name in live]
    if members:
        await google.patch(object_call(row, location, {"updateMask": ",".join(members)}), {})

"""Retirement of an object that no method deletes: each object in it is destroyed, and members are cleared."""

from typing import Any, Final

import msgspec

from setpoint.catalogue.rows import KindFacts, RetirementFacts
from setpoint.clients.google.calls import GoogleCall
from setpoint.clients.google.client import GoogleClient
from setpoint.clients.http import decode_response
from setpoint.engine.kind import Location
from setpoint.kinds.gcp.generic.lists import pages_at
from setpoint.kinds.gcp.generic.requests import object_call

_decoder: Final = msgspec.json.Decoder(dict[str, Any])


async def retire(row: KindFacts, facts: RetirementFacts, location: Location, google: GoogleClient) -> None:
    """Makes the object unusable. What was done before is not done again."""
    call = object_call(row, location)
    children = GoogleCall(call.service, (*call.parts, facts.collection))
    async for page in pages_at(children, facts.collection, google):
        for item in page:
            child = decode_response(_decoder, item, location)
            if child.get("state") not in facts.done:
                own = str(child.get("name", "")).rpartition("/")[2]
                await google.post(GoogleCall(call.service, (*children.parts, own), method=facts.method), {})
    await _clear(row, facts, location, google)


async def _clear(row: KindFacts, facts: RetirementFacts, location: Location, google: GoogleClient) -> None:
    body = await google.get(object_call(row, location))
    live = {} if body is None else decode_response(_decoder, body, location)
    members = [name for name in facts.clears if name in live]
    if members:
        await google.patch(object_call(row, location, {"updateMask": ",".join(members)}), {})

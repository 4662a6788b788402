"""Objects that are elements of a list in another object, such as the NATs of a router.

Each write sends the whole list, as it was read the moment before: the elements of other writers stay. The resources of
this process take turns on the parent, which has no version that a write could name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from setpoint.catalogue.rows import InsideFacts
from setpoint.clients.google.calls import GoogleCall
from setpoint.clients.response_bodies import decode_object
from setpoint.core.plan import PlannedWrite
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.capabilities import ListScope
from setpoint.engine.contention.operation_queue import OperationScope
from setpoint.engine.kind import Intent, Location, Present, RemoteOperation
from setpoint.engine.resource import Resource
from setpoint.errors import AlreadyExists, RemoteConflict, RemoteRefused
from setpoint.kinds.gcp.generic.creating.creations import creation_members
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.operations import started_operation
from setpoint.kinds.gcp.generic.placement import segments
from setpoint.kinds.gcp.generic.requests import api_of, update_members
from setpoint.kinds.gcp.generic.spec_types import GoogleObject


class PartKind(GoogleKind):
    """A kind whose objects are elements of a list in their parent."""

    def operation_scope(self, location: Location) -> OperationScope:
        """See SupportsOperationScope: the parent."""
        return OperationScope("/".join(self._parent(location)))

    def list_scope_of(self, location: Location) -> ListScope | None:
        """No list has whole objects."""
        return None

    def _parent(self, location: Location) -> tuple[str, ...]:
        return segments(self.row, location)[:-2]

    @property
    def _inside(self) -> InsideFacts:
        assert self.row.inside is not None
        return self.row.inside

    async def read(self, location: Location) -> bytes | None:
        """The element of the list; None when it, or the parent, is not there."""
        own = segments(self.row, location)[-1]
        for one in await self._elements(location) or ():
            if one.get(self._inside.key) == own:
                return msgspec.json.encode(one)
        return None

    async def _elements(self, location: Location) -> Sequence[Mapping[str, Any]] | None:
        """The list of the parent as it is now; None when there is no parent."""
        body = await self.google.get(GoogleCall(api_of(self.row, location), self._parent(location)))
        if body is None:
            return None
        found = decode_object(body, location).get(self._inside.list)
        return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        """Adds the element to the list. AlreadyExists when it is there by now."""
        location, own = intent.location, segments(self.row, intent.location)[-1]
        others = await self._elements(location)
        if others is None:
            parent = "/".join(self._parent(location))
            raise RemoteRefused(f"{location} cannot be created: {parent} does not exist")
        if any(one.get(self._inside.key) == own for one in others):
            raise AlreadyExists(f"{location} exists already")
        element = {**creation_members(self.row, wanted, location), self._inside.key: own}
        return await self._write(location, [*others, element], "create")

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[GoogleObject]
    ) -> RemoteOperation | None:
        """Replaces the element; RemoteConflict when it is not there any more."""
        location, own, live = intent.location, segments(self.row, intent.location)[-1], before.whole
        assert isinstance(live, Mapping)
        changed = update_members(self.row, wanted, write, live)
        now = await self._elements(location) or ()
        if all(one.get(self._inside.key) != own for one in now):
            raise RemoteConflict(f"{location} is not there any more")
        elements = [_changed(one, changed) if one.get(self._inside.key) == own else one for one in now]
        return await self._write(location, elements, "update")

    async def delete(
        self, location: Location, before: Present[GoogleObject], resource: Resource
    ) -> RemoteOperation | None:
        """Takes the element out of the list."""
        own = segments(self.row, location)[-1]
        now = await self._elements(location)
        rest = [one for one in now or () if one.get(self._inside.key) != own]
        return None if now is None or len(rest) == len(now) else await self._write(location, rest, "delete")

    async def _write(self, location: Location, elements: list[Mapping[str, Any]], verb: str) -> RemoteOperation | None:
        call = GoogleCall(api_of(self.row, location), self._parent(location))
        answer = await self.google.patch(call, {self._inside.list: elements})
        return started_operation(self.row, verb, answer, location)


def _changed(element: Mapping[str, Any], changed: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in {**element, **changed}.items() if value is not None}

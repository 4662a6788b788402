"""Kinds whose service makes the ids of their objects: never created twice, and none of another author's is adopted."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import field, replace
from http import HTTPStatus
from typing import Any, Final

from setpoint.catalogue.rows import KindFacts
from setpoint.clients.google.calls import GoogleCall
from setpoint.clients.response_bodies import decode_object
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.capabilities import ImportPlace, ListScope
from setpoint.engine.kind import (
    Absent,
    Intent,
    Location,
    Present,
    RemoteOperation,
    ResolvedReferences,
    Unchanged,
    Written,
)
from setpoint.engine.management import MARK_LABEL
from setpoint.engine.resource import Resource
from setpoint.engine.state import location_in
from setpoint.errors import RemoteConflict, RemoteInvalid, RemoteRefused, UserError
from setpoint.kind.typed_spec import field_invalid
from setpoint.kinds.gcp.generic.creating.creations import creation
from setpoint.kinds.gcp.generic.importing.import_scopes import parts_of_scope, scope_of_parent
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.lists import listed_pages
from setpoint.kinds.gcp.generic.live_bodies import is_absent
from setpoint.kinds.gcp.generic.members import row_for, to_members
from setpoint.kinds.gcp.generic.operations import finished_operation, started_operation
from setpoint.kinds.gcp.generic.part_requests import value_at
from setpoint.kinds.gcp.generic.placement import variables_of
from setpoint.kinds.gcp.generic.requests import GoogleRequest, api_of, object_call
from setpoint.kinds.gcp.generic.spec_types import GoogleObject
from setpoint.kinds.gcp.generic.variants.searches import ObjectSearch, key_digest
from setpoint.kinds.gcp.shared.config_connector import resource_id

_RESOURCE_ID: Final = "resourceID"
_PARENT: Final = "parent"
# Between the name of the operation of a creation and the uid of the resource.
_OF: Final = "~"
# The most objects with the same key that a search can tell from the one that it is for.
_MOST_KNOWN: Final = 20


@dataclass(slots=True)
class MadeIdKind(GoogleKind):
    """A kind with ids that the service makes."""

    # By the uid of a resource: the id in the answer of an operation that created its object.
    made: dict[str, str] = field(default_factory=dict)

    # --- Locations ----------------------------------------------------------------------------------------------------

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """The object that the author names by its id; else the one on record, or the search for it."""
        if resource.spec.get(_RESOURCE_ID):
            placed = self._placed(resource, resolved)
            return Location(f"{self._collection(resource, resolved)}/{placed.own_id().rpartition('/')[2]}")
        search, recorded = self._search(resource, resolved), location_in(resource.status)
        if recorded is None:
            return search.location
        before = ObjectSearch.parse(recorded)
        is_same = recorded.rpartition("/")[0] == search.collection if before is None else before.is_same(search)
        return recorded if is_same else search.location

    def creation_location(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """See SupportsServiceIds."""
        if resource.spec.get(_RESOURCE_ID):
            raise field_invalid(
                resource,
                "spec.resourceID",
                f" is {resource_id(resource)!r}, and there is no such object. The service makes the ids of new ones: "
                "write the id of an object that exists, or leave the field out",
            )
        return self._search(resource, resolved).location

    def _search(self, resource: Resource, resolved: ResolvedReferences) -> ObjectSearch:
        collection = self._collection(resource, resolved)
        if self.row.labels:
            return ObjectSearch(collection, resource.uid)
        spec = self.declare(resource, resolved)["spec"]
        assert isinstance(spec, Mapping)
        members = to_members(spec, row_for(self.row, resource.spec).fields)
        parent = members.get(_PARENT) if self._asks_for_parent else None
        return ObjectSearch(collection, resource.uid, key_digest(resource.uid, self._key(members)), str(parent or ""))

    def _collection(self, resource: Resource, resolved: ResolvedReferences) -> str:
        return self._placed(resource, resolved).collection()

    @property
    def _asks_for_parent(self) -> bool:
        return _PARENT in self.row.methods["list"].query

    def _key(self, members: Mapping[str, Any]) -> list[Json]:
        return [value_at(members, path) for path in self.row.id.key]

    def list_scope_of(self, location: Location) -> ListScope | None:
        """The collection of the object; None for a search."""
        is_listed = not self._asks_for_parent and ObjectSearch.parse(location) is None
        return GoogleKind.list_scope_of(self, location) if is_listed else None

    def import_scopes(self, place: ImportPlace) -> Sequence[ListScope]:
        """See SupportsImport: some collections are listed by parent."""
        if not self._asks_for_parent:
            return GoogleKind.import_scopes(self, place)
        return [scope_of_parent(self.row.name.rpartition("/")[0], place)]

    async def pages(self, list_scope: ListScope) -> AsyncGenerator[Sequence[bytes], None]:
        """See SupportsList. UserError where the service asks for the parent."""
        collection, parameters = parts_of_scope(list_scope)
        try:
            async for page in listed_pages(self.row, self.google, collection, parameters):
                yield page
        except (RemoteInvalid, RemoteRefused) as error:
            if parameters or not self._asks_for_parent:
                raise
            raise UserError(f"{error}; name the parent by --parent, such as organizations/NUMBER") from error

    def location_of(self, item: bytes, list_scope: ListScope) -> Location:
        """See SupportsList."""
        return GoogleKind.location_of(self, item, parts_of_scope(list_scope)[0])

    # --- Reading ------------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[GoogleObject] | Unchanged:
        """Reads the object, or searches for it."""
        search = ObjectSearch.parse(location)
        if search is None:
            return await GoogleKind.observe(self, location, known)
        made = self.made.pop(search.uid, "")
        found = await GoogleKind.observe(self, search.found(made)) if made else Absent()
        if isinstance(found, Present):
            return replace(found, location=search.found(made))
        return await self._found(search)

    async def _found(self, search: ObjectSearch) -> Absent | Present[GoogleObject]:
        if search.key and search.known is None:
            return Absent(search.among(await self._known(search)).location)
        listed = [one async for one in self._listed(search)]
        found = {own_id: body for own_id, body in listed if await self._is_own(search, own_id, body)}
        if len(found) > 1 or (found and search.key and not self.row.id.key):
            raise UserError(
                f"{search.collection} has objects that may be the one that was created, and it cannot be told which: "
                f"{', '.join(sorted(found))}. Write the id of the right one to spec.resourceID"
            )
        for own_id, body in found.items():
            return self._at(search.found(own_id), body)
        return Absent()

    def _at(self, location: Location, body: Mapping[str, Any]) -> Present[GoogleObject]:
        return replace(self.present(body, location), location=location)

    async def _listed(self, search: ObjectSearch) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """The objects of the collection by their ids; none when what it is in is not there."""
        parameters = {_PARENT: search.parent} if search.parent else {}
        try:
            async for page in listed_pages(self.row, self.google, ListScope(search.collection), parameters):
                for item in page:
                    body = decode_object(item, search.collection)
                    if not is_absent(self.row, body):
                        yield made_id(body), body
        except RemoteRefused as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise

    async def _known(self, search: ObjectSearch) -> tuple[str, ...]:
        """What tells the objects that are there already from the one that is to be created."""
        if self.row.id.key_method:
            numbers = [int(own_id) async for own_id, _ in self._listed(search) if own_id.isdecimal()]
            return (str(max(numbers, default=0)),)
        found = sorted([own_id async for own_id, body in self._listed(search) if search.is_for(self._key(body))])
        if len(found) > _MOST_KNOWN:
            raise UserError(
                f"{search.collection} has {len(found)} objects with the same {', '.join(self.row.id.key)} already, and "
                "a new one could not be told from them: choose another value"
            )
        return tuple(found)

    async def _is_own(self, search: ObjectSearch, own_id: str, body: Mapping[str, Any]) -> bool:
        """Whether an object of the collection is the one that the search is for."""
        if not search.key:
            labels = body.get(self.row.labels)
            return isinstance(labels, Mapping) and labels.get(MARK_LABEL) == search.uid
        known = search.known or ()
        if not self.row.id.key_method:
            return own_id not in known and search.is_for(self._key(body))
        if not own_id.isdecimal() or int(own_id) <= max((int(one) for one in known), default=0):
            return False
        return search.is_for(self._key(await self._key_members(search.found(own_id))))

    async def _key_members(self, location: Location) -> Mapping[str, Any]:
        """The key members of an object that does not have them itself; none where they cannot be read any more."""
        call = object_call(self.row, location)
        try:
            body = await self.google.get(GoogleCall(call.service, call.parts, method=self.row.id.key_method))
        except RemoteRefused as error:
            if error.status != HTTPStatus.BAD_REQUEST:
                raise
            body = None
        return decode_object(body, location)

    def outputs(self, found: Mapping[str, Any], location: Location) -> JsonObject:
        """What the status shows, with the name and the id that the service made."""
        own = location.rpartition("/")[2]
        return {"name": location, _id_output(self.row): own, **GoogleKind.outputs(self, found, location)}

    # --- Writes -------------------------------------------------------------------------------------------------------

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | Written[GoogleObject] | None:
        """Creates the object, with the mark of its resource where it has labels."""
        search = ObjectSearch.parse(intent.location)
        assert search is not None, "an object with an id is never created"
        spec = intent.resource.spec
        request = self._marked(creation(row_for(self.row, spec), intent.location, wanted, spec), search)
        if self.row.title and isinstance(request.body, Mapping):
            request = replace(request, body={self.row.title: intent.resource.ref.name, **request.body})
        try:
            answer = await self.send(request, is_creation=True)
        except RemoteConflict as error:
            raise RemoteRefused(
                f"{error}. If that object is the one that is meant, write its id to spec.resourceID"
            ) from error
        operation = started_operation(self.row, "create", answer, intent.location)
        body = made_object(decode_object(answer, intent.location))
        if operation is not None:
            return RemoteOperation(f"{operation.name}{_OF}{search.uid}")
        if not made_id(body):
            return None
        return Written(self._at(search.found(made_id(body)), body))

    def _marked(self, request: GoogleRequest, search: ObjectSearch) -> GoogleRequest:
        if not self.row.labels or not isinstance(request.body, Mapping):
            return request
        wrap, body = self.row.methods["create"].wrap, dict[str, Any](request.body)
        inner = dict[str, Any](body[wrap]) if wrap else body
        inner[self.row.labels] = {**(inner.get(self.row.labels) or {}), MARK_LABEL: search.uid}
        return replace(request, body={**body, wrap: inner} if wrap else inner)

    async def poll(self, operation: RemoteOperation) -> bool:
        """Whether the operation is done; of a creation, the id of the object is known then."""
        name, _, uid = operation.name.partition(_OF)
        answer = await finished_operation(api_of(self.row, name), RemoteOperation(name), self.google)
        if answer is not None and uid and made_id(made_object(answer)):
            self.made[uid] = made_id(made_object(answer))
        return answer is not None

    async def delete(
        self, location: Location, before: Present[GoogleObject], resource: Resource
    ) -> RemoteOperation | Absent | None:
        """Deletes the object."""
        return await GoogleKind.delete(self, before.location or location, before, resource)


def made_object(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object in the answer to a creation, which may be that of an operation that is done."""
    found = answer.get("response")
    is_operation = "operations/" in str(answer.get("name") or "")
    return (found if isinstance(found, Mapping) else {}) if is_operation else answer


def made_id(body: Mapping[str, Any]) -> str:
    """The id of an object, from its name."""
    return str(body.get("name") or body.get("id") or "").rpartition("/")[2]


def _id_output(row: KindFacts) -> str:
    """The name of the status field for the id: `folderId`; a version is just that."""
    variable = variables_of(row.name)[-1]
    return variable if variable == "version" else f"{variable}Id"

"""Import of what is on a server: which objects there are, and what a manifest says so that one is found again."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from msgspec import Struct

from setpoint.kind import (
    ImportPlace,
    Json,
    ListScope,
    LiveIdentity,
    Location,
    Present,
    ResolvedReferences,
    Resource,
    UserError,
)
from setpoint_postgresql.connection import PostgresKind
from setpoint_postgresql.server import ObjectAddress, is_name

S = TypeVar("S", bound=Struct)
L = TypeVar("L", bound=Struct)
# Objects with smaller numbers were made by initdb: they come with each server.
_FIRST_NUMBER: Final = 16384
_NO_SERVER: Final = "on which server? Name it as for psql: PGHOST, PGPORT, PGUSER, PGPASSWORD"


def _names(table: str, column: str) -> Mapping[int, str]:
    """The query for the names in a catalog; it has no keys."""
    rest = f"oid >= {_FIRST_NUMBER} AND {column} !~ '^pg_' AND %s::text[] IS NOT NULL"
    return {0: f"SELECT {column}, '' FROM {table} WHERE {rest}"}


_NAMES: Final[Mapping[str, Mapping[int, str]]] = {
    "role": _names("pg_roles", "rolname"),
    "database": _names("pg_database", "datname"),
    "schema": _names("pg_namespace", "nspname"),
}


class ImportedKind(PostgresKind[S, L], Generic[S, L]):
    """See SupportsImport: its objects are found on the server that the variables of libpq name."""

    def parent_kinds(self) -> Sequence[tuple[str, str]]:
        """None: its objects belong to the server."""
        return ()

    def places(self, place: ImportPlace) -> Iterable[dict[str, Json]]:
        """What a spec says of where the objects are, for each place that has some: nothing of the server."""
        return ({},)

    def place_of(self, address: ObjectAddress) -> dict[str, Json]:
        """What a spec says of where the object at an address is."""
        return {}

    def import_scopes(self, place: ImportPlace) -> Sequence[ListScope]:
        """The server, or what it has of the objects that those of this kind are in."""
        if not self._environment.get("PGHOST"):
            raise UserError(_NO_SERVER)
        return [ListScope(self._located("any", spec).rpartition("/")[0]) for spec in self.places(place)]

    async def live_objects(self, list_scope: ListScope) -> AsyncGenerator[tuple[Location, Present[L]], None]:
        """The objects: one query for their names, and one for all that they are."""
        address = self.address(Location(f"{list_scope}/any"))
        spec = self.place_of(address)
        server = (await self.target(self._located("any", spec))).server
        client = await self.client()
        with self.context.reading():
            names = await client.query(server, address.database or server.database, _NAMES[self.word], [])
        locations = [self._located(name, spec) for name in sorted(names) if is_name(name)]
        for location, found in (await self.observe_many(locations)).items():
            if isinstance(found, Present):
                yield location, found

    def identity_at(self, location: Location) -> LiveIdentity:
        """The inverse of `locate`. How to connect is left to the variables of libpq."""
        address = self.address(location)
        return LiveIdentity(address.name, self.place_of(address))

    def _located(self, name: str, spec: Mapping[str, Json]) -> Location:
        """Where an object is; from here on it is known how to connect to it."""
        document: dict[str, Json] = {
            "apiVersion": f"{self.group}/{self.version}",
            "kind": self.name,
            "metadata": {"name": "import", "namespace": "default"},
            "spec": {**spec, "resourceID": name},
        }
        return self.locate(Resource(document), ResolvedReferences())


class ImportedPart(ImportedKind[S, L], Generic[S, L]):
    """The same for objects that are in a database."""

    def parent_kinds(self) -> Sequence[tuple[str, str]]:
        """Databases."""
        return ((self.group, "PostgresDatabase"),)

    def places(self, place: ImportPlace) -> Iterable[dict[str, Json]]:
        """The databases of this server."""
        for one in place.known:
            if one.kind in self.parent_kinds():
                spec = _in_database(self.address(one.location).name)
                if self._located("any", spec).startswith(f"{one.location}/"):
                    yield spec

    def place_of(self, address: ObjectAddress) -> dict[str, Json]:
        """The database."""
        return _in_database(address.database)


def _in_database(name: str) -> dict[str, Json]:
    return {"databaseRef": {"external": name}}

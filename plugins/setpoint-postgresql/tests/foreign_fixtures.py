"""The fixtures of foreign servers and user mappings for the lifecycle contract."""

from collections.abc import Mapping
from typing import Any, ClassVar

from postgres_fixtures import DATABASE, LACKING, OWNER, READER, PostgresFixture, make_world, target
from setpoint import MISSING
from setpoint.kind import Json
from setpoint.testing import ImmutableChange, MovedObject, Part, ReferringSpec, Spec, SpecifiedField, UnspecifiedField
from setpoint_postgresql.foreign.mappings import PostgresUserMappingKind
from setpoint_postgresql.foreign.servers import PostgresForeignServerKind

FROM_SECRET = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}


class ForeignServerFixture(PostgresFixture):
    """A server of postgres_fdw."""

    kind_type = PostgresForeignServerKind
    name = "some-server"
    database = DATABASE
    bare: ClassVar[Spec] = {"databaseRef": {"external": DATABASE}, "foreignDataWrapper": "postgres_fdw"}
    field = SpecifiedField("spec.serverVersion", "one", "two", "three")
    unspecified = UnspecifiedField("spec.comment", theirs="theirs", pruned="")
    moved = MovedObject({**bare, "serverVersion": "one", "resourceID": "some-other-server"}, "some-other-server")
    abandoning: ClassVar[Spec] = {**bare, "serverVersion": "one", "deletionPolicy": "ABANDON"}
    with_secret: ClassVar[Spec] = {**bare, "serverVersion": "one", "secretOptions": {"host": FROM_SECRET}}
    immutable = ImmutableChange(
        {**bare, "serverVersion": "one", "serverType": "a"},
        {**bare, "serverVersion": "one", "serverType": "b"},
        'spec.serverType cannot change from "a" to "b"',
    )
    referring = ReferringSpec(
        {**bare, "databaseRef": {"name": DATABASE}, "serverVersion": "one"},
        target("PostgresDatabase", DATABASE),
        f"reference PostgresDatabase default/{DATABASE}",
    )
    without: ClassVar[Mapping[Part, str]] = {
        **LACKING,
        Part.PRUNING: "it takes two fields with defaults beside the specified one: there is the comment alone",
    }
    members: ClassVar[Mapping[str, tuple[str, str]]] = {
        "serverVersion": (
            "SELECT srvversion FROM pg_foreign_server WHERE srvname = 'some-server'",
            'ALTER SERVER "some-server" VERSION {}',
        ),
        "comment": (
            "SELECT coalesce(obj_description(oid, 'pg_foreign_server'), '') FROM pg_foreign_server "
            "WHERE srvname = 'some-server'",
            'COMMENT ON SERVER "some-server" IS {}',
        ),
    }

    def set_up(self) -> None:
        make_foreign_world(self)
        for name in self.objects():
            self.execute(f'DROP SERVER "{name}" CASCADE')

    def objects(self) -> list[str]:
        rows = self.execute("SELECT srvname FROM pg_foreign_server WHERE srvname LIKE 'some-%' ORDER BY 1")
        return [name for (name,) in rows]

    def create_outside(self, value: Json) -> None:
        self.execute(f"CREATE SERVER \"some-server\" VERSION '{value}' FOREIGN DATA WRAPPER postgres_fdw")

    def delete_outside(self) -> None:
        self.execute('DROP SERVER "some-server"')

    def holds_secret(self, text: str) -> bool:
        return self.execute("SELECT srvoptions FROM pg_foreign_server WHERE srvname = 'some-server'") == [
            ([f"host={text}"],)
        ]


class UserMappingFixture(PostgresFixture):
    """How a role logs in to a server of postgres_fdw."""

    kind_type = PostgresUserMappingKind
    name = "some-mapping"
    database = DATABASE
    bare: ClassVar[Spec] = {
        "databaseRef": {"external": DATABASE},
        "serverRef": {"external": "mapped"},
        "roleRef": {"external": READER},
    }
    minimal: ClassVar[Spec] = {**bare, "options": {"user": "one"}}
    field = SpecifiedField("spec.options.user", "one", "two", "three")
    unspecified = UnspecifiedField("spec.options.sslkey", theirs="theirs")
    moved = MovedObject({**minimal, "roleRef": {"external": OWNER}}, OWNER)
    abandoning: ClassVar[Spec] = {**minimal, "deletionPolicy": "ABANDON"}
    with_secret: ClassVar[Spec] = {**minimal, "secretOptions": {"password": FROM_SECRET}}
    referring = ReferringSpec(
        {**minimal, "roleRef": {"name": "reader"}},
        target("PostgresRole", "reader", {"resourceID": READER}),
        "reference PostgresRole default/reader",
    )
    without: ClassVar[Mapping[Part, str]] = {
        **LACKING,
        Part.IMMUTABLE: "server and role are the location of a user mapping",
        Part.PRUNING: "an option that is not declared is dropped, and has no default that could be named",
    }

    def set_up(self) -> None:
        make_foreign_world(self)
        self.execute("DROP SERVER IF EXISTS mapped CASCADE; CREATE SERVER mapped FOREIGN DATA WRAPPER postgres_fdw")

    def objects(self) -> list[str]:
        rows = self.execute("SELECT usename FROM pg_user_mappings WHERE srvname = 'mapped' ORDER BY 1")
        return [name for (name,) in rows]

    def _options(self) -> dict[str, str]:
        rows = self.execute(f"SELECT umoptions FROM pg_user_mappings WHERE srvname = 'mapped' AND usename = '{READER}'")
        return dict(one.split("=", 1) for one in (rows[0][0] or ())) if rows else {}

    def read(self, member: str) -> Any:
        return self._options().get(member.removeprefix("options."), MISSING)

    def drift(self, member: str, value: Json) -> None:
        name = member.removeprefix("options.")
        verb = "SET" if name in self._options() else "ADD"
        self.execute(f"ALTER USER MAPPING FOR {READER} SERVER mapped OPTIONS ({verb} \"{name}\" '{value}')")

    def create_outside(self, value: Json) -> None:
        self.execute(f"CREATE USER MAPPING FOR {READER} SERVER mapped OPTIONS (\"user\" '{value}')")

    def delete_outside(self) -> None:
        self.execute(f"DROP USER MAPPING FOR {READER} SERVER mapped")

    def holds_secret(self, text: str) -> bool:
        return self._options().get("password") == text


def make_foreign_world(fixture: PostgresFixture) -> None:
    """The wrapper of postgres_fdw in the database of the contract."""
    make_world(fixture.server)
    fixture.execute("SET client_min_messages = error; CREATE EXTENSION IF NOT EXISTS postgres_fdw")

"""The fixture of security labels for the lifecycle contract."""

from collections.abc import Mapping
from typing import Any, ClassVar

from label_provider import PROVIDER, labelled_database
from postgres_fixtures import LACKING, PostgresFixture, target
from postgres_server import PostgresServer
from setpoint import MISSING
from setpoint.kind import Json
from setpoint.testing import MovedObject, Part, ReferringSpec, Spec, SpecifiedField
from setpoint_postgresql.labels.security_labels import PostgresSecurityLabelKind

DATABASE = "labelled"


class SecurityLabelFixture(PostgresFixture):
    """The label of one of two tables."""

    kind_type = PostgresSecurityLabelKind
    name = "some-label"
    database = DATABASE
    field = SpecifiedField("spec.label", "one", "two", "three")
    minimal: ClassVar[Spec] = {
        "databaseRef": {"external": DATABASE},
        "object": {"type": "TABLE", "schemaRef": {"external": "public"}, "name": "orders"},
        "provider": PROVIDER,
        "label": "one",
    }
    bare = minimal
    moved = MovedObject(
        {**minimal, "object": {"type": "TABLE", "schemaRef": {"external": "public"}, "name": "lines"}}, "lines"
    )
    abandoning: ClassVar[Spec] = {**minimal, "deletionPolicy": "ABANDON"}
    referring = ReferringSpec(
        {**minimal, "databaseRef": {"name": DATABASE}},
        target("PostgresDatabase", DATABASE),
        f"reference PostgresDatabase default/{DATABASE}",
    )
    without: ClassVar[Mapping[Part, str]] = {
        **LACKING,
        Part.SECRET: "a label is no secret",
        Part.IMMUTABLE: "object and provider are the location of a label",
        Part.UNSPECIFIED: "it has a label, and nothing else",
    }

    def set_up(self) -> None:
        make_labelled_world(self.server)
        for table in ("orders", "lines"):
            self.execute(f"SECURITY LABEL FOR {PROVIDER} ON TABLE {table} IS NULL")

    def objects(self) -> list[str]:
        return [name for (name,) in self.execute("SELECT objname FROM pg_seclabels WHERE objtype = 'table' ORDER BY 1")]

    def read(self, member: str) -> Any:
        rows = self.execute("SELECT label FROM pg_seclabels WHERE objname = 'orders'")
        return rows[0][0] if rows else MISSING

    def drift(self, member: str, value: Json) -> None:
        self.execute(f"SECURITY LABEL FOR {PROVIDER} ON TABLE orders IS '{value}'")

    def create_outside(self, value: Json) -> None:
        self.drift("label", value)

    def delete_outside(self) -> None:
        self.execute(f"SECURITY LABEL FOR {PROVIDER} ON TABLE orders IS NULL")


_MADE: set[int] = set()


def make_labelled_world(server: PostgresServer) -> None:
    """The database with the provider and two tables; made once for each server."""
    if id(server) not in _MADE:
        _MADE.add(id(server))
        labelled_database(server, DATABASE)
        server.execute("CREATE TABLE orders (id integer); CREATE TABLE lines (id integer)", DATABASE)

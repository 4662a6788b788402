"""The fixtures of grants and default privileges for the lifecycle contract."""

from collections.abc import Mapping
from typing import Any, ClassVar

from postgres_fixtures import DATABASE, LACKING, OWNER, READER, PostgresFixture, make_world, target
from setpoint import MISSING
from setpoint.kind import Json
from setpoint.testing import MovedObject, Part, ReferringSpec, Spec, SpecifiedField
from setpoint_postgresql.grants import PostgresDefaultPrivilegesKind, PostgresGrantKind


class PrivilegesFixture(PostgresFixture):
    """Privileges of one role."""

    database = DATABASE
    without: ClassVar[Mapping[Part, str]] = {
        **{part: why for part, why in LACKING.items() if part is not Part.OUTPUTS},
        Part.SECRET: "a grant has no secret",
        Part.IMMUTABLE: "object and role are the location of a grant",
        Part.UNSPECIFIED: "a privilege that is not declared is not the resource's",
        Part.MOVING_OUTPUT: "its status shows nothing but what is compared",
    }


class GrantFixture(PrivilegesFixture):
    """SELECT on columns of one of two tables."""

    kind_type = PostgresGrantKind
    name = "some-grant"
    field = SpecifiedField("spec.privileges[privilege=SELECT].columns", ["id"], ["name"], ["id", "name"])
    outputs: ClassVar[Mapping[str, Json]] = {"grantedPrivileges": ["SELECT"]}
    minimal: ClassVar[Spec] = {
        "databaseRef": {"external": DATABASE},
        "roleRef": {"external": READER},
        "object": {"type": "TABLE", "schemaRef": {"external": "one"}, "name": "orders"},
        "privileges": [{"privilege": "SELECT", "columns": ["id"]}],
    }
    bare = minimal
    moved = MovedObject(
        {**minimal, "object": {"type": "TABLE", "schemaRef": {"external": "one"}, "name": "lines"}}, "lines"
    )
    abandoning: ClassVar[Spec] = {**minimal, "deletionPolicy": "ABANDON"}
    referring = ReferringSpec(
        {**minimal, "roleRef": {"name": "reader"}},
        target("PostgresRole", "reader", {"resourceID": READER}),
        "reference PostgresRole default/reader",
    )

    def set_up(self) -> None:
        make_world(self.server)
        for table in ("orders", "lines"):
            self.execute(f"REVOKE ALL ON one.{table} FROM {READER}")

    def objects(self) -> list[str]:
        rows = self.execute(
            "SELECT DISTINCT c.relname FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid, "
            "aclexplode(t.attacl) a "
            f"WHERE a.grantee = '{READER}'::regrole AND c.relname IN ('orders', 'lines') ORDER BY 1"
        )
        return [name for (name,) in rows]

    def read(self, member: str) -> Any:
        rows = self.execute(
            "SELECT t.attname FROM pg_attribute t, aclexplode(t.attacl) a "
            f"WHERE a.grantee = '{READER}'::regrole AND t.attrelid = 'one.orders'::regclass ORDER BY 1"
        )
        return [name for (name,) in rows] or MISSING

    def drift(self, member: str, value: Json) -> None:
        self.delete_outside()
        self.create_outside(value)

    def create_outside(self, value: Json) -> None:
        assert isinstance(value, list)
        self.execute(f"GRANT SELECT ({', '.join(map(str, value))}) ON one.orders TO {READER}")

    def delete_outside(self) -> None:
        self.execute(f"REVOKE ALL ON one.orders FROM {READER}")


class DefaultPrivilegesFixture(PrivilegesFixture):
    """Privileges on tables that the owner will create, in one of two schemas, and no others."""

    kind_type = PostgresDefaultPrivilegesKind
    name = "some-privileges"
    field = SpecifiedField("spec.privileges", ["INSERT", "SELECT"], ["SELECT", "UPDATE"], ["DELETE"])
    outputs: ClassVar[Mapping[str, Json]] = {"grantedPrivileges": ["INSERT", "SELECT"]}
    minimal: ClassVar[Spec] = {
        "databaseRef": {"external": DATABASE},
        "roleRef": {"external": READER},
        "ownerRef": {"external": OWNER},
        "schemaRef": {"external": "one"},
        "objectType": "TABLE",
        "otherPrivileges": "Revoke",
        "privileges": ["INSERT", "SELECT"],
    }
    bare = minimal
    moved = MovedObject({**minimal, "schemaRef": {"external": "two"}}, "two")
    abandoning: ClassVar[Spec] = {**minimal, "deletionPolicy": "ABANDON"}
    referring = ReferringSpec(
        {**minimal, "roleRef": {"name": "reader"}},
        target("PostgresRole", "reader", {"resourceID": READER}),
        "reference PostgresRole default/reader",
    )

    def set_up(self) -> None:
        make_world(self.server)
        for schema in ("one", "two"):
            self.execute(
                f"ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} IN SCHEMA {schema} REVOKE ALL ON TABLES FROM {READER}"
            )

    def objects(self) -> list[str]:
        rows = self.execute(
            "SELECT n.nspname FROM pg_default_acl d JOIN pg_namespace n ON n.oid = d.defaclnamespace ORDER BY 1"
        )
        return [name for (name,) in rows]

    def read(self, member: str) -> Any:
        rows = self.execute(
            "SELECT a.privilege_type FROM pg_default_acl d, aclexplode(d.defaclacl) a "
            f"WHERE a.grantee = '{READER}'::regrole AND d.defaclnamespace = 'one'::regnamespace ORDER BY 1"
        )
        return [name for (name,) in rows] or MISSING

    def drift(self, member: str, value: Json) -> None:
        self.delete_outside()
        self.create_outside(value)

    def create_outside(self, value: Json) -> None:
        assert isinstance(value, list)
        self._alter(f"GRANT {', '.join(map(str, value))} ON TABLES TO {READER}")

    def delete_outside(self) -> None:
        self._alter(f"REVOKE ALL ON TABLES FROM {READER}")

    def _alter(self, statement: str) -> None:
        self.execute(f"ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} IN SCHEMA one {statement}")

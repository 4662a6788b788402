"""The fixture of functions for the lifecycle contract."""

from collections.abc import Mapping
from typing import ClassVar

from postgres_fixtures import DATABASE, LACKING, PostgresFixture, make_world, target
from setpoint.kind import Json
from setpoint.testing import ImmutableChange, MovedObject, Part, ReferringSpec, Spec, SpecifiedField, UnspecifiedField
from setpoint_postgresql.routines.function import PostgresFunctionKind

_OF_IT = "FROM pg_proc WHERE proname = 'some-function'"


class FunctionFixture(PostgresFixture):
    """A function with one argument, which has a default."""

    kind_type = PostgresFunctionKind
    name = "some-function"
    database = DATABASE
    bare: ClassVar[Spec] = {
        "databaseRef": {"external": DATABASE},
        "schemaRef": {"external": "one"},
        "arguments": [{"name": "i", "type": "int", "default": "1 + 1"}],
        "returns": "int4",
        "language": "sql",
        "body": "SELECT 1",
    }
    field = SpecifiedField("spec.body", "SELECT 1", "SELECT 2", "SELECT 3")
    unspecified = UnspecifiedField("spec.strict", theirs=True, pruned=False)
    unlisted = UnspecifiedField("spec.comment", theirs="theirs", pruned="")
    moved = MovedObject({**bare, "resourceID": "some-other"}, "some-other")
    abandoning: ClassVar[Spec] = {**bare, "deletionPolicy": "ABANDON"}
    immutable = ImmutableChange(
        bare,
        {**bare, "returns": "bigint"},
        'spec.returns cannot change from "integer" to "bigint"',
    )
    referring = ReferringSpec(
        {**bare, "databaseRef": {"name": DATABASE}},
        target("PostgresDatabase", DATABASE),
        f"reference PostgresDatabase default/{DATABASE}",
    )
    outputs: ClassVar[Mapping[str, Json]] = {
        "argumentDefaults": [{"at": "1", "declared": "1 + 1", "stored": "(1 + 1)"}]
    }
    without: ClassVar[Mapping[Part, str]] = {
        **{part: why for part, why in LACKING.items() if part is not Part.OUTPUTS},
        Part.SECRET: "a function has no secret",
        Part.MOVING_OUTPUT: "its status shows nothing but what is compared",
    }
    members: ClassVar[Mapping[str, tuple[str, str]]] = {
        "body": (f"SELECT prosrc {_OF_IT}", ""),
        "strict": (f"SELECT proisstrict {_OF_IT}", 'ALTER FUNCTION one."some-function" STRICT'),
        "comment": (
            f"SELECT coalesce(obj_description(oid, 'pg_proc'), '') {_OF_IT}",
            'COMMENT ON FUNCTION one."some-function" IS {}',
        ),
    }

    def set_up(self) -> None:
        make_world(self.server)
        for name in self.objects():
            self.execute(f'DROP FUNCTION one."{name}"')

    def objects(self) -> list[str]:
        return [name for (name,) in self.execute("SELECT proname FROM pg_proc WHERE proname LIKE 'some-%' ORDER BY 1")]

    def drift(self, member: str, value: Json) -> None:
        if member == "body":
            self.create_outside(value)
        else:
            super().drift(member, value)

    def create_outside(self, value: Json) -> None:
        self.execute(
            'CREATE OR REPLACE FUNCTION one."some-function"(i integer DEFAULT 1+1) RETURNS integer '
            f"LANGUAGE sql AS {self.literal(value)}"
        )

    def delete_outside(self) -> None:
        self.execute('DROP FUNCTION one."some-function"')

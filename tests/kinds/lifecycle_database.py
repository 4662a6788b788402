"""The lifecycle fixture of SQLDatabase: a database in a MySQL instance."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from setpoint.clients.google.client import GoogleClient
from setpoint.core.values.json_types import Json
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import ResourceRef
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.testing import MovedObject, Part, ProtectedField, ReferringSpec, Spec, SpecifiedField, UnspecifiedField
from tests.kinds.lifecycle_google import NAMESPACE, PROJECT, TOLD, GoogleFixture

NAME, INSTANCE = "some-database", "some-instance"
INSTANCES: Final = f"/sql/v1beta4/projects/{PROJECT}/instances"
DATABASES: Final = f"{INSTANCES}/{INSTANCE}/databases"
WITHIN: Final[Spec] = {"instanceRef": {"external": INSTANCE}}
MINIMAL: Final[Spec] = {**WITHIN, "charset": "utf8mb4", "collation": "utf8mb4_bin"}
SETTINGS: Final = {"tier": "db-custom-1-3840", "edition": "ENTERPRISE"}


class DatabaseFixture(GoogleFixture):
    """A database. Its instance exists before the first claim, and has no other database with a similar name."""

    without: ClassVar[Mapping[Part, str]] = {
        **TOLD,
        Part.LIST: "its objects are observed one by one",
        Part.COOKIE: "it is stateless: it compares every time",
        Part.IMMUTABLE: "what is fixed about a database is where it is: a change of that is a move",
        Part.LABELS: "Cloud SQL has no labels on databases",
        Part.MOVING_OUTPUT: "its only output is its link, and that is its name",
        Part.PRUNING: "charset and collation, all that it has, keep their live value when the spec is silent",
        Part.SECRET: "nothing in a database's settings is secret",
        Part.SLOW_CREATE: "Cloud SQL answers the creation of a database with an operation that is done",
    }
    path = f"{DATABASES}/{NAME}"
    api_kind = "sql#database"
    ref = ResourceRef("sql.cnrm.cloud.google.com", "SQLDatabase", NAMESPACE, NAME)
    field = SpecifiedField("spec.collation", "utf8mb4_bin", "utf8mb4_unicode_ci", "utf8mb4_general_ci")
    bare = WITHIN
    minimal: ClassVar[Spec] = MINIMAL
    moved = MovedObject({**MINIMAL, "resourceID": "another-database"}, "another-database")
    unspecified = UnspecifiedField("spec.collation", "utf8mb4_general_ci", spec=WITHIN)
    referring = ReferringSpec(
        {"instanceRef": {"name": INSTANCE}, "charset": "utf8mb4", "collation": "utf8mb4_bin"},
        {
            "apiVersion": "sql.cnrm.cloud.google.com/v1beta1",
            "kind": "SQLInstance",
            "metadata": {
                "name": INSTANCE,
                "namespace": NAMESPACE,
                "annotations": {"cnrm.cloud.google.com/project-id": PROJECT},
            },
            "spec": {"databaseVersion": "MYSQL_8_0"},
        },
        "reference SQLInstance team/some-instance",
    )
    outputs: ClassVar[Mapping[str, Json]] = {"selfLink": f"https://sqladmin.googleapis.com{DATABASES}/{NAME}"}
    protections = (
        ProtectedField(
            MINIMAL,
            {**WITHIN, "charset": "utf8mb4"},
            {**WITHIN, "collation": "utf8mb4_unicode_ci"},
            "collation",
            "utf8mb4_bin",
            "utf8mb4_unicode_ci",
        ),
    )
    abandoning: ClassVar[Spec] = {**MINIMAL, "deletionPolicy": "ABANDON"}

    def new_kind(self, client: GoogleClient) -> AnyKind:
        return SqlDatabaseKind(client)

    async def set_up(self) -> None:
        await super().set_up()
        wanted = {"name": INSTANCE, "databaseVersion": "MYSQL_8_0", "region": "us-central1", "settings": SETTINGS}
        assert self.cloud.call("POST", INSTANCES, wanted).status == 200
        self.finish()
        self.cloud.journal.clear()

    def _databases(self) -> dict[str, dict[str, Any]]:
        return self.cloud.sql.state.instances[f"{PROJECT}/{INSTANCE}"].databases

    def live(self) -> dict[str, Any] | None:
        return self._databases().get(NAME)

    def objects(self) -> list[str]:
        return [name for name in self._databases() if name.endswith("-database")]

    def create_outside(self, value: Json) -> None:
        body = {"name": NAME, "charset": "utf8mb4", "collation": value}
        assert self.cloud.call("POST", DATABASES, body).status == 200
        self.cloud.journal.clear()

    def delete_outside(self) -> None:
        del self._databases()[NAME]

"""The lifecycle fixture of SQLDatabase: a database in a MySQL instance."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

from setpoint.clients.google.client import GoogleClient
from setpoint.core.values.json_types import Json
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import ResourceRef
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from tests.engine.kind_fixture import Part, Protection, Referring, Spec, Specified, Unspecified
from tests.kinds.lifecycle_google import NAMESPACE, PROJECT, GoogleFixture, held_cloud

NAME, INSTANCE = "some-database", "some-instance"
INSTANCES: Final = f"/sql/v1beta4/projects/{PROJECT}/instances"
DATABASES: Final = f"{INSTANCES}/{INSTANCE}/databases"
WITHIN: Final[Spec] = {"instanceRef": {"external": INSTANCE}}
MINIMAL: Final[Spec] = {**WITHIN, "charset": "utf8mb4", "collation": "utf8mb4_bin"}
SETTINGS: Final = {"tier": "db-custom-1-3840", "edition": "ENTERPRISE"}


class DatabaseFixture(GoogleFixture):
    """A database. Its instance exists before the first claim, and has no other database with a similar name."""

    title = "SQLDatabase"
    without: ClassVar[Mapping[Part, str]] = {
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
    api_version = "sql.cnrm.cloud.google.com/v1beta1"
    ref = ResourceRef("sql.cnrm.cloud.google.com", "SQLDatabase", NAMESPACE, NAME)
    field = Specified("spec.collation", "collation", "utf8mb4_bin", "utf8mb4_unicode_ci", "utf8mb4_general_ci")
    bare = WITHIN
    moved: ClassVar[Spec] = {**MINIMAL, "resourceID": "another-database"}
    unspecified = Unspecified(WITHIN, "spec.collation", "collation", "utf8mb4_general_ci")
    referring = Referring(
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
        Protection(
            MINIMAL,
            {**WITHIN, "charset": "utf8mb4"},
            {**WITHIN, "collation": "utf8mb4_unicode_ci"},
            "collation",
            "utf8mb4_bin",
            "utf8mb4_unicode_ci",
        ),
    )
    abandoning: ClassVar[Spec] = {**MINIMAL, "deletionPolicy": "ABANDON"}

    def new_kind(self, google: GoogleClient) -> AnyKind:
        return SqlDatabaseKind(google)

    def spec(self, value: Json) -> Spec:
        return {**MINIMAL, "collation": value}

    def _databases(self) -> dict[str, dict[str, Any]]:
        return self.cloud.sql.state.instances[f"{PROJECT}/{INSTANCE}"].databases

    def live(self) -> dict[str, Any] | None:
        return self._databases().get(NAME)

    @property
    def objects(self) -> list[str]:
        return [name for name in self._databases() if name.endswith("-database")]

    def plant(self, value: Json) -> None:
        body = {"name": NAME, "charset": "utf8mb4", "collation": value}
        assert self.cloud.call("POST", DATABASES, body).status == 200
        self.cloud.journal.clear()

    def remove(self) -> None:
        del self._databases()[NAME]


@asynccontextmanager
async def database_fixture() -> AsyncIterator[DatabaseFixture]:
    """A new cloud with an instance in it."""
    async with held_cloud() as cloud:
        wanted = {"name": INSTANCE, "databaseVersion": "MYSQL_8_0", "region": "us-central1", "settings": SETTINGS}
        assert cloud.call("POST", INSTANCES, wanted).status == 200
        fixture = DatabaseFixture(cloud)
        fixture.finish()
        cloud.journal.clear()
        try:
            yield fixture
        finally:
            await fixture.google.close()

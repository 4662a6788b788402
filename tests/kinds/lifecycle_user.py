"""The lifecycle fixture of SQLUser: a user of a MySQL instance."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from setpoint.clients.google.client import GoogleClient
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path, set_at
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import ResourceRef
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.localcloud.sql.operations import DatabaseUser, StoredInstance, put_user, remove_user
from setpoint.testing import ImmutableChange, MovedObject, Part, ReferringSpec, Spec, SpecifiedField, UnspecifiedField
from tests.kinds.lifecycle_google import NAMESPACE, PROJECT, TOLD, GoogleFixture

NAME, INSTANCE, HOST = "some-user", "some-instance", "%"
INSTANCES: Final = f"/sql/v1beta4/projects/{PROJECT}/instances"
USERS: Final = f"{INSTANCES}/{INSTANCE}/users"
WITHIN: Final[Spec] = {"instanceRef": {"external": INSTANCE}}
MINIMAL: Final[Spec] = {**WITHIN, "passwordPolicy": {"allowedFailedAttempts": 3}}
FROM_SECRET: Final[Spec] = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}
SETTINGS: Final = {"tier": "db-custom-1-3840", "edition": "ENTERPRISE"}


class UserFixture(GoogleFixture):
    """A user. Its instance exists before the first claim, and has no other user with a similar name."""

    without: ClassVar[Mapping[Part, str]] = {
        **TOLD,
        Part.LIST: "its objects are observed one by one",
        Part.COOKIE: "it is stateless: it compares every time",
        Part.LABELS: "Cloud SQL has no labels on users",
        Part.OPERATIONS: "Cloud SQL answers every write to a user with an operation that is done",
        Part.OUTPUTS: "the status shows what another writer gave a user, and nothing of a new one",
        Part.OWN_ABANDON: "the spec of a user does not speak of deletion",
        Part.PROTECTION: "nothing about a user keeps data from being lost",
        Part.SLOW_CREATE: "Cloud SQL answers every write to a user with an operation that is done",
    }
    path = f"{USERS}/{NAME}"
    api_kind = "sql#user"
    ref = ResourceRef("sql.cnrm.cloud.google.com", "SQLUser", NAMESPACE, NAME)
    field = SpecifiedField("spec.passwordPolicy.allowedFailedAttempts", 3, 5, 9)
    bare = WITHIN
    moved = MovedObject({**MINIMAL, "resourceID": "another-user"}, "another-user")
    unspecified = UnspecifiedField(
        "spec.passwordPolicy.enableFailedAttemptsCheck",
        theirs=True,
        pruned=False,
    )
    unlisted = UnspecifiedField(
        "spec.passwordPolicy.enablePasswordVerification",
        theirs=True,
        pruned=False,
    )
    referring = ReferringSpec(
        {**MINIMAL, "instanceRef": {"name": INSTANCE}},
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
    immutable = ImmutableChange(
        {**MINIMAL, "type": "BUILT_IN"},
        {**MINIMAL, "type": "CLOUD_IAM_USER"},
        'spec.type cannot change from "BUILT_IN" to "CLOUD_IAM_USER"',
    )
    with_secret: ClassVar[Spec] = {**MINIMAL, "password": FROM_SECRET}

    def new_kind(self, client: GoogleClient) -> AnyKind:
        return SqlUserKind(client)

    async def set_up(self) -> None:
        await super().set_up()
        wanted = {"name": INSTANCE, "databaseVersion": "MYSQL_8_0", "region": "us-central1", "settings": SETTINGS}
        assert self.cloud.call("POST", INSTANCES, wanted).status == 200
        self.finish()
        self.cloud.journal.clear()

    @property
    def _instance(self) -> StoredInstance:
        return self.cloud.sql.state.instances[f"{PROJECT}/{INSTANCE}"]

    def _user(self) -> DatabaseUser | None:
        return next((user for user in self._instance.users if user.name == NAME), None)

    def live(self) -> dict[str, Any] | None:
        user = self._user()
        return None if user is None else user.resource

    def objects(self) -> list[str]:
        return [user.name for user in self._instance.users if user.name.endswith("-user")]

    def drift(self, member: str, value: Json) -> None:
        user = self._user()
        assert user is not None
        edited = set_at(user.resource, Path.parse(member), value)
        assert isinstance(edited, dict)
        put_user(self._instance, replace(user, resource=edited))

    def create_outside(self, value: Json) -> None:
        body = {"name": NAME, "host": HOST, "passwordPolicy": {"allowedFailedAttempts": value}}
        assert self.cloud.call("POST", USERS, body).status == 200
        self.cloud.journal.clear()

    def delete_outside(self) -> None:
        remove_user(self._instance, NAME, HOST)

    def holds_secret(self, text: str) -> bool:
        return self.cloud.password_matches(PROJECT, INSTANCE, NAME, text)

    def move_output(self) -> Mapping[str, Json]:
        self.drift("sqlserverUserDetails", {"disabled": True, "serverRoles": ["reader"]})
        return {"sqlServerUserDetails": [{"disabled": True, "serverRoles": ["reader"]}]}

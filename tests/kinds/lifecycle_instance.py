"""The lifecycle fixture of SQLInstance: a PostgreSQL instance."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from setpoint.clients.google.client import GoogleClient
from setpoint.core.values.json_types import Json
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import ResourceRef
from setpoint.kinds.gcp.sql_instance import SqlInstanceKind
from setpoint.localcloud.sql.users import password_matches
from setpoint.testing import (
    ImmutableChange,
    MovedObject,
    Part,
    ProtectedField,
    ReferringSpec,
    Spec,
    SpecifiedField,
    UnspecifiedField,
)
from tests.kinds.lifecycle_google import NAMESPACE, PROJECT, TOLD, GoogleFixture

NAME: Final = "some-instance"
INSTANCES: Final = f"/sql/v1beta4/projects/{PROJECT}/instances"
SETTINGS: Final[Spec] = {"tier": "db-custom-1-3840"}
MINIMAL: Final[Spec] = {"databaseVersion": "POSTGRES_15", "region": "us-central1", "settings": SETTINGS}
LINK: Final = f"https://sqladmin.googleapis.com{INSTANCES}/{NAME}"
KEY: Final = "projects/some-project/locations/us-central1/keyRings/ring/cryptoKeys/key"
BACKED_UP: Final[Spec] = {"enabled": True, "pointInTimeRecoveryEnabled": True}
PLUS: Final[Spec] = {"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2"}


def _with(**settings: Any) -> Spec:
    return {**MINIMAL, "settings": {**SETTINGS, **settings}}


class InstanceFixture(GoogleFixture):
    """An instance. Its root password belongs to the user `postgres`."""

    without: ClassVar[Mapping[Part, str]] = {
        **TOLD,
        Part.OWN_ABANDON: "the spec of an instance does not speak of deletion",
        Part.STATELESS: "it keeps a cookie",
    }
    path = f"{INSTANCES}/{NAME}"
    api_kind = "sql#instance"
    ref = ResourceRef("sql.cnrm.cloud.google.com", "SQLInstance", NAMESPACE, NAME)
    field = SpecifiedField("spec.settings.tier", "db-custom-1-3840", "db-custom-2-7680", "db-custom-4-15360")
    bare: ClassVar[Spec] = {"settings": SETTINGS}
    minimal: ClassVar[Spec] = MINIMAL
    labels_member = "settings.userLabels"
    moved = MovedObject({**MINIMAL, "resourceID": "another-instance"}, "another-instance")
    unspecified = UnspecifiedField("spec.settings.connectorEnforcement", "REQUIRED", "NOT_REQUIRED")
    unlisted = UnspecifiedField("spec.settings.pricingPlan", "PACKAGE", "PER_USE")
    referring = ReferringSpec(
        {**MINIMAL, "encryptionKMSCryptoKeyRef": {"name": "key"}},
        {
            "apiVersion": "kms.cnrm.cloud.google.com/v1beta1",
            "kind": "KMSCryptoKey",
            "metadata": {"name": "key", "namespace": NAMESPACE},
            "spec": {},
        },
        "reference KMSCryptoKey team/key",
        {"selfLink": KEY},
    )
    outputs: ClassVar[Mapping[str, Json]] = {
        "connectionName": "some-project:us-central1:some-instance",
        "instanceType": "CLOUD_SQL_INSTANCE",
        "selfLink": LINK,
    }
    immutable = ImmutableChange(
        MINIMAL,
        {**MINIMAL, "region": "europe-west1"},
        'spec.region cannot change from "us-central1" to "europe-west1"',
    )
    protections = (
        ProtectedField(
            _with(deletionProtectionEnabled=True),
            _with(tier="db-custom-2-7680"),
            _with(deletionProtectionEnabled=False),
            "settings.deletionProtectionEnabled",
            kept=True,
            given_up=False,
        ),
        ProtectedField(
            _with(backupConfiguration=BACKED_UP),
            _with(tier="db-custom-2-7680"),
            _with(backupConfiguration={"enabled": False, "pointInTimeRecoveryEnabled": False}),
            "settings.backupConfiguration.enabled",
            kept=True,
            given_up=False,
        ),
        ProtectedField(
            _with(backupConfiguration=BACKED_UP),
            _with(backupConfiguration={"enabled": True, "startTime": "03:00"}),
            _with(backupConfiguration={"enabled": True, "pointInTimeRecoveryEnabled": False}),
            "settings.backupConfiguration.pointInTimeRecoveryEnabled",
            kept=True,
            given_up=False,
        ),
        ProtectedField(
            _with(**PLUS),
            _with(tier="db-perf-optimized-N-4"),
            _with(edition="ENTERPRISE"),
            "settings.edition",
            kept="ENTERPRISE_PLUS",
            given_up="ENTERPRISE",
        ),
    )
    with_secret: ClassVar[Spec] = {
        **MINIMAL,
        "rootPassword": {"valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
    }

    def new_kind(self, client: GoogleClient) -> AnyKind:
        return SqlInstanceKind(client)

    def live(self) -> dict[str, Any] | None:
        found = self.cloud.sql.state.instances.get(f"{PROJECT}/{NAME}")
        return None if found is None else found.resource

    def objects(self) -> list[str]:
        return [key.removeprefix(f"{PROJECT}/") for key in self.cloud.sql.state.instances]

    def create_outside(self, value: Json) -> None:
        labels = {"managed-by-cnrm": "true"}
        settings = {"tier": value, "edition": "ENTERPRISE", "storageAutoResize": True, "userLabels": labels}
        body = {"name": NAME, "databaseVersion": "POSTGRES_15", "region": "us-central1", "settings": settings}
        assert self.cloud.call("POST", INSTANCES, body).status == 200
        self.finish()
        self.cloud.journal.clear()

    def delete_outside(self) -> None:
        del self.cloud.sql.state.instances[f"{PROJECT}/{NAME}"]

    def holds_secret(self, text: str) -> bool:
        (user,) = self.cloud.sql.state.instances[f"{PROJECT}/{NAME}"].users
        return password_matches(user, text)

    def move_output(self) -> Mapping[str, Json]:
        self.drift("serviceAccountEmailAddress", "another@example.com")
        return {"serviceAccountEmailAddress": "another@example.com"}

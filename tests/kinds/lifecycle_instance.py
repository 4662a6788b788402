"""The lifecycle fixture of SQLInstance: a PostgreSQL instance."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

from setpoint.clients.google.client import GoogleClient
from setpoint.core.values.json_types import Json, Missing
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import ResourceRef
from setpoint.kinds.gcp.sql_instance import SqlInstanceKind
from setpoint.localcloud.sql.users import password_matches
from tests.engine.kind_fixture import Fixed, Part, Protection, Referring, Spec, Specified, Unspecified
from tests.kinds.lifecycle_google import NAMESPACE, PROJECT, GoogleFixture, held_cloud

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

    title = "SQLInstance"
    without: ClassVar[Mapping[Part, str]] = {
        Part.OWN_ABANDON: "the spec of an instance does not speak of deletion",
        Part.STATELESS: "it keeps a cookie",
    }
    path = f"{INSTANCES}/{NAME}"
    api_kind = "sql#instance"
    api_version = "sql.cnrm.cloud.google.com/v1beta1"
    ref = ResourceRef("sql.cnrm.cloud.google.com", "SQLInstance", NAMESPACE, NAME)
    field = Specified(
        "spec.settings.tier", "settings.tier", "db-custom-1-3840", "db-custom-2-7680", "db-custom-4-15360"
    )
    bare: ClassVar[Spec] = {"settings": SETTINGS}
    moved: ClassVar[Spec] = {**MINIMAL, "resourceID": "another-instance"}
    unspecified = Unspecified(
        MINIMAL, "spec.settings.connectorEnforcement", "settings.connectorEnforcement", "REQUIRED", "NOT_REQUIRED"
    )
    unlisted = Unspecified(MINIMAL, "spec.settings.pricingPlan", "settings.pricingPlan", "PACKAGE", "PER_USE")
    referring = Referring(
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
    fixed = Fixed(
        MINIMAL,
        {**MINIMAL, "region": "europe-west1"},
        'spec.region cannot change from "us-central1" to "europe-west1"',
    )
    protections = (
        Protection(
            _with(deletionProtectionEnabled=True),
            _with(tier="db-custom-2-7680"),
            _with(deletionProtectionEnabled=False),
            "settings.deletionProtectionEnabled",
            kept=True,
            given_up=False,
        ),
        Protection(
            _with(backupConfiguration=BACKED_UP),
            _with(tier="db-custom-2-7680"),
            _with(backupConfiguration={"enabled": False, "pointInTimeRecoveryEnabled": False}),
            "settings.backupConfiguration.enabled",
            kept=True,
            given_up=False,
        ),
        Protection(
            _with(backupConfiguration=BACKED_UP),
            _with(backupConfiguration={"enabled": True, "startTime": "03:00"}),
            _with(backupConfiguration={"enabled": True, "pointInTimeRecoveryEnabled": False}),
            "settings.backupConfiguration.pointInTimeRecoveryEnabled",
            kept=True,
            given_up=False,
        ),
        Protection(
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

    def new_kind(self, google: GoogleClient) -> AnyKind:
        return SqlInstanceKind(google)

    def spec(self, value: Json) -> Spec:
        return _with(tier=value)

    def live(self) -> dict[str, Any] | None:
        found = self.cloud.sql.state.instances.get(f"{PROJECT}/{NAME}")
        return None if found is None else found.resource

    def read(self, member: str) -> Json | Missing:
        return super().read(member.replace("labels.", "settings.userLabels.", 1))

    @property
    def objects(self) -> list[str]:
        return [key.removeprefix(f"{PROJECT}/") for key in self.cloud.sql.state.instances]

    def plant(self, value: Json) -> None:
        labels = {"managed-by-cnrm": "true"}
        settings = {"tier": value, "edition": "ENTERPRISE", "storageAutoResize": True, "userLabels": labels}
        body = {"name": NAME, "databaseVersion": "POSTGRES_15", "region": "us-central1", "settings": settings}
        assert self.cloud.call("POST", INSTANCES, body).status == 200
        self.finish()
        self.cloud.journal.clear()

    def remove(self) -> None:
        del self.cloud.sql.state.instances[f"{PROJECT}/{NAME}"]

    def holds_secret(self, text: str) -> bool:
        (user,) = self.cloud.sql.state.instances[f"{PROJECT}/{NAME}"].users
        return password_matches(user, text)

    def move_output(self) -> Mapping[str, Json]:
        self.edit("serviceAccountEmailAddress", "another@example.com")
        return {"serviceAccountEmailAddress": "another@example.com"}


@asynccontextmanager
async def instance_fixture() -> AsyncIterator[InstanceFixture]:
    """A new cloud with no instance in it."""
    async with held_cloud() as cloud:
        fixture = InstanceFixture(cloud)
        try:
            yield fixture
        finally:
            await fixture.google.close()

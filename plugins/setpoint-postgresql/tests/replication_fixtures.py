"""The fixtures of publications, subscriptions and replication slots for the lifecycle contract."""

from collections.abc import Mapping
from typing import Any, ClassVar

from postgres_fixtures import DATABASE, LACKING, PostgresFixture, make_world, target
from setpoint.kind import Json
from setpoint.testing import ImmutableChange, MovedObject, Part, ReferringSpec, Spec, SpecifiedField, UnspecifiedField
from setpoint_postgresql.replication.publication import PostgresPublicationKind
from setpoint_postgresql.replication.slot import PostgresReplicationSlotKind
from setpoint_postgresql.replication.subscription import PostgresSubscriptionKind

IN_DATABASE: Mapping[str, Any] = {"databaseRef": {"external": DATABASE}}
REFERRING: Mapping[str, Any] = {"databaseRef": {"name": DATABASE}}
REFERENCE = f"reference PostgresDatabase default/{DATABASE}"


class PublicationFixture(PostgresFixture):
    """A publication of one table."""

    kind_type = PostgresPublicationKind
    name = "some-publication"
    database = DATABASE
    bare: ClassVar[Spec] = {**IN_DATABASE, "tables": [{"schema": "one", "name": "orders", "where": "id > 5"}]}
    field = SpecifiedField("spec.publish", ["insert"], ["insert", "update"], ["delete"])
    unspecified = UnspecifiedField("spec.publishViaPartitionRoot", theirs=True, pruned=False)
    unlisted = UnspecifiedField("spec.comment", theirs="theirs", pruned="")
    moved = MovedObject({**bare, "publish": ["insert"], "resourceID": "some-other"}, "some-other")
    abandoning: ClassVar[Spec] = {**bare, "publish": ["insert"], "deletionPolicy": "ABANDON"}
    immutable = ImmutableChange(
        {**bare, "publish": ["insert"]},
        {**IN_DATABASE, "publish": ["insert"], "allTables": True},
        "spec.allTables cannot change from false to true",
    )
    referring = ReferringSpec(
        {**bare, **REFERRING, "publish": ["insert"]}, target("PostgresDatabase", DATABASE), REFERENCE
    )
    outputs: ClassVar[Mapping[str, Json]] = {
        "rowFilters": [{"at": "one.orders", "declared": "id > 5", "stored": "(id > 5)"}]
    }
    without: ClassVar[Mapping[Part, str]] = {
        **{part: why for part, why in LACKING.items() if part is not Part.OUTPUTS},
        Part.SECRET: "a publication has no secret",
        Part.MOVING_OUTPUT: "its status shows nothing but what is compared",
    }
    members: ClassVar[Mapping[str, tuple[str, str]]] = {
        "publish": (
            "SELECT to_json(array_remove(ARRAY[CASE WHEN pubinsert THEN 'insert' END, CASE WHEN pubupdate THEN "
            "'update' END, CASE WHEN pubdelete THEN 'delete' END, CASE WHEN pubtruncate THEN 'truncate' END], NULL)) "
            "FROM pg_publication WHERE pubname = 'some-publication'",
            'ALTER PUBLICATION "some-publication" SET (publish = {})',
        ),
        "publishViaPartitionRoot": (
            "SELECT pubviaroot FROM pg_publication WHERE pubname = 'some-publication'",
            'ALTER PUBLICATION "some-publication" SET (publish_via_partition_root = {})',
        ),
        "comment": (
            "SELECT coalesce(obj_description(oid, 'pg_publication'), '') FROM pg_publication "
            "WHERE pubname = 'some-publication'",
            'COMMENT ON PUBLICATION "some-publication" IS {}',
        ),
    }

    def set_up(self) -> None:
        make_world(self.server)
        for name in self.objects():
            self.execute(f'DROP PUBLICATION "{name}"')

    def literal(self, value: Json) -> str:
        return super().literal(", ".join(map(str, value)) if isinstance(value, list) else value)

    def objects(self) -> list[str]:
        return [name for (name,) in self.execute("SELECT pubname FROM pg_publication ORDER BY 1")]

    def create_outside(self, value: Json) -> None:
        self.execute(
            'CREATE PUBLICATION "some-publication" FOR TABLE one.orders WHERE (id > 5) '
            f"WITH (publish = {self.literal(value)})"
        )

    def delete_outside(self) -> None:
        self.execute('DROP PUBLICATION "some-publication"')


class SubscriptionFixture(PostgresFixture):
    """A subscription that is disabled, to a publisher that is never asked: data flows in tests of its own."""

    kind_type = PostgresSubscriptionKind
    name = "some-subscription"
    database = DATABASE
    bare: ClassVar[Spec] = {
        **IN_DATABASE,
        "conninfo": "host=publisher.example dbname=shop user=replicator",
        "publications": ["orders"],
        "enabled": False,
        "connect": False,
        "slotName": "some_slot",
        "onDelete": {"slot": "Keep"},
    }
    field = SpecifiedField("spec.publications", ["orders"], ["lines", "orders"], ["theirs"])
    unspecified = UnspecifiedField("spec.binary", theirs=True, pruned=False)
    unlisted = UnspecifiedField("spec.comment", theirs="theirs", pruned="")
    moved = MovedObject({**bare, "resourceID": "some-other"}, "some-other")
    abandoning: ClassVar[Spec] = {**bare, "deletionPolicy": "ABANDON"}
    with_secret: ClassVar[Spec] = {
        **bare,
        "password": {"valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
    }
    referring = ReferringSpec({**bare, **REFERRING}, target("PostgresDatabase", DATABASE), REFERENCE)
    outputs: ClassVar[Mapping[str, Json]] = {"publisher": "dbname=shop host=publisher.example user=replicator"}
    without: ClassVar[Mapping[Part, str]] = {
        **{part: why for part, why in LACKING.items() if part is not Part.OUTPUTS},
        Part.IMMUTABLE: "all that a subscription has can change",
        Part.MOVING_OUTPUT: "its status shows nothing but what is compared",
    }
    members: ClassVar[Mapping[str, tuple[str, str]]] = {
        "publications": (
            "SELECT to_json(subpublications) FROM pg_subscription WHERE subname = 'some-subscription'",
            'ALTER SUBSCRIPTION "some-subscription" SET PUBLICATION {} WITH (refresh = false)',
        ),
        "binary": (
            "SELECT subbinary FROM pg_subscription WHERE subname = 'some-subscription'",
            'ALTER SUBSCRIPTION "some-subscription" SET (binary = {})',
        ),
        "comment": (
            "SELECT coalesce(obj_description(oid, 'pg_subscription'), '') FROM pg_subscription "
            "WHERE subname = 'some-subscription'",
            'COMMENT ON SUBSCRIPTION "some-subscription" IS {}',
        ),
    }

    def set_up(self) -> None:
        make_world(self.server)
        for name in self.objects():
            self._drop(name)

    def literal(self, value: Json) -> str:
        return ", ".join(map(str, value)) if isinstance(value, list) else super().literal(value)

    def objects(self) -> list[str]:
        return [name for (name,) in self.execute("SELECT subname FROM pg_subscription ORDER BY 1")]

    def create_outside(self, value: Json) -> None:
        self.execute(
            "CREATE SUBSCRIPTION \"some-subscription\" CONNECTION 'host=publisher.example dbname=shop user=replicator' "
            f"PUBLICATION {self.literal(value)} WITH (connect = false, slot_name = 'some_slot')"
        )

    def delete_outside(self) -> None:
        self._drop("some-subscription")

    def holds_secret(self, text: str) -> bool:
        rows = self.execute("SELECT subconninfo FROM pg_subscription WHERE subname = 'some-subscription'")
        return f"password={text}" in rows[0][0]

    def _drop(self, name: str) -> None:
        self.execute(f'ALTER SUBSCRIPTION "{name}" SET (slot_name = NONE); DROP SUBSCRIPTION "{name}"')


class SlotFixture(PostgresFixture):
    """A logical slot that may be created anew with another plugin: nothing of a slot itself can change."""

    kind_type = PostgresReplicationSlotKind
    name = "someslot"
    minimal: ClassVar[Spec] = {"plugin": "pgoutput", "databaseRef": {"external": DATABASE}, "onChange": "Recreate"}
    bare = minimal
    # The third is the first by another name: PostgreSQL has two plugins.
    field = SpecifiedField("spec.plugin", "pgoutput", "test_decoding", "$libdir/pgoutput")
    unspecified = UnspecifiedField("spec.twoPhase", theirs=True, pruned=False)
    moved = MovedObject({**minimal, "resourceID": "someother"}, "someother")
    abandoning: ClassVar[Spec] = {**minimal, "deletionPolicy": "ABANDON"}
    immutable = ImmutableChange(
        {**minimal, "onChange": "Refuse"},
        {**minimal, "onChange": "Refuse", "databaseRef": {"external": "postgres"}},
        'spec.databaseRef.external cannot change from "contract" to "postgres"',
    )
    referring = ReferringSpec({**minimal, **REFERRING}, target("PostgresDatabase", DATABASE), REFERENCE)
    outputs: ClassVar[Mapping[str, Json]] = {"active": False, "walStatus": "reserved"}
    without: ClassVar[Mapping[Part, str]] = {
        **{part: why for part, why in LACKING.items() if part is not Part.OUTPUTS},
        Part.SECRET: "a slot has no secret",
        Part.PRUNING: "a slot has one field that a spec may leave out",
        Part.MOVING_OUTPUT: "what its status shows changes as its consumer streams: a test of its own does that",
    }
    members: ClassVar[Mapping[str, tuple[str, str]]] = {
        "plugin": ("SELECT plugin FROM pg_replication_slots WHERE slot_name = 'someslot'", ""),
        "twoPhase": ("SELECT two_phase FROM pg_replication_slots WHERE slot_name = 'someslot'", ""),
    }

    def set_up(self) -> None:
        make_world(self.server)
        for name in self.objects():
            self.execute(f"SELECT pg_drop_replication_slot('{name}')")

    def objects(self) -> list[str]:
        rows = self.execute("SELECT slot_name FROM pg_replication_slots WHERE slot_name LIKE 'some%' ORDER BY 1")
        return [name for (name,) in rows]

    def drift(self, member: str, value: Json) -> None:
        plugin = self.read("plugin")
        self.delete_outside()
        if member == "twoPhase":
            self._create(str(plugin), two_phase=bool(value))
        else:
            self.create_outside(value)

    def create_outside(self, value: Json) -> None:
        self._create(str(value), two_phase=False)

    def delete_outside(self) -> None:
        self.execute("SELECT pg_drop_replication_slot('someslot')")

    def _create(self, plugin: str, *, two_phase: bool) -> None:
        statement = f"SELECT pg_create_logical_replication_slot('someslot', '{plugin}', false, {two_phase})"
        self.server.execute(statement, DATABASE)

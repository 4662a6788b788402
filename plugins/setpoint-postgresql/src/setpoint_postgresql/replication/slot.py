"""PostgresReplicationSlot: what a server keeps for a replica or a consumer of changes until it has received it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Struct
from psycopg import sql

from setpoint.kind import (
    Absent,
    Default,
    Intent,
    Json,
    JsonObject,
    Location,
    ManifestInvalid,
    Maybe,
    PlannedWrite,
    Present,
    RemoteRefused,
    ResolvedReferences,
    Resource,
    Unchanged,
    field_invalid,
    referenced_name,
)
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.catalogs import Catalog
from setpoint_postgresql.connection import NAME, DatabaseReference, PostgresKind, Target, body_digest, spec_in
from setpoint_postgresql.database_objects import DATABASE_FIELD, external_name
from setpoint_postgresql.replication.subscription import SLOT_NAME
from setpoint_postgresql.routines.recreation import REFUSE, RecreatableKind, RecreatableSpec

_FIRST_VERSION_WITH_TWO_PHASE: Final = 140000
_OUTPUTS: Final = ("active", "restartLsn", "confirmedFlushLsn", "walStatus")


class PostgresReplicationSlotSpec(RecreatableSpec, frozen=True, kw_only=True):
    """The spec of a PostgresReplicationSlot."""

    plugin: Annotated[Maybe[str], NAME] = UNSET
    """The output plugin of a logical slot, such as pgoutput; left out: a physical slot. Fixed: see onChange."""
    databaseRef: Maybe[DatabaseReference] = UNSET
    """The database whose changes a logical slot has. Fixed: see onChange."""
    twoPhase: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether prepared transactions are decoded when they are prepared. PostgreSQL 14 and newer. Fixed, too."""
    reserveImmediately: Maybe[bool] = UNSET
    """Whether a physical slot keeps WAL from its creation on; else from the first connection of its replica on."""


class ReplicationSlotOutputs(Struct, frozen=True):
    """What the status shows of a slot."""

    active: bool = False
    """Whether a process streams from it now."""
    restartLsn: str = ""
    """From where on WAL is kept for it."""
    confirmedFlushLsn: str = ""
    """Up to where the consumer of a logical slot has confirmed what it received."""
    walStatus: str = ""
    """Whether the WAL is still there: reserved, extended, unreserved or lost."""


class LiveReplicationSlot(Struct, frozen=True):
    """The live slot."""

    name: str
    plugin: str | None = None
    database: str | None = None
    twoPhase: bool = False
    onChange: str = REFUSE


class _SlotUser(Struct, frozen=True):
    pid: int
    user: str | None = None
    application: str | None = None
    address: str | None = None


def _slots(details: str) -> str:
    return f"""
SELECT k.key, json_build_object(
    'version', current_setting('server_version_num')::int, 'name', s.slot_name, 'plugin', s.plugin,
    'database', s.database, 'active', s.active, 'restartLsn', coalesce(s.restart_lsn::text, ''),
    'confirmedFlushLsn', coalesce(s.confirmed_flush_lsn::text, ''), 'walStatus', coalesce(s.wal_status, ''){details}
    )::text
FROM unnest(%s::text[]) AS k(key) JOIN pg_replication_slots s ON s.slot_name = k.key AND NOT s.temporary"""


REPLICATION_SLOTS: Final = Catalog(
    "replication slots", {0: _slots(""), _FIRST_VERSION_WITH_TWO_PHASE: _slots(", 'twoPhase', s.two_phase")}
)
# Which process streams from a slot. Others than superusers and pg_monitor see no more than its number.
SLOT_USERS: Final = Catalog(
    "users of replication slots",
    {
        0: """
SELECT k.key, json_build_object('pid', s.active_pid, 'user', a.usename, 'application', a.application_name,
    'address', coalesce(host(a.client_addr), 'this server'))::text
FROM unnest(%s::text[]) AS k(key) JOIN pg_replication_slots s ON s.slot_name = k.key AND s.active_pid IS NOT NULL
    LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid"""
    },
)
_decoder: Final = msgspec.json.Decoder(LiveReplicationSlot)
_outputs: Final = msgspec.json.Decoder(ReplicationSlotOutputs)
_user: Final = msgspec.json.Decoder(_SlotUser)


class PostgresReplicationSlotKind(RecreatableKind[PostgresReplicationSlotSpec, LiveReplicationSlot]):
    """A replication slot of a PostgreSQL server, physical or logical."""

    name = "PostgresReplicationSlot"
    word = "replication slot"
    short_names = ("pgslot",)
    outputs_type = ReplicationSlotOutputs
    uncompared = (*PostgresKind.uncompared, "reserveImmediately")
    fixed = ("plugin", "databaseRef", "twoPhase")

    def parts(
        self, resource: Resource, spec: PostgresReplicationSlotSpec, resolved: ResolvedReferences
    ) -> Sequence[str]:
        """`slots/NAME`: a name is a slot of the whole server, whichever its database."""
        return ("slots", self.object_name(resource))

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for what no slot can be."""
        super().check(resource)
        spec, name = self.spec_of(resource), self.object_name(resource)
        if not SLOT_NAME.allows(name):
            where = "spec.resourceID" if resource.spec.get("resourceID") else "metadata.name"
            raise field_invalid(
                resource, where, f" is {name!r}: a slot has lower case letters, digits and _: write spec.resourceID"
            )
        if bool(spec.plugin) != bool(spec.databaseRef):
            raise field_invalid(
                resource, "spec.plugin", ": a logical slot has a plugin and a databaseRef, a physical slot neither"
            )
        if not spec.plugin and spec.twoPhase:
            raise field_invalid(resource, "spec.twoPhase", " is for logical slots: write plugin and databaseRef, too")

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The slot as declared, with the name of its database."""
        found, database = self.declared(resource, resolved), self.spec_of(resource).databaseRef
        if database:
            found["databaseRef"] = {"external": referenced_name(DATABASE_FIELD, database, resolved)}
        return {"spec": found}

    def view(self, live: LiveReplicationSlot) -> JsonObject:
        """The live slot in the terms of the spec."""
        found: dict[str, Json] = {"twoPhase": live.twoPhase, "onChange": live.onChange}
        if live.plugin is not None:
            found |= {"plugin": live.plugin, "databaseRef": {"external": live.database}}
        return {"spec": found}

    # --- Verbs -------------------------------------------------------------------------------------------------------

    async def observe(
        self, location: Location, known: str | None = None
    ) -> Absent | Present[LiveReplicationSlot] | Unchanged:
        """Reads the slot, together with all others that are observed at the same time."""
        target = await self.target(location)
        body = await self.read(target, target.server.database, REPLICATION_SLOTS, self.address(location).name)
        if body is None:
            return Absent()
        digest = body_digest(body)
        if digest == known:
            return Unchanged()
        shown = _outputs.decode(body)
        outputs: dict[str, Json] = {name: getattr(shown, name) for name in _OUTPUTS if getattr(shown, name) != ""}
        live = msgspec.structs.replace(_decoder.decode(body), onChange=self.on_change(target))
        return Present(live, digest, outputs=outputs)

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """pg_create_…_replication_slot, in the database of a logical slot."""
        target, slot, after = await self.target(intent.location), self.address(intent.location).name, spec_in(wanted)
        statement = sql.SQL("SELECT ") + await self._creation(target, slot, after)
        client, doing = await self.client(), self.doing("create", intent.location)
        await client.create_alone(target.server, statement, doing, _database(after))

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveReplicationSlot]
    ) -> None:
        """The slot is dropped and created anew, by one statement: this is only planned where the spec allows it."""
        target, slot, after = await self.target(intent.location), self.address(intent.location).name, spec_in(wanted)
        doing = self.doing("recreate", intent.location)
        await self._require_unused(target, slot, doing)
        creation = await self._creation(target, slot, after)
        # The subquery is not merged with the query around it: the slot is dropped before the other is created.
        text = "SELECT {creation} FROM (SELECT pg_drop_replication_slot({slot}) OFFSET 0) AS dropped"
        statement = sql.SQL(text).format(creation=creation, slot=sql.Literal(slot))
        await (await self.client()).update_alone(target.server, statement, doing, _database(after))

    async def delete(self, location: Location, before: Present[LiveReplicationSlot], resource: Resource) -> None:
        """pg_drop_replication_slot; RemoteRefused, with the name of its user, for a slot that is in use."""
        target, slot = await self.target(location), self.address(location).name
        doing = self.doing("delete", location)
        await self._require_unused(target, slot, doing)
        text = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = {slot}"
        statement = sql.SQL(text).format(slot=sql.Literal(slot))
        await (await self.client()).delete_alone(target.server, statement, doing, before.live.database or "")

    # --- Parts of them -----------------------------------------------------------------------------------------------

    async def _require_unused(self, target: Target[PostgresReplicationSlotSpec], slot: str, doing: str) -> None:
        body = await self.read(target, target.server.database, SLOT_USERS, slot)
        if body is not None:
            found = _user.decode(body)
            user = f"{found.user or 'a role'} ({found.application or 'an application'}, from {found.address})"
            raise RemoteRefused(f"{doing}: {user} streams from it, as process {found.pid}: end that first")

    async def _creation(
        self, target: Target[PostgresReplicationSlotSpec], slot: str, after: Mapping[str, Json]
    ) -> ddl.Statement:
        """The call that creates the slot."""
        if not after.get("plugin"):
            reserved = bool(target.spec.reserveImmediately)
            text = "pg_create_physical_replication_slot({slot}, {reserved})"
            return sql.SQL(text).format(slot=sql.Literal(slot), reserved=sql.Literal(reserved))
        two_phase: sql.Composable = sql.SQL("")
        if after.get("twoPhase"):
            if await (await self.client()).version(target.server) < _FIRST_VERSION_WITH_TWO_PHASE:
                raise ManifestInvalid("spec.twoPhase is for PostgreSQL 14 and newer: leave it out")
            two_phase = sql.SQL(", false, true")
        text = "pg_create_logical_replication_slot({slot}, {plugin}{two_phase})"
        return sql.SQL(text).format(
            slot=sql.Literal(slot), plugin=sql.Literal(str(after["plugin"])), two_phase=two_phase
        )


def _database(spec: JsonObject) -> str:
    """The database that a logical slot is created in; empty for the one of the connection."""
    return external_name(spec, "databaseRef") or ""

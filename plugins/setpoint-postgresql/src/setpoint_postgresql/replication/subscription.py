"""PostgresSubscription: a database that receives what publications of another one publish."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec
import psycopg
from msgspec import UNSET, Struct
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from setpoint.kind import (
    Absent,
    Default,
    Intent,
    Json,
    JsonObject,
    KindContext,
    Location,
    Mark,
    Matches,
    Maybe,
    Path,
    PlannedWrite,
    PlanOptions,
    Present,
    RemoteUnavailable,
    ResolvedReferences,
    Resource,
    SecretValue,
    SpecStruct,
    Unchanged,
    field_invalid,
    referenced_name,
)
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.catalogs import Catalog
from setpoint_postgresql.client import PostgresClient
from setpoint_postgresql.connection import (
    NAME,
    DatabaseReference,
    PostgresKind,
    PostgresSpec,
    RoleReference,
    Target,
    body_digest,
    changed_fields,
    spec_in,
)
from setpoint_postgresql.database_objects import DATABASE_FIELD, external_name

SLOT_NAME: Final = Matches("[a-z0-9_]{1,63}", "the name of a slot: lower case letters, digits and underscores", 63)
# A subscription without a slot, as PostgreSQL spells it, too.
NO_SLOT: Final = "none"
_PASSWORD_FIELD: Final = "spec.password"
_PUBLISHER: Final = "publisher"
# Put after a connection that has another password than the declared one: never the password itself.
_OTHER_PASSWORD: Final = "password=(another)"
# CREATE SUBSCRIPTION cannot say them, and makes a slot: no transaction can contain both.
_AFTER_CREATION: Final = tuple(Path(("spec", name)) for name in ("ownerRef", "comment"))
_OPTIONS: Final[Mapping[str, str]] = {
    "slotName": "slot_name",
    "synchronousCommit": "synchronous_commit",
    "binary": "binary",
    "streaming": "streaming",
}


class SubscriptionDeletion(SpecStruct, frozen=True):
    """What becomes of the slot at the publisher."""

    slot: Maybe[Literal["Drop", "DropIfReachable", "Keep"]] = UNSET
    """`Drop`, by default: the subscription goes together with its slot, which needs the publisher. `DropIfReachable`:
    without the slot when the publisher cannot be reached. `Keep`: the publisher is not asked, and keeps the slot."""


class PostgresSubscriptionSpec(PostgresSpec, frozen=True, kw_only=True):
    """The spec of a PostgresSubscription."""

    databaseRef: Annotated[DatabaseReference, Mark.IMMUTABLE]
    """The database that receives the changes."""
    ownerRef: Annotated[Maybe[RoleReference], Mark.CHOSEN] = UNSET
    """Its owner, as which changes are applied; the role that logs in, when left out."""
    conninfo: str
    """How the subscriber reaches the publisher, in the words of libpq: `host=a dbname=b user=c`; without a password."""
    password: Maybe[SecretValue] = UNSET
    """The password for the publisher. PostgreSQL keeps it in the connection, where only superusers can read it."""
    publications: list[Annotated[str, NAME]]
    """The publications that it subscribes to."""
    enabled: Annotated[Maybe[bool], Default(True)] = UNSET
    """Whether changes are received."""
    slotName: Annotated[Maybe[str], SLOT_NAME, Mark.CHOSEN] = UNSET
    """The slot at the publisher; that with the name of the subscription, when left out; `none` for no slot."""
    binary: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the publisher sends data in binary form. PostgreSQL 14 and newer."""
    streaming: Annotated[Maybe[Literal["off", "on", "parallel"]], Mark.CHOSEN] = UNSET
    """Whether transactions are sent before they end. PostgreSQL 14 and newer; `parallel` from 16 on."""
    synchronousCommit: Annotated[Maybe[str], Default("off")] = UNSET
    """synchronous_commit of the process that applies changes."""
    comment: Annotated[Maybe[str], Default("")] = UNSET
    """Its comment."""
    connect: Maybe[bool] = UNSET
    """Whether the publisher is asked at all when the subscription is created; if not, it is created without a slot,
    and has to be disabled. True by default."""
    createSlot: Maybe[bool] = UNSET
    """Whether the slot is created together with the subscription; true by default. Within one server it has to exist
    before: a PostgresReplicationSlot with the plugin pgoutput."""
    copyData: Maybe[bool] = UNSET
    """Whether rows that are there are copied, at creation and for tables that are added; true by default."""
    onDelete: Maybe[SubscriptionDeletion] = UNSET
    """What becomes of the slot at the publisher."""


class SubscriptionOutputs(Struct, frozen=True):
    """What the status shows of a subscription."""

    publisher: str = ""
    """How the publisher is reached, without the password: this counts where the login cannot read it back."""


class LiveSubscription(Struct, frozen=True):
    """The live subscription. The connection is without its password; None where it cannot be read."""

    name: str
    owner: str
    publications: list[str]
    enabled: bool
    slotName: str
    synchronousCommit: str
    binary: bool = False
    streaming: str = "off"
    comment: str = ""
    isReadable: bool = False
    conninfo: str | None = None


def _subscriptions(details: str) -> str:
    return f"""
SELECT k.key, json_build_object(
    'version', current_setting('server_version_num')::int, 'name', s.subname, 'owner', pg_get_userbyid(s.subowner),
    'publications', (SELECT json_agg(p ORDER BY p) FROM unnest(s.subpublications) p), 'enabled', s.subenabled,
    'slotName', coalesce(s.subslotname, 'none'), 'synchronousCommit', s.subsynccommit{details},
    'comment', coalesce(obj_description(s.oid, 'pg_subscription'), ''),
    'isReadable', has_column_privilege('pg_subscription', 'subconninfo', 'SELECT'))::text
FROM unnest(%s::text[]) AS k(key) JOIN pg_subscription s ON s.subname = k.key
    JOIN pg_database d ON d.oid = s.subdbid AND d.datname = current_database()"""


SUBSCRIPTIONS: Final = Catalog(
    "subscriptions",
    {
        0: _subscriptions(""),
        140000: _subscriptions(", 'binary', s.subbinary, 'streaming', CASE WHEN s.substream THEN 'on' ELSE 'off' END"),
        160000: _subscriptions(
            ", 'binary', s.subbinary, 'streaming', "
            "CASE s.substream WHEN 'p' THEN 'parallel' WHEN 't' THEN 'on' ELSE 'off' END"
        ),
    },
)
# Only superusers may read this column: a query with it fails for all others.
CONNECTIONS: Final = Catalog(
    "connections of subscriptions",
    {
        0: """
SELECT k.key, to_json(s.subconninfo)::text FROM unnest(%s::text[]) AS k(key)
    JOIN pg_subscription s ON s.subname = k.key
    JOIN pg_database d ON d.oid = s.subdbid AND d.datname = current_database()"""
    },
)
_decoder: Final = msgspec.json.Decoder(LiveSubscription)
_text: Final = msgspec.json.Decoder(str)


class PostgresSubscriptionKind(PostgresKind[PostgresSubscriptionSpec, LiveSubscription]):
    """A subscription in a database of a PostgreSQL server."""

    name = "PostgresSubscription"
    word = "subscription"
    short_names = ("pgsubscription",)
    outputs_type = SubscriptionOutputs
    uncompared = (*PostgresKind.uncompared, "databaseRef", "connect", "createSlot", "copyData")

    def __init__(self, context: KindContext, client: PostgresClient | None = None) -> None:
        super().__init__(context, client)
        # The connections that this process has set, without passwords.
        self._sent: dict[Location, str] = {}

    def parts(self, resource: Resource, spec: PostgresSubscriptionSpec, resolved: ResolvedReferences) -> Sequence[str]:
        """`databases/DATABASE/subscriptions/NAME`."""
        database = referenced_name(DATABASE_FIELD, spec.databaseRef, resolved)
        return ("databases", database, "subscriptions", self.object_name(resource))

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for what no subscription can be."""
        super().check(resource)
        spec = self.spec_of(resource)
        found = _parsed(spec.conninfo)
        if found is None:
            raise field_invalid(resource, "spec.conninfo", " is no connection of libpq: write host=… dbname=… user=…")
        if "password" in found:
            raise field_invalid(resource, "spec.conninfo", " has a password: write it as spec.password, from a Secret")
        if not spec.publications or len(set(spec.publications)) < len(spec.publications):
            raise field_invalid(resource, "spec.publications", ": name at least one publication, and each once")
        if spec.connect is False and (spec.enabled is not False or spec.createSlot or spec.copyData):
            problem = " is false: then enabled has to be false, and createSlot and copyData cannot be true"
            raise field_invalid(resource, "spec.connect", problem)

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The subscription as declared; its connection in one form."""
        found, spec = self.declared(resource, resolved), self.spec_of(resource)
        if spec.ownerRef:
            found["ownerRef"] = {"external": referenced_name("spec.ownerRef", spec.ownerRef, resolved)}
        found["conninfo"] = _normalized(spec.conninfo)
        found["publications"] = [*sorted(spec.publications)]
        return {"spec": found}

    def view(self, live: LiveSubscription) -> JsonObject:
        """The live subscription in the terms of the spec."""
        names = ("publications", "enabled", "slotName", "synchronousCommit", "binary", "streaming", "comment")
        found: dict[str, Json] = {name: getattr(live, name) for name in names}
        if live.conninfo is not None:
            found["conninfo"] = live.conninfo
        return {"spec": {"ownerRef": {"external": live.owner}, **found}}

    def sending(self, intent: Intent) -> PlanOptions:
        """The creation, then what its statement cannot say."""
        return PlanOptions(after_creation=_AFTER_CREATION)

    # --- Verbs -------------------------------------------------------------------------------------------------------

    async def observe(
        self, location: Location, known: str | None = None
    ) -> Absent | Present[LiveSubscription] | Unchanged:
        """Reads the subscription; absent where its database is."""
        target, address = await self.target(location), self.address(location)
        body = await self.read(target, address.database, SUBSCRIPTIONS, address.name)
        if body is None:
            return Absent()
        live = _decoder.decode(body)
        live = msgspec.structs.replace(live, conninfo=await self._publisher(location, target, live))
        outputs: dict[str, Json] = {} if live.conninfo is None else {_PUBLISHER: live.conninfo}
        digest = body_digest(msgspec.json.encode(live))
        return Unchanged() if digest == known else Present(live, digest, outputs=outputs)

    async def _publisher(
        self, location: Location, target: Target[PostgresSubscriptionSpec], live: LiveSubscription
    ) -> str | None:
        """The connection without its password: as it is, or as it was set last where it cannot be read."""
        if not live.isReadable:
            recorded = self._sent.get(location) or target.status.get(_PUBLISHER)
            return recorded if isinstance(recorded, str) and recorded else None
        address = self.address(location)
        body = await self.read(target, address.database, CONNECTIONS, address.name)
        stored = "" if body is None else _text.decode(body)
        text, password = _normalized(stored), (_parsed(stored) or {}).get("password")
        # A deletion reads no Secret but that of the login.
        is_declared = target.is_deleting or password == _password(target)
        return text if is_declared else f"{text} {_OTHER_PASSWORD}"

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """CREATE SUBSCRIPTION: no transaction can contain it where it creates a slot."""
        target, address, after = await self.target(intent.location), self.address(intent.location), spec_in(wanted)
        statement = _create(address.name, after, target)
        client, doing = await self.client(), self.doing("create", intent.location)
        await client.create_alone(target.server, statement, doing, address.database)
        self._sent[intent.location] = str(after["conninfo"])

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveSubscription]
    ) -> None:
        """What differs, in one transaction; publications after it: the publisher is asked for their tables."""
        target, address, after = await self.target(intent.location), self.address(intent.location), spec_in(wanted)
        changed, client = changed_fields(write), await self.client()
        doing, found = self.doing("change", intent.location), _alterations(address.name, changed, after, target)
        if found:
            await client.update(target.server, address.database, found, doing)
        if not changed.isdisjoint(("conninfo", "password")):
            self._sent[intent.location] = str(after["conninfo"])
        is_enabled = bool(after.get("enabled", True))
        if "publications" in changed or ("enabled" in changed and is_enabled):
            statement = _set_publications(address.name, after, refresh=is_enabled, copies=target.spec.copyData)
            await client.update_alone(target.server, statement, doing, address.database)

    async def delete(self, location: Location, before: Present[LiveSubscription], resource: Resource) -> None:
        """DROP SUBSCRIPTION, with its slot or without it."""
        target, address = await self.target(location), self.address(location)
        client, doing = await self.client(), self.doing("delete", location)
        policy = (target.spec.onDelete.slot if target.spec.onDelete else UNSET) or "Drop"
        dropped = ddl.drop("SUBSCRIPTION", address.name)
        if policy != "Keep" and before.live.slotName != NO_SLOT:
            try:
                await client.delete_alone(target.server, dropped, doing, address.database)
            except RemoteUnavailable as error:
                if policy == "Drop":
                    advice = "let the publisher be reached, or set spec.onDelete.slot to DropIfReachable or Keep"
                    raise RemoteUnavailable(f"{error}; its slot goes with it: {advice}") from error
            else:
                return
        alone = _altered(address.name, sql.SQL("DISABLE")), _altered(address.name, sql.SQL("SET (slot_name = NONE)"))
        await client.delete(target.server, address.database, [*alone, dropped], doing)


# --- Connections ------------------------------------------------------------------------------------------------------


def _parsed(text: str) -> dict[str, str] | None:
    try:
        return {name: str(value) for name, value in conninfo_to_dict(text).items() if value is not None}
    except psycopg.ProgrammingError:
        return None


def _normalized(text: str) -> str:
    """The connection in one form, without its password."""
    found = _parsed(text) or {}
    return make_conninfo("", **{name: found[name] for name in sorted(found) if name != "password"})


def _password(target: Target[PostgresSubscriptionSpec]) -> str | None:
    given = target.spec.password
    found = target.secrets.get(_PASSWORD_FIELD) or (given.value if given else None)
    return found if isinstance(found, str) and found else None


def _with_password(conninfo: str, target: Target[PostgresSubscriptionSpec]) -> sql.Literal:
    password = _password(target)
    return sql.Literal(conninfo if password is None else make_conninfo(conninfo, password=password))


# --- Statements -------------------------------------------------------------------------------------------------------


def _altered(subscription: str, change: sql.Composable) -> ddl.Statement:
    return sql.SQL("ALTER SUBSCRIPTION {name} {change}").format(name=ddl.name(subscription), change=change)


def _create(subscription: str, spec: Mapping[str, Json], target: Target[PostgresSubscriptionSpec]) -> ddl.Statement:
    asked = target.spec
    flags = {"connect": asked.connect, "create_slot": asked.createSlot, "copy_data": asked.copyData}
    given: dict[str, Json] = {word: value for word, value in flags.items() if isinstance(value, bool)}
    given |= {word: spec[name] for name, word in {"enabled": "enabled", **_OPTIONS}.items() if name in spec}
    if given.get("binary") is False:
        # PostgreSQL 13 does not know it.
        del given["binary"]
    text = "CREATE SUBSCRIPTION {name} CONNECTION {connection} PUBLICATION {publications} WITH ({options})"
    return sql.SQL(text).format(
        name=ddl.name(subscription),
        connection=_with_password(str(spec["conninfo"]), target),
        publications=_publications(spec),
        options=_options(given),
    )


def _alterations(
    subscription: str,
    changed: set[str],
    after: Mapping[str, Json],
    target: Target[PostgresSubscriptionSpec],
) -> list[ddl.Statement]:
    """What a transaction can contain."""
    found: list[sql.Composable] = []
    if not changed.isdisjoint(("conninfo", "password")):
        found.append(sql.SQL("CONNECTION ") + _with_password(str(after["conninfo"]), target))
    options = {word: after[name] for name, word in _OPTIONS.items() if name in changed and name in after}
    if options:
        found.append(sql.SQL("SET ({options})").format(options=_options(options)))
    if "enabled" in changed:
        found.append(sql.SQL("ENABLE" if after.get("enabled", True) else "DISABLE"))
    if "ownerRef" in changed and (owner := external_name(dict(after), "ownerRef")):
        found.append(sql.SQL("OWNER TO ") + ddl.name(owner))
    statements = [_altered(subscription, one) for one in found]
    if "comment" in changed:
        statements.append(ddl.comment("SUBSCRIPTION", [subscription], str(after.get("comment") or "")))
    return statements


def _set_publications(
    subscription: str, spec: Mapping[str, Json], *, refresh: bool, copies: Maybe[bool]
) -> ddl.Statement:
    options: dict[str, Json] = {"refresh": refresh}
    if refresh and isinstance(copies, bool):
        options["copy_data"] = copies
    change = sql.SQL("SET PUBLICATION {publications} WITH ({options})")
    return _altered(subscription, change.format(publications=_publications(spec), options=_options(options)))


def _publications(spec: Mapping[str, Json]) -> sql.Composable:
    found = spec.get("publications")
    return sql.SQL(", ").join(ddl.name(str(one)) for one in found) if isinstance(found, list) else sql.SQL("")


def _options(options: Mapping[str, Json]) -> sql.Composable:
    """Options by the words of PostgreSQL, which are ours; `none` is a word, too."""
    return sql.SQL(", ").join(
        sql.SQL(f"{word} = ") + sql.Literal(value if isinstance(value, str) else "true" if value else "false")
        for word, value in options.items()
    )

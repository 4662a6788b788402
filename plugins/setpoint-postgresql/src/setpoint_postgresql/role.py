"""PostgresRole: a role of a server, with its attributes, memberships, settings and password."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from secrets import token_urlsafe
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from setpoint.kind import (
    Absent,
    Between,
    Default,
    Dependency,
    GeneratedSecret,
    Int64,
    Intent,
    Json,
    JsonObject,
    Keyed,
    Location,
    ManifestInvalid,
    Mark,
    Matches,
    Maybe,
    PlannedWrite,
    Present,
    RemoteRefused,
    ResolvedReferences,
    Resource,
    ResourceRef,
    SecretKeyReference,
    SecretValue,
    SpecStruct,
    Unchanged,
    field_invalid,
)
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.acl import PUBLIC
from setpoint_postgresql.catalogs import ROLE_DATABASES, ROLES
from setpoint_postgresql.client import Login
from setpoint_postgresql.connection import (
    NAME,
    PostgresSpec,
    Target,
    body_digest,
    changed_fields,
    spec_in,
)
from setpoint_postgresql.imports import ImportedKind
from setpoint_postgresql.server import connection_entries, is_name
from setpoint_postgresql.settings import (
    DatabaseSettings,
    SettingsMap,
    check_settings,
    normalized_settings,
    setting_statements,
    settings_view,
)

NO_LIMIT: Final = -1
NEVER: Final = "infinity"
ON_WRITE: Final = "OnWrite"
# A password that another writer set: what is found instead of the declared check.
REFUSED: Final = "Refused"
_PASSWORD_FIELD: Final = "spec.password"
_SECRET_FIELD: Final = "spec.writeConnectionSecretToRef"
_PASSWORD_KEY: Final = "password"
# So many random bytes: a password of 43 characters that need no quoting in an address.
_PASSWORD_BYTES: Final = 32
SECRET_NAME: Final = Matches("[a-z0-9]([-a-z0-9.]*[a-z0-9])?", "the name of a Secret", 253)
_FIRST_VERSION_WITH_OPTIONS: Final = 160000


class RoleMembership(SpecStruct, frozen=True):
    """A role that this one is a member of."""

    role: Annotated[str, NAME]
    """The role."""
    admin: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the member may grant the membership on."""
    inherit: Annotated[Maybe[bool], Mark.CHOSEN] = UNSET
    """Whether the member has its privileges without SET ROLE. PostgreSQL 16 and newer."""
    set: Annotated[Maybe[bool], Mark.CHOSEN] = UNSET
    """Whether the member may SET ROLE to it. PostgreSQL 16 and newer."""


class RoleDeletion(SpecStruct, frozen=True):
    """What becomes of what a role owns and holds, in every database, when it is deleted."""

    reassignOwnedTo: Annotated[Maybe[str], NAME] = UNSET
    """The role that gets its objects (REASSIGN OWNED); the privileges that it holds are revoked."""
    dropOwned: Maybe[bool] = UNSET
    """Whether its objects are dropped, and the privileges that it holds are revoked (DROP OWNED)."""


class ConnectionSecretReference(SpecStruct, frozen=True):
    """The Secret that a connection is written to, in the namespace of the resource."""

    name: Annotated[str, SECRET_NAME]
    """Its name. It is created; a Secret of that name that exists already is not written."""


class PostgresRoleSpec(PostgresSpec, frozen=True, kw_only=True):
    """The spec of a PostgresRole."""

    login: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether it can log in."""
    password: Maybe[SecretValue] = UNSET
    """The password. What is sent is a SCRAM-SHA-256 verifier of it, never the password itself."""
    writeConnectionSecretToRef: Maybe[ConnectionSecretReference] = UNSET
    """The Secret of the role: its password is generated, and kept there with all that a client needs to log in."""
    passwordCheck: Annotated[Maybe[Literal["OnWrite", "Always"]], Default(ON_WRITE)] = UNSET
    """When setpoint logs in as the role to check its password: after it was set, or with every observation, so
    that a password that another writer set counts as drift."""
    superuser: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether no check of privileges applies to it."""
    createDatabase: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether it can create databases."""
    createRole: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether it can create roles."""
    inherit: Annotated[Maybe[bool], Default(True)] = UNSET
    """Whether it has the privileges of the roles that it is a member of."""
    replication: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether it can replicate."""
    bypassRowSecurity: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether no policy of row-level security applies to it."""
    connectionLimit: Annotated[Maybe[Int64], Between(-1, 2147483647), Default(NO_LIMIT)] = UNSET
    """How many connections it may have at once; -1 for any number."""
    validUntil: Annotated[Maybe[str], Default(NEVER)] = UNSET
    """When its password expires, as RFC 3339; `infinity` for never."""
    memberOf: Annotated[Maybe[list[RoleMembership]], Keyed("role")] = UNSET
    """The roles that it is a member of."""
    searchPath: Maybe[list[Annotated[str, NAME]]] = UNSET
    """The schemas in which its sessions look for names (ALTER ROLE … SET search_path)."""
    settings: Maybe[SettingsMap] = UNSET
    """Parameters of its sessions (ALTER ROLE … SET)."""
    databaseSettings: Annotated[Maybe[list[DatabaseSettings]], Keyed("database")] = UNSET
    """Parameters of its sessions in one database (ALTER ROLE … IN DATABASE … SET)."""
    comment: Annotated[Maybe[str], Default("")] = UNSET
    """Its comment (COMMENT ON ROLE)."""
    onDelete: Maybe[RoleDeletion] = UNSET
    """What becomes of what it owns. Without it, a role that owns anything, or holds privileges, is not deleted."""


class LiveMembership(Struct, frozen=True):
    """A membership as the server has it."""

    role: str
    admin: bool = False
    inherit: bool | UnsetType = UNSET
    set: bool | UnsetType = UNSET


class LiveRole(Struct, frozen=True):
    """The live role. Its password is never read: only whether a login with it is accepted, where that is asked for."""

    name: str
    superuser: bool
    createDatabase: bool
    createRole: bool
    inherit: bool
    login: bool
    replication: bool
    bypassRowSecurity: bool
    connectionLimit: int
    validUntil: str | None = None
    comment: str = ""
    memberOf: list[LiveMembership] = []
    # The database, empty for all, and the entries of setconfig.
    settings: list[tuple[str, list[str]]] = []
    # What the spec says, or REFUSED: the server does not accept the password any more.
    passwordCheck: str = ON_WRITE


_decoder: Final = msgspec.json.Decoder(LiveRole)
_databases: Final = msgspec.json.Decoder(list[str])
_DEFAULTS: Final[Mapping[str, Json]] = {
    **dict.fromkeys(ddl.ROLE_FLAGS, False),
    "inherit": True,
    "connectionLimit": NO_LIMIT,
    "validUntil": NEVER,
}


class PostgresRoleKind(ImportedKind[PostgresRoleSpec, LiveRole]):
    """A role of a PostgreSQL server: a user, or a group of users."""

    name = "PostgresRole"
    word = "role"
    short_names = ("pgrole",)
    uncompared = (*ImportedKind.uncompared, "writeConnectionSecretToRef")

    def parts(self, resource: Resource, spec: PostgresRoleSpec, resolved: ResolvedReferences) -> Sequence[str]:
        """`roles/NAME`."""
        return ("roles", self.object_name(resource))

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for what no role can be."""
        super().check(resource)
        spec = self.spec_of(resource)
        check_settings(resource, "spec.settings", spec.settings)
        for each in spec.databaseSettings or ():
            check_settings(resource, "spec.databaseSettings", each.settings)
        if self.object_name(resource) == PUBLIC or self.object_name(resource).startswith("pg_"):
            raise field_invalid(resource, "spec.resourceID", ": PostgreSQL reserves `public` and names with `pg_`")
        if isinstance(spec.validUntil, str) and _normalized_time(spec.validUntil) is None:
            raise field_invalid(
                resource, "spec.validUntil", f" is {spec.validUntil!r}: write a time such as 2030-01-31T00:00:00Z"
            )
        if spec.password and spec.writeConnectionSecretToRef:
            raise field_invalid(resource, _SECRET_FIELD, " has a password that is generated: leave spec.password out")
        names = [one.role for one in spec.memberOf or ()]
        if not all(map(is_name, names)):
            raise field_invalid(resource, "spec.memberOf", ": names of PostgreSQL have at most 63 bytes")

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The references of the spec, and the password that is generated."""
        found, secret = super().dependencies(resource), self.spec_of(resource).writeConnectionSecretToRef
        if not secret:
            return found
        ref = ResourceRef("", "Secret", resource.ref.namespace, secret.name)
        return (*found, SecretKeyReference(_PASSWORD_FIELD, ref, _PASSWORD_KEY))

    def generated_secret(self, resource: Resource) -> GeneratedSecret | None:
        """See SupportsGeneratedSecret: a password, and what a client needs to log in with it."""
        spec = self.spec_of(resource)
        if not spec.writeConnectionSecretToRef:
            return None
        server, role = self.public_address(resource, spec), self.object_name(resource)
        return GeneratedSecret(
            spec.writeConnectionSecretToRef.name,
            _PASSWORD_KEY,
            lambda: token_urlsafe(_PASSWORD_BYTES),
            lambda password: connection_entries(server, role, password),
        )

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The role as declared, with its password from the Secret."""
        found = self.declared(resource, resolved)
        if self.spec_of(resource).writeConnectionSecretToRef:
            found["password"] = {"value": resolved.secrets[_PASSWORD_FIELD]}
        if isinstance(found.get("validUntil"), str):
            found["validUntil"] = _normalized_time(str(found["validUntil"])) or found["validUntil"]
        return {"spec": normalized_settings(found)}

    def view(self, live: LiveRole) -> JsonObject:
        """The live role in the terms of the spec."""
        found: dict[str, Json] = {name: getattr(live, name) for name in _DEFAULTS}
        found |= {"validUntil": live.validUntil or NEVER, "comment": live.comment, "passwordCheck": live.passwordCheck}
        memberships: list[Json] = [msgspec.to_builtins(one) for one in live.memberOf]
        return {"spec": {**found, "memberOf": memberships, **settings_view(live.settings)}}

    # --- Verbs -------------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveRole] | Unchanged:
        """Reads the role, together with all others that are observed at the same time."""
        target = await self.target(location)
        body = await self.read(target, target.server.database, ROLES, self.address(location).name)
        if body is None:
            return Absent()
        live = _decoder.decode(body)
        if await self._is_password_wrong(location, target, live):
            return Present(msgspec.structs.replace(live, passwordCheck=REFUSED))
        digest = body_digest(body)
        found = msgspec.structs.replace(live, passwordCheck=target.spec.passwordCheck or ON_WRITE)
        return Unchanged() if digest == known else Present(found, digest)

    async def create(self, intent: Intent, wanted: JsonObject) -> None:
        """CREATE ROLE and all that belongs to it, in one transaction."""
        target, role, after = await self.target(intent.location), self.address(intent.location).name, spec_in(wanted)
        options = {name: after[name] for name, default in _DEFAULTS.items() if after.get(name, default) != default}
        verifier = await self._verifier(target, role, after)
        found = [ddl.create_role(role, options, verifier), *await self._rest(target, role, {}, after)]
        client = await self.client()
        await client.create(target.server, target.server.database, found, self.doing("create", intent.location))
        await self._require_accepted(target, role, after)

    async def update(self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveRole]) -> None:
        """What differs, in one transaction; attributes that are the same are not sent, which may need other rights."""
        target, role, after = await self.target(intent.location), self.address(intent.location).name, spec_in(wanted)
        changed = changed_fields(write)
        options = {name: after.get(name, _DEFAULTS[name]) for name in _DEFAULTS if name in changed}
        is_sent = not changed.isdisjoint(("password", "passwordCheck"))
        verifier = await self._verifier(target, role, after) if is_sent else None
        was = spec_in(self.view(before.live))
        kept = {name: after.get(name) if name in changed else was.get(name) for name in {*after, *was}}
        found = [*ddl.alter_role(role, options, verifier), *await self._rest(target, role, was, kept)]
        client = await self.client()
        await client.update(target.server, target.server.database, found, self.doing("change", intent.location))
        if verifier is not None:
            await self._require_accepted(target, role, after)

    async def delete(self, location: Location, before: Present[LiveRole], resource: Resource) -> None:
        """DROP ROLE, after what `onDelete` says in every database in which something depends on it."""
        target, role = await self.target(location), self.address(location).name
        client, doing = await self.client(), self.doing("delete", location)
        released = _release_statements(role, target.spec.onDelete)
        if released:
            body = await self.read(target, target.server.database, ROLE_DATABASES, role)
            for database in [] if body is None else _databases.decode(body):
                await client.delete(target.server, database, released, f"{doing}, in {database}")
        await client.delete(target.server, target.server.database, [ddl.drop("ROLE", role)], doing)

    # --- Parts of them -----------------------------------------------------------------------------------------------

    async def _rest(
        self, target: Target[PostgresRoleSpec], role: str, before: Mapping[str, Json], after: Mapping[str, Json]
    ) -> list[ddl.Statement]:
        """The statements for memberships, settings and the comment."""
        found = setting_statements(before, after, lambda database: ddl.role_subject(role, database))
        if before.get("memberOf", []) != after.get("memberOf", []):
            client = await self.client()
            found += _membership_statements(role, before, after, await client.version(target.server))
        if (before.get("comment") or "") != (after.get("comment") or ""):
            found.append(ddl.comment("ROLE", [role], str(after.get("comment") or "")))
        return found

    async def _verifier(self, target: Target[PostgresRoleSpec], role: str, after: Mapping[str, Json]) -> str | None:
        password = _password_in(after)
        return None if password is None else await (await self.client()).verifier(target.server, role, password)

    async def _require_accepted(self, target: Target[PostgresRoleSpec], role: str, after: Mapping[str, Json]) -> None:
        """Logs in as the role: RemoteRefused when the server does not accept what was just set."""
        password = _password_in(after)
        if password is None or not after.get("login"):
            return
        if await (await self.client()).log_in(target.server, role, password) is Login.WRONG and not _has_expired(after):
            raise RemoteRefused(f"the password of {role} was set, and {target.server} does not accept it: see its log")

    async def _is_password_wrong(self, location: Location, target: Target[PostgresRoleSpec], live: LiveRole) -> bool:
        spec = target.spec
        password = target.secrets.get(_PASSWORD_FIELD) or (spec.password.value if spec.password else None)
        if spec.passwordCheck != "Always" or target.is_deleting or not isinstance(password, str) or not live.login:
            return False
        with self.context.reading():
            found = await (await self.client()).log_in(target.server, self.address(location).name, password)
        return found is Login.WRONG and not _has_expired({"validUntil": live.validUntil})


def _password_in(spec: Mapping[str, Json]) -> str | None:
    password = spec.get("password")
    value = password.get("value") if isinstance(password, Mapping) else None
    return value if isinstance(value, str) else None


def _has_expired(spec: Mapping[str, Json]) -> bool:
    """Whether the password is past its time: then no login is accepted, whatever it is."""
    until = spec.get("validUntil")
    if not isinstance(until, str) or until == NEVER:
        return False
    return datetime.fromisoformat(until) <= datetime.now(UTC)


def _membership_statements(
    role: str, before: Mapping[str, Json], after: Mapping[str, Json], version: int
) -> list[ddl.Statement]:
    was, wanted = _by_role(before.get("memberOf")), _by_role(after.get("memberOf"))
    found = [ddl.revoke_membership(one, role) for one in was if one not in wanted]
    for one, options in wanted.items():
        if was.get(one) == options:
            continue
        if was.get(one, {}).get("admin") and not options.get("admin"):
            found.append(ddl.revoke_admin(one, role))
        if version < _FIRST_VERSION_WITH_OPTIONS and not {"inherit", "set"}.isdisjoint(options):
            raise ManifestInvalid(
                f"spec.memberOf of {role}: inherit and set are for PostgreSQL 16 and newer: leave them out"
            )
        found.append(ddl.grant_membership(one, role, options, version))
    return found


def _by_role(memberships: Json) -> dict[str, dict[str, bool]]:
    found = memberships if isinstance(memberships, list) else []
    return {
        str(one["role"]): {name: bool(value) for name, value in one.items() if name != "role" and value is not None}
        for one in found
        if isinstance(one, Mapping)
    }


def _release_statements(role: str, policy: Maybe[RoleDeletion]) -> list[ddl.Statement]:
    if not policy:
        return []
    if policy.reassignOwnedTo:
        # What is left after that are privileges: they are revoked, and nothing else is dropped.
        return [ddl.reassign_owned(role, policy.reassignOwnedTo), ddl.drop_owned(role)]
    return [ddl.drop_owned(role)] if policy.dropOwned else []


def _normalized_time(text: str) -> str | None:
    """The time in UTC as the catalog has it; None for a text that is no time with a zone."""
    if text == NEVER:
        return NEVER
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if found.tzinfo is None else found.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

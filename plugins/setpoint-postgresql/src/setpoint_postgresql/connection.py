"""The connection in a spec, and what every kind of this plug-in shares: its server, its client and its location."""

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Annotated, ClassVar, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct

from setpoint.kind import (
    Absent,
    BaseKind,
    Between,
    Int64,
    Json,
    JsonObject,
    KindContext,
    Location,
    Mark,
    Matches,
    Maybe,
    PlannedWrite,
    Present,
    RefersTo,
    RemoteRefused,
    ResolvedReferences,
    Resource,
    ResourceRef,
    ResourceReference,
    SecretSource,
    SecretValue,
    SpecStruct,
    Unchanged,
    UserError,
    field_invalid,
)
from setpoint_postgresql.catalogs import Catalog
from setpoint_postgresql.client import PostgresClient
from setpoint_postgresql.failures import DatabaseNotFound
from setpoint_postgresql.server import (
    DEFAULT_DATABASE,
    DEFAULT_PORT,
    DEFAULT_USER,
    MAX_NAME_BYTES,
    ObjectAddress,
    Server,
    TlsFiles,
    is_name,
    parse_location,
    render_location,
)

GROUP: Final = "postgresql.setpoint.dev"
VERSION: Final = "v1alpha1"
_CONNECTION: Final = "spec.connection"
# Names the file with the token that a role logs in with, which another program renews.
TOKEN_FILE: Final = "SETPOINT_POSTGRES_TOKEN_FILE"
_ENCRYPTED: Final = ("require", "verify-ca", "verify-full")
# A proxy of the cloud on this machine encrypts what leaves it.
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
NAME: Final = Matches("[^\\x00]+", f"a name of PostgreSQL: at most {MAX_NAME_BYTES} bytes", MAX_NAME_BYTES)
# Which kind a reference means; by `external`, an object that is no resource here.
DatabaseReference = Annotated[ResourceReference, RefersTo(GROUP, "PostgresDatabase")]
RoleReference = Annotated[ResourceReference, RefersTo(GROUP, "PostgresRole")]
SchemaReference = Annotated[ResourceReference, RefersTo(GROUP, "PostgresSchema")]

S = TypeVar("S", bound=Struct)
L = TypeVar("L", bound=Struct)


class ConnectionTls(SpecStruct, frozen=True):
    """TLS of a connection. Certificates are PEM."""

    mode: Maybe[Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]] = UNSET
    """What libpq demands of the server; `verify-full` checks its certificate and its name."""
    authority: Maybe[SecretValue] = UNSET
    """The certificates of the authorities that may have signed that of the server."""
    certificate: Maybe[SecretValue] = UNSET
    """The certificate by which the client logs in."""
    key: Maybe[SecretValue] = UNSET
    """The key of that certificate."""


class ConnectionSpec(SpecStruct, frozen=True):
    """How the server is reached. What is left out comes from PGHOST, PGPORT, PGUSER, PGDATABASE and PGSSLMODE."""

    host: Maybe[str] = UNSET
    """The name or address of the server, or the folder of its socket."""
    port: Annotated[Maybe[Int64], Between(1, 65535)] = UNSET
    """The port; 5432 when it is left out everywhere."""
    user: Annotated[Maybe[str], NAME] = UNSET
    """The role that logs in; `postgres` when it is left out everywhere."""
    database: Annotated[Maybe[str], NAME] = UNSET
    """The database to connect to for what belongs to the whole server, such as roles; `postgres` by default."""
    password: Maybe[SecretValue] = UNSET
    """The password. Left out: PGPASSWORD, else what libpq finds, such as ~/.pgpass."""
    tls: Maybe[ConnectionTls] = UNSET
    """TLS of the connection."""


class PostgresSpec(SpecStruct, frozen=True):
    """What every spec of this plug-in has."""

    connection: Maybe[ConnectionSpec] = UNSET
    """How the server is reached."""
    resourceID: Annotated[Maybe[str], NAME, Mark.IMMUTABLE] = UNSET
    """The name of the object in PostgreSQL; the resource's own when left out."""
    deletionPolicy: Maybe[Literal["ABANDON", "DELETE"]] = UNSET
    """Whether the object goes when the resource does; ABANDON leaves it there."""


@dataclass(frozen=True, slots=True)
class Target(Generic[S]):
    """What an observation needs beside the location: the server, the spec and its secrets."""

    server: Server
    spec: S
    secrets: Mapping[str, str]
    # The status, with what was on record when the resource last settled.
    status: JsonObject
    is_deleting: bool = False
    # Whether the last step left nothing to do for this very spec.
    is_settled: bool = False


class PostgresKind(BaseKind[S, L], Generic[S, L]):
    """What the kinds of this plug-in share."""

    group = GROUP
    version = VERSION
    reads_secrets = True
    uncompared: Sequence[str] = ("connection", "resourceID", "deletionPolicy", "onDelete")
    # What an object of the kind is called in statements and messages.
    word: ClassVar[str]

    def __init__(self, context: KindContext, client: PostgresClient | None = None) -> None:
        super().__init__(context)
        self._given = client
        self._targets: dict[Location, Target[S]] = {}
        self._deleting: dict[Location, Resource] = {}
        # What was found to be valid, by its digest.
        self._checked: dict[ResourceRef, str] = {}

    # --- Where the object is -----------------------------------------------------------------------------------------

    @abstractmethod
    def parts(self, resource: Resource, spec: S, resolved: ResolvedReferences) -> Sequence[str]:
        """The names that lead to the object on its server, from the outermost on."""

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`postgresql://host:port/…`: the same for each role that logs in."""
        # A store keeps what was written, valid or not.
        if self._checked.get(resource.ref) != resource.author_digest:
            self.check(resource)
            self._checked[resource.ref] = resource.author_digest
        spec = self.spec_of(resource)
        server = self._server(resource, spec, resolved.secrets)
        location = Location(render_location(server, *self.parts(resource, spec, resolved)))
        self._targets[location] = Target(
            server, spec, resolved.secrets, resource.status, is_settled=_is_settled(resource)
        )
        self._deleting.pop(location, None)
        return location

    def prepare_deletion(self, resource: Resource, location: Location) -> None:
        """See SupportsDeletionPreparation: what the connection needs is read once it is made."""
        self._deleting[location] = resource

    async def target(self, location: Location) -> Target[S]:
        """The target of a location that was located, or whose object is being deleted."""
        resource = self._deleting.get(location)
        if resource is not None:
            self._targets[location] = await self._deletion_target(resource)
            del self._deleting[location]
        found = self._targets.get(location)
        if found is None:
            raise RemoteRefused(
                f"how to connect to the server of {location} is not known here: apply the resource again"
            )
        return found

    async def _deletion_target(self, resource: Resource) -> Target[S]:
        spec = self.spec_of(resource)
        secrets = {}
        for dependency in self.dependencies(resource):
            key = getattr(dependency, "key", None)
            if isinstance(key, str) and dependency.field.startswith(f"{_CONNECTION}."):
                name = dependency.secret.name  # type: ignore[union-attr] # only a SecretKeyReference has a key
                secrets[dependency.field] = await self.context.secret(name, key, resource.ref.namespace)
        return Target(self._server(resource, spec, secrets), spec, secrets, resource.status, is_deleting=True)

    @staticmethod
    def address(location: Location) -> ObjectAddress:
        """The parsed location; UserError for a text that is none."""
        found = parse_location(location)
        if found is None:
            raise UserError(f"{location!r} is no location of this kind: correct status.setpoint.location, or remove it")
        return found

    def public_address(self, resource: Resource, spec: S) -> Server:
        """The server without what is secret: where it is, and which database is connected to."""
        connection = getattr(spec, "connection", UNSET) or ConnectionSpec()
        environment = self._environment
        host = connection.host or environment.get("PGHOST", "")
        if not host:
            raise field_invalid(resource, f"{_CONNECTION}.host", " is missing: write it, or set PGHOST")
        return Server(
            host=host,
            port=connection.port or int(environment.get("PGPORT") or DEFAULT_PORT),
            user=connection.user or environment.get("PGUSER") or DEFAULT_USER,
            database=connection.database or environment.get("PGDATABASE") or DEFAULT_DATABASE,
        )

    @property
    def _environment(self) -> Mapping[str, str]:
        """An operator's variables are for the operator's own store: a tenant brings its own login."""
        return {} if self.context.tenant is not None else self.context.environment

    def _server(self, resource: Resource, spec: S, secrets: Mapping[str, str]) -> Server:
        connection = getattr(spec, "connection", UNSET) or ConnectionSpec()
        tls = connection.tls or ConnectionTls()
        address = self.public_address(resource, spec)
        password = _secret("password", connection.password, secrets)
        mode = tls.mode or self._environment.get("PGSSLMODE", "")
        token_file = "" if password else self._token_file(resource, address, mode)
        if not password and not token_file and self.context.tenant is None:
            password = self.context.credential("PGPASSWORD")
        if not password and self.context.tenant is not None and not tls.certificate:
            raise field_invalid(resource, f"{_CONNECTION}.password", " is missing: write the Secret that has it")
        files = TlsFiles(
            mode,
            _secret("tls.authority", tls.authority, secrets),
            _secret("tls.certificate", tls.certificate, secrets),
            _secret("tls.key", tls.key, secrets),
        )
        return replace(address, password=password, tls=files, token_file=token_file)

    def _token_file(self, resource: Resource, address: Server, mode: str) -> str:
        """The operator's file with a token of a cloud's identity; for the operator's own server alone, and not in the
        clear."""
        environment = self._environment
        path = environment.get(TOKEN_FILE, "")
        if not path or address.host != environment.get("PGHOST"):
            return ""
        if mode not in _ENCRYPTED and address.host not in _LOOPBACK and not address.host.startswith("/"):
            problem = f" is {mode or 'left out'}: a token is sent as it is; write one of {', '.join(_ENCRYPTED)}"
            raise field_invalid(resource, f"{_CONNECTION}.tls.mode", problem)
        return path

    # --- What the spec says ------------------------------------------------------------------------------------------

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that is invalid whatever the live state."""
        super().check(resource)
        name = self.object_name(resource)
        if not is_name(name):
            where = "spec.resourceID" if resource.spec.get("resourceID") else "metadata.name"
            raise field_invalid(
                resource, where, f" is {name!r}: names of PostgreSQL have at most {MAX_NAME_BYTES} bytes"
            )

    def declared(self, resource: Resource, resolved: ResolvedReferences) -> dict[str, Json]:
        """The fields of the spec that are compared or sent, with the values of their Secrets."""
        found = {name: value for name, value in resource.spec.items() if name not in self.uncompared}
        for field, value in resolved.secrets.items():
            name = field.removeprefix("spec.")
            if name in found:
                found[name] = {"value": value}
        return found

    async def observe_many(self, locations: Sequence[Location]) -> Mapping[Location, Absent | Present[L]]:
        """See SupportsBulkObserve: all are read at the same time, which takes one query of each catalog."""
        found = await asyncio.gather(*(self.observe(location) for location in locations))
        return {at: one for at, one in zip(locations, found, strict=True) if not isinstance(one, Unchanged)}

    # --- The client --------------------------------------------------------------------------------------------------

    async def client(self) -> PostgresClient:
        """The client that all kinds of this plug-in share."""
        if self._given is not None:
            return self._given
        return await self.context.client("setpoint-postgresql", self.new_client)

    def new_client(self) -> PostgresClient:
        """The client of a process that has none yet."""
        return PostgresClient(is_read_only=self.context.is_read_only)

    async def read(self, target: Target[S], database: str, catalog: Catalog, key: str) -> bytes | None:
        """A row of a catalog; None also where the database does not exist: then nothing in it does."""
        client = await self.client()
        with self.context.reading():
            try:
                return await client.read(target.server, database, catalog, key)
            except DatabaseNotFound:
                return None

    def doing(self, verb: str, location: Location) -> str:
        """What is being done, for messages: `create role app at db:5432`."""
        address = self.address(location)
        return f"{verb} {self.word} {address.name} at {address.host}:{address.port}"


def _is_settled(resource: Resource) -> bool:
    conditions = resource.status.get("conditions")
    listed = conditions if isinstance(conditions, list) else []
    ready = any(isinstance(one, dict) and (one.get("type"), one.get("status")) == ("Ready", "True") for one in listed)
    return ready and resource.status.get("observedGeneration") == resource.generation


def _secret(name: str, given: SecretSource | None | object, secrets: Mapping[str, str]) -> str:
    found = secrets.get(f"{_CONNECTION}.{name}")
    if found is None and isinstance(given, SecretSource) and isinstance(given.value, str):
        found = given.value
    return found or ""


def body_digest(body: bytes) -> str:
    """The digest of a row, by which an unchanged object is known."""
    return sha256(body).hexdigest()


def spec_in(tree: JsonObject) -> dict[str, Json]:
    """The member `spec` of a tree."""
    spec = tree.get("spec")
    return dict(spec) if isinstance(spec, Mapping) else {}


def changed_fields(write: PlannedWrite) -> set[str]:
    """The fields of the spec that a write changes, at any depth."""
    return {str(change.path.steps[1]) for change in write.changes if len(change.path.steps) > 1}


def text_setting(value: Json) -> str:
    """The value of a setting as text."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

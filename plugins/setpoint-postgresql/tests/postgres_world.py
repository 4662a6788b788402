"""An engine with the kinds on a real server, for tests beside the contract."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from postgres_server import PASSWORD, PostgresServer
from setpoint.kind import KindContext, ResourceRef
from setpoint.testing import EngineHarness, engine_harness
from setpoint_postgresql.client import PostgresClient
from setpoint_postgresql.connection import GROUP, VERSION, PostgresKind
from setpoint_postgresql.database import PostgresDatabaseKind
from setpoint_postgresql.database_objects import PostgresExtensionKind, PostgresSchemaKind
from setpoint_postgresql.foreign.mappings import PostgresUserMappingKind
from setpoint_postgresql.foreign.servers import PostgresForeignServerKind
from setpoint_postgresql.grants import PostgresDefaultPrivilegesKind, PostgresGrantKind
from setpoint_postgresql.labels.security_labels import PostgresSecurityLabelKind
from setpoint_postgresql.replication.publication import PostgresPublicationKind
from setpoint_postgresql.replication.slot import PostgresReplicationSlotKind
from setpoint_postgresql.replication.subscription import PostgresSubscriptionKind
from setpoint_postgresql.role import PostgresRoleKind
from setpoint_postgresql.routines.function import PostgresFunctionKind

KINDS: tuple[type[PostgresKind[Any, Any]], ...] = (
    PostgresRoleKind,
    PostgresDatabaseKind,
    PostgresSchemaKind,
    PostgresExtensionKind,
    PostgresGrantKind,
    PostgresDefaultPrivilegesKind,
    PostgresForeignServerKind,
    PostgresUserMappingKind,
    PostgresSecurityLabelKind,
    PostgresPublicationKind,
    PostgresSubscriptionKind,
    PostgresReplicationSlotKind,
    PostgresFunctionKind,
)
Manifest = Mapping[str, Any]


def manifest(kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> Manifest:
    """A manifest of the plug-in."""
    names = {"name": name, "namespace": "default", **metadata}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": names, "spec": dict(spec)}


def ref(kind: str, name: str) -> ResourceRef:
    """The resource of that name."""
    return ResourceRef(GROUP, kind, "default", name)


@dataclass(slots=True)
class PostgresWorld:
    """An engine in memory, and the client that its kinds share."""

    server: PostgresServer
    harness: EngineHarness
    client: PostgresClient
    kinds: Sequence[PostgresKind[Any, Any]]

    async def settle(self, kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> None:
        """Applies a manifest, and steps until it is settled."""
        await self.harness.settle(manifest(kind, name, spec, **metadata))

    async def settled(self, kind: str, name: str) -> None:
        """Steps once more, as a reconcile that was requested."""
        await self.harness.go_on(ref(kind, name), requested=True)

    async def changes(self, kind: str, name: str) -> list[str]:
        """The paths that the next step would write."""
        plan = await self.harness.plan(ref(kind, name))
        return [str(change.path) for change in plan.changes]

    async def error(self, kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> Exception:
        """The error that the step of a manifest ends with."""
        applied = await self.harness.apply(manifest(kind, name, spec, **metadata))
        outcome: Any = await self.harness.step(applied.ref)
        assert hasattr(outcome, "error"), outcome
        error: Exception = outcome.error
        return error

    async def delete(self, kind: str, name: str) -> Any:
        """Deletes a resource; the outcome of its step."""
        await self.harness.delete(ref(kind, name))
        return await self.harness.go_on(ref(kind, name))


def environment(server: PostgresServer, **more: str) -> dict[str, str]:
    """The variables of libpq for the administrator, over TLS."""
    found = {"PGHOST": "localhost", "PGPORT": str(server.port), "PGUSER": "postgres", "PGPASSWORD": PASSWORD}
    return {**found, "PGSSLMODE": "require", **more}


@asynccontextmanager
async def postgres_world(
    server: PostgresServer, *, read_only: bool = False, **more: str
) -> AsyncIterator[PostgresWorld]:
    """A new world; `more` are variables of libpq."""
    async with PostgresClient(is_read_only=read_only) as client:
        context = KindContext(environment(server, **more))
        kinds = [kind(context, client) for kind in KINDS]
        async with engine_harness(*kinds) as harness:
            yield PostgresWorld(server, harness, client, kinds)


def run(test: Coroutine[Any, Any, None]) -> None:
    """Runs an asynchronous test."""
    asyncio.run(test)


def can_log_in(server: PostgresServer, role: str, password: str) -> bool:
    """Whether the server accepts the password over TLS."""
    login: dict[str, Any] = {"host": "127.0.0.1", "port": server.port, "user": role, "password": password}
    try:
        psycopg.connect(**login, dbname="postgres", sslmode="require").close()
    except psycopg.OperationalError:
        return False
    return True

"""A process that serves the admin API of its store without running steps: requests are only stored."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from setpoint.clients.admin_api import AdminClient, ResourceLook, connect_admin, prepare_socket, remove_socket
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import RECONCILE_REQUESTED
from setpoint.errors import SetpointError, WriteConflict
from setpoint.runtime.admin_api import AdminApi, admin_routes
from setpoint.runtime.manager import Phase
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.server import HttpServer
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock
from tests.engine.gadget_fixture import GadgetFixture


class Store(MemoryStore):
    """A store with so many write conflicts; or one that breaks with a text that must stay secret."""

    conflicts = 0
    secret = ""

    async def apply(self, manifest: JsonObject) -> Resource:
        if self.secret:
            raise ValueError(self.secret)
        return await super().apply(manifest)

    async def annotate(self, resource: Resource, annotations: Any) -> Resource:
        if self.conflicts:
            self.conflicts -= 1
            raise WriteConflict("another write came first")
        return await super().annotate(resource, annotations)


@dataclass(slots=True)
class AdminApiProcess:
    """A process that serves the admin API of its store, and a client of it."""

    path: Path
    phase: Phase = Phase.RUNNING
    store: Store = field(default_factory=lambda: Store(FakeClock(), lambda: str(uuid.uuid4())))
    client: AdminClient = field(init=False)
    is_ready: bool = True
    failures: dict[ResourceRef, SetpointError] = field(default_factory=dict)
    looks: dict[ResourceRef, ResourceLook] = field(default_factory=dict)
    failed_tasks: Sequence[str] = ()
    unserved_kinds: Sequence[str] = ()
    outdated_kinds: Sequence[str] = ()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["AdminApiProcess"]:
        kind = GadgetFixture().kind
        engine = EngineContext(self.store, FakeClock(), {(kind.group, kind.name): kind})
        api = AdminApi(engine, self.dry_run, self)
        self.path.touch()
        server = HttpServer(self, Telemetry(), admin_routes(api))
        await server.start_unix(prepare_socket(self.path, {}))
        found = await connect_admin(self.path)
        assert found is not None
        self.client = found
        yield self
        api.ended.set()
        await server.close()
        await self.client.close()
        remove_socket(self.path)

    def last_error_of(self, ref: ResourceRef) -> SetpointError | None:
        return self.failures.get(ref)

    def look_of(self, ref: ResourceRef) -> ResourceLook | None:
        return self.looks.get(ref)

    async def dry_run(self, manifest: JsonObject) -> Resource:
        return await MemoryStore(FakeClock(), lambda: "uid").apply(manifest)

    async def apply(self, *manifests: dict[str, Any]) -> None:
        await self.client.apply(manifests)

    async def request_of(self, ref: ResourceRef) -> str | None:
        """The stored reconcile request."""
        found = await self.store.get(ref)
        assert found is not None
        return found.annotations.get(RECONCILE_REQUESTED)

    async def refused(self, asking: Awaitable[None]) -> SetpointError:
        """What was raised; nothing else happened."""
        before = await self.store.list()
        with pytest.raises(SetpointError) as caught:
            await asking
        assert await self.store.list() == before
        return caught.value

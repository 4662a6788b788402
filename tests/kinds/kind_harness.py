"""An engine with Google's kinds on a local cloud, driven one step at a time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any, TypeVar

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import StepOutcome, Stopped
from setpoint.engine.step.reconcile import step
from setpoint.errors import OperationRunning
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from setpoint.localcloud.clock import CloudClock
from setpoint.localcloud.journal import RecordedRequest
from setpoint.localcloud.server import LocalCloud
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock

STORAGE, SQL = "storage.cnrm.cloud.google.com", "sql.cnrm.cloud.google.com"
PROJECT = "some-project"
T = TypeVar("T")


class Interrupted(HttpClient):
    """Calls `interrupt` before each request: another writer may act there."""

    def __init__(self) -> None:
        super().__init__()
        self.interrupt: Callable[[HttpRequest], None] = lambda request: None

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.interrupt(request)
        return await super().send(request)


@dataclass
class KindHarness:
    """An engine with a memory store, the local cloud, and the client between them."""

    cloud: LocalCloud
    http: Interrupted
    google: GoogleClient
    clock: FakeClock = field(default_factory=FakeClock)
    uids: "count[int]" = field(default_factory=count)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock, lambda: str(next(self.uids)))
        kinds: tuple[AnyKind, ...] = (StorageBucketKind(self.google), SqlDatabaseKind(self.google))
        self.engine = EngineContext(self.store, self.clock, {(kind.group, kind.name): kind for kind in kinds})

    async def apply(self, manifest: Mapping[str, Any]) -> ResourceRef:
        """Applies a manifest."""
        return (await self.store.apply(manifest)).ref

    async def settle(self, manifest: Mapping[str, Any]) -> StepOutcome:
        """Applies a manifest, and steps until no operation is running."""
        return await self.step_until_done(await self.apply(manifest))

    async def step_until_done(self, ref: ResourceRef) -> StepOutcome:
        """Steps until no operation is running."""
        while True:
            outcome = await step(ref, self.engine)
            if not (isinstance(outcome, Stopped) and isinstance(outcome.error, OperationRunning)):
                return outcome
            self.cloud.advance(1)

    async def delete(self, ref: ResourceRef) -> StepOutcome:
        """Requests the deletion, and steps until no operation is running."""
        await self.store.delete(ref)
        return await self.step_until_done(ref)

    async def resource(self, ref: ResourceRef) -> Resource:
        found = await self.store.get(ref)
        assert found is not None
        return found

    async def ready(self, ref: ResourceRef) -> tuple[str, str, str]:
        """Status, reason and message of the one condition."""
        conditions: Any = (await self.resource(ref)).status["conditions"]
        assert len(conditions) == 1
        return conditions[0]["status"], conditions[0]["reason"], conditions[0]["message"]

    @property
    def writes(self) -> list[RecordedRequest]:
        return [entry for entry in self.cloud.journal.entries if entry.is_write]

    @property
    def sent(self) -> list[tuple[str, Any]]:
        """Method and body of every write."""
        return [(entry.method, entry.body) for entry in self.writes]

    def live(self, path: str) -> dict[str, Any]:
        """The object at an API path."""
        body = self.cloud.call("GET", path).body
        assert body is not None
        return body


@asynccontextmanager
async def kind_harness() -> AsyncIterator[KindHarness]:
    """A new harness; the clock of the cloud advances only by `advance`."""
    async with LocalCloud(clock=CloudClock(datetime(2026, 1, 1, tzinfo=UTC))) as cloud:
        http = Interrupted()
        google = GoogleClient(http, GoogleSettings(cloud.url, cloud.url, GoogleAuth.ANONYMOUS))
        try:
            yield KindHarness(cloud, http, google)
        finally:
            await google.close()


def in_kind_harness(scenario: Callable[[KindHarness], Awaitable[T]]) -> T:
    """The result of the scenario in a new harness."""

    async def main() -> T:
        async with kind_harness() as engine:
            return await scenario(engine)

    return asyncio.run(main())


def bucket(spec: Mapping[str, Any], name: str = "some-bucket", **metadata: Any) -> dict[str, Any]:
    """A StorageBucket manifest."""
    annotations = {"cnrm.cloud.google.com/project-id": PROJECT, **metadata.pop("annotations", {})}
    return {
        "apiVersion": f"{STORAGE}/v1beta1",
        "kind": "StorageBucket",
        "metadata": {"name": name, "namespace": "team", "annotations": annotations, **metadata},
        "spec": dict(spec),
    }


def database(spec: Mapping[str, Any], name: str = "some-database", **metadata: Any) -> dict[str, Any]:
    """A SQLDatabase manifest."""
    annotations = {"cnrm.cloud.google.com/project-id": PROJECT, **metadata.pop("annotations", {})}
    return {
        "apiVersion": f"{SQL}/v1beta1",
        "kind": "SQLDatabase",
        "metadata": {"name": name, "namespace": "team", "annotations": annotations, **metadata},
        "spec": dict(spec),
    }

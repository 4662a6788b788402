"""One object in a local cloud, its resource, and steps until nothing is waited for."""

import asyncio
import base64
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import count
from typing import Any, Final, TypeVar

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.core.conditions import conditions_from_data, find_condition
from setpoint.core.plan import Plan
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import Json
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import StepOutcome, Stopped
from setpoint.engine.step.reconcile import preview, step
from setpoint.errors import OperationRunning, Retry
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.sql_instance import SqlInstanceKind
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from setpoint.localcloud.clock import CloudClock
from setpoint.localcloud.cloud import Cloud
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock
from tests.laws.google.in_process import InProcess

T = TypeVar("T")
PROJECT: Final = "some-project"
NAMESPACE: Final = "team"
KEY: Final = f"projects/{PROJECT}/locations/us/keyRings/ring/cryptoKeys/key"
NETWORK: Final = f"projects/{PROJECT}/global/networks/net"
PASSWORD: Final = "hunter2 Sesame"
_ADDRESS: Final = "http://cloud.test"
# More steps than any change can take.
_ENOUGH: Final = 40


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    return _loop().run_until_complete(coroutine)


@dataclass
class CloudHarness:
    """An engine with one resource, and with everything that it may refer to."""

    cloud: Cloud = field(
        default_factory=lambda: Cloud(clock=CloudClock(datetime(2026, 1, 1, tzinfo=UTC)), operation_seconds=1.0)
    )
    clock: FakeClock = field(default_factory=FakeClock)
    uids: "count[int]" = field(default_factory=count)
    database_version: str = ""

    def __post_init__(self) -> None:
        google = GoogleClient(InProcess(self.cloud), GoogleSettings(_ADDRESS, _ADDRESS, GoogleAuth.ANONYMOUS))
        kinds: tuple[AnyKind, ...] = (
            StorageBucketKind(google),
            SqlInstanceKind(google),
            SqlDatabaseKind(google),
            SqlUserKind(google),
        )
        self.kinds = {kind.name: kind for kind in kinds}
        self.store = MemoryStore(self.clock, lambda: str(next(self.uids)))
        self.engine = EngineContext(self.store, self.clock, {(kind.group, kind.name): kind for kind in kinds})

    # --- What is there -----------------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> bool:
        """Whether the service accepted the request of another writer; its operation is done."""
        answer = self.cloud.call(method, path, None if body is None else dict(body))
        self.cloud.advance(2.0)
        return answer.status < 300

    def found(self, path: str) -> dict[str, Any] | None:
        """The object at an API path."""
        answer = self.cloud.call("GET", path)
        return answer.body if answer.status == 200 else None

    async def create_references(self, database_version: str) -> None:
        """Creates the resources that a spec may refer to; instances have this version."""
        self.database_version = database_version
        instance = {"databaseVersion": database_version}
        for group, kind, name, spec, link in (
            ("kms.cnrm.cloud.google.com", "KMSCryptoKey", "key", {}, KEY),
            ("compute.cnrm.cloud.google.com", "ComputeNetwork", "net", {}, f"https://compute.test/v1/{NETWORK}"),
            ("sql.cnrm.cloud.google.com", "SQLInstance", "main", instance, "https://sql.test/main"),
            ("sql.cnrm.cloud.google.com", "SQLInstance", "other", instance, "https://sql.test/other"),
            ("storage.cnrm.cloud.google.com", "StorageBucket", "logs", {}, "https://storage.test/logs"),
        ):
            made = await self.store.apply(manifest(f"{group}/v1beta1", kind, name, spec))
            ready: Json = {"type": "Ready", "status": "True", "reason": "UpToDate", "message": ""}
            status: Mapping[str, Json] = {
                "conditions": [ready],
                "observedGeneration": made.generation,
                "selfLink": link,
            }
            await self.store.update_status(made, status)
        secret = {"password": base64.b64encode(PASSWORD.encode()).decode()}
        names = {"name": "secret", "namespace": NAMESPACE}
        await self.store.apply({"apiVersion": "v1", "kind": "Secret", "metadata": names, "data": secret})

    # --- Steps -------------------------------------------------------------------------------------------------------

    async def step_until_done(self, ref: ResourceRef) -> StepOutcome:
        """Steps until nothing is waited for."""
        for _ in range(_ENOUGH):
            outcome = await step(ref, self.engine)
            if not isinstance(outcome, Stopped):
                return outcome
            if isinstance(outcome.error, OperationRunning):
                self.cloud.advance(1.0)
            elif outcome.error.retry is not Retry.STEP_AGAIN:
                return outcome
        raise AssertionError("it does not come to an end")

    async def plan(self, ref: ResourceRef) -> Plan:
        return await preview(ref, self.engine)

    async def resource(self, ref: ResourceRef) -> Resource:
        found = await self.store.get(ref)
        assert found is not None
        return found

    async def ready(self, ref: ResourceRef) -> tuple[str, str, str]:
        """Status, reason and message."""
        found = find_condition(conditions_from_data((await self.resource(ref)).status.get("conditions")), "Ready")
        assert found is not None
        return found.status, found.reason, found.message

    def writes(self) -> list[tuple[str, str, Any]]:
        """The requests since the last call, without reads."""
        found = [(one.method, one.path, one.body) for one in self.cloud.journal.entries if one.is_write]
        self.cloud.journal.clear()
        return found


def manifest(version: str, kind: str, name: str, spec: Mapping[str, Json], **metadata: Any) -> dict[str, Any]:
    """A manifest in the project."""
    annotations = {"cnrm.cloud.google.com/project-id": PROJECT, **metadata.pop("annotations", {})}
    names = {"name": name, "namespace": NAMESPACE}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {**names, "annotations": annotations, **metadata},
        "spec": dict(spec),
    }


def authored(resource: Resource) -> bytes:
    """What the author wrote, in one form."""
    document = resource.document
    return canonical([document["spec"], dict(resource.labels), document["apiVersion"], document["kind"]])

"""An engine with the kinds that live in policies, on a local cloud, and other writers of the same policies."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.engine.context import EngineContext
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.kind import AnyKind
from setpoint.engine.ports import Clock, SystemClock
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import StepOutcome
from setpoint.kinds.gcp.iam.grants import Grant, bindings_of, grants_in
from setpoint.kinds.gcp.iam.partial_policy import PartialPolicyKind
from setpoint.kinds.gcp.iam.policies import BatchSettings, PolicyClients
from setpoint.kinds.gcp.iam.policy import PolicyKind
from setpoint.kinds.gcp.iam.policy_member import PolicyMemberKind
from setpoint.localcloud.server import LocalCloud
from setpoint.stores.memory import MemoryStore
from tests.kinds.lifecycle_google import PROJECT

GROUP: Final = "iam.cnrm.cloud.google.com"
PROJECT_PATH: Final = f"/cloudresourcemanager.googleapis.com/v1/projects/{PROJECT}"
PROJECT_REF: Final = {"kind": "Project", "external": f"projects/{PROJECT}"}


@dataclass
class PolicyHarness:
    """The engine and the cloud."""

    cloud: LocalCloud
    google: GoogleClient
    settings: BatchSettings = field(default_factory=BatchSettings)
    clock: Clock = field(default_factory=SystemClock)
    uids: "count[int]" = field(default_factory=count)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock, lambda: str(next(self.uids)))
        self.restart()

    def restart(self) -> None:
        """A new process: what only the former one knew is lost."""
        clients = PolicyClients(self.settings)
        kinds: tuple[AnyKind, ...] = (
            PolicyMemberKind(self.google, clients),
            PartialPolicyKind(self.google, clients),
            PolicyKind(self.google, clients),
        )
        self.engine = EngineContext(self.store, self.clock, {(kind.group, kind.name): kind for kind in kinds})

    async def apply(self, kind: str, name: str, spec: Mapping[str, Any]) -> ResourceRef:
        """Applies a manifest."""
        annotations = {"cnrm.cloud.google.com/project-id": PROJECT}
        metadata: dict[str, Any] = {"name": name, "namespace": "default", "annotations": annotations}
        found = await self.store.apply(
            {"apiVersion": f"{GROUP}/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}
        )
        return found.ref

    async def run(self, refs: Collection[ResourceRef]) -> Mapping[ResourceRef, StepOutcome]:
        """Takes steps until each is done, as `apply` does."""
        return await StepRunner(self.engine).until_done(refs)

    # --- The policy ---------------------------------------------------------------------------------------------------

    def grants(self) -> frozenset[Grant]:
        """What the policy of the project grants."""
        found = self.cloud.google.state.policies.get(f"cloudresourcemanager/projects/{PROJECT}", {})
        return grants_in(found.get("bindings", ()))

    def set_grants(self, grants: Collection[Grant]) -> None:
        """Sets the policy as another writer would."""
        body = {"policy": {"bindings": bindings_of(grants), "version": 3}}
        assert self.cloud.call("POST", f"{PROJECT_PATH}:setIamPolicy", body).status == 200

    def requests(self, method: str) -> int:
        """How many requests of a method there were."""
        return sum(entry.path.endswith(f":{method}") for entry in self.cloud.journal.entries)


@asynccontextmanager
async def policy_harness(settings: BatchSettings | None = None) -> AsyncIterator[PolicyHarness]:
    """A harness over a new local cloud."""
    async with LocalCloud() as cloud:
        google_settings = GoogleSettings(cloud.url, cloud.url, GoogleAuth.ANONYMOUS, base=cloud.url)
        google = GoogleClient(HttpClient(), google_settings)
        try:
            yield PolicyHarness(cloud, google, settings or BatchSettings())
        finally:
            await google.close()

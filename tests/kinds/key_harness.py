"""An engine with the kind IAMServiceAccountKey on a local cloud, and other writers of keys and Secrets."""

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import StepOutcome, Stopped
from setpoint.errors import RemoteRefused
from setpoint.kinds.gcp.service_account_key.kind import ServiceAccountKeyKind
from setpoint.localcloud.server import LocalCloud
from setpoint.stores.memory import MemoryStore
from setpoint.testing import EngineHarness, Interruption, Killed, VirtualClock, die
from tests.kinds.lifecycle_google import PROJECT, held_cloud

GROUP: Final = "iam.cnrm.cloud.google.com"
EMAIL: Final = f"app-account@{PROJECT}.iam.gserviceaccount.com"
ACCOUNT: Final = f"projects/{PROJECT}/serviceAccounts/{EMAIL}"
KEYS: Final = f"/iam.googleapis.com/v1/{ACCOUNT}/keys"
NAME: Final = ResourceRef(GROUP, "IAMServiceAccountKey", "team", "app-key")
SECRET: Final = ResourceRef("", "Secret", "team", "app-key")
CERTIFICATE: Final = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n").decode()


def manifest(name: str = "app-key", annotations: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """An IAMServiceAccountKey of the account."""
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "IAMServiceAccountKey",
        "metadata": {"name": name, "namespace": "team", "annotations": dict(annotations or {})},
        "spec": {"serviceAccountRef": {"external": EMAIL}, **spec},
    }


@dataclass
class KeyHarness:
    """The engine, the cloud, and every private key that it has ever told."""

    cloud: LocalCloud
    google: GoogleClient
    clock: VirtualClock

    def __post_init__(self) -> None:
        self.store: Any = MemoryStore(self.clock, lambda: str(uuid4()))
        self.restart()

    def restart(self) -> None:
        """A new process."""
        self.engine = EngineHarness([self.kind(self.google)], self.store, self.clock)

    def kind(self, google: Any) -> ServiceAccountKeyKind:
        """The kind over a client."""
        return ServiceAccountKeyKind(google, clock=self.clock)

    async def go_on(self, ref: ResourceRef = NAME) -> StepOutcome:
        """Steps until nothing is running."""
        return await self.engine.go_on(ref)

    async def is_killed_after(self, awaits: int, ref: ResourceRef = NAME) -> bool:
        """Steps in a process that is killed after so many awaits; whether it was."""
        interruption = Interruption(awaits, die)
        kind = self.kind(interruption.wrap(self.google))
        try:
            await EngineHarness([kind], interruption.wrap(self.store), self.clock).go_on(ref)
        except Killed:
            return True
        return False

    # --- The service --------------------------------------------------------------------------------------------------

    def live(self) -> dict[str, dict[str, Any]]:
        """The keys of the account by their ids."""
        found = self.cloud.google.state.objects[f"iam/{ACCOUNT}"].hidden.get("keys", {})
        return dict(found)

    def add(self) -> str:
        """Another writer creates a key; its id."""
        answer = self.cloud.call("POST", KEYS, {})
        assert answer.status == 200
        body: Any = answer.body
        return str(body["name"]).rpartition("/")[2]

    def remove(self, key_id: str) -> None:
        """Another writer deletes a key."""
        assert self.cloud.call("DELETE", f"{KEYS}/{key_id}").status == 200

    async def delete_unproven(self) -> None:
        """Deletes, as an operator would, the keys that the condition of a resource names."""
        for ref in (NAME, NAME._replace(name="another")):
            if await self.store.get(ref) is not None:
                outcome = await self.engine.go_on(ref)
                if isinstance(outcome, Stopped) and isinstance(outcome.error, RemoteRefused):
                    for key_id in [one for one in self.live() if one in str(outcome.error)]:
                        self.remove(key_id)

    async def ready_message(self) -> str:
        """What the condition Ready of the resource says."""
        conditions: Any = (await self.engine.resource(NAME)).status["conditions"]
        return str(next(one for one in conditions if one["type"] == "Ready")["message"])

    @property
    def writes(self) -> list[str]:
        """The requests that ask for a change."""
        entries = [one for one in self.cloud.journal.entries if one.method != "GET"]
        return [f"{one.method} {one.path.rpartition('/')[2]}" for one in entries]

    # --- The Secret ---------------------------------------------------------------------------------------------------

    async def entries(self, ref: ResourceRef = SECRET) -> dict[str, bytes]:
        """What the Secret has; empty where there is none."""
        found = await self.store.get(ref)
        data: Any = {} if found is None else found.document.get("data", {})
        return {key: base64.b64decode(text) for key, text in data.items()}

    async def kept_id(self, ref: ResourceRef = SECRET) -> str:
        """The id of the key whose credentials the Secret has; empty for none."""
        text = (await self.entries(ref)).get("key.json")
        return str(json.loads(text)["private_key_id"]) if text else ""

    async def edit(self, data: Mapping[str, bytes]) -> None:
        """Another writer sets the entries of the Secret."""
        secret = await self.engine.resource(SECRET)
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        await self.store.replace(secret, {**secret.document, "data": encoded})


@asynccontextmanager
async def key_harness() -> AsyncIterator[KeyHarness]:
    """A harness over a new local cloud with an account."""
    async with held_cloud() as cloud:
        body = {"accountId": "app-account"}
        path = f"/iam.googleapis.com/v1/projects/{PROJECT}/serviceAccounts"
        assert cloud.call("POST", path, body).status == 200
        settings = GoogleSettings(cloud.url, cloud.url, GoogleAuth.ANONYMOUS, base=cloud.url)
        google = GoogleClient(HttpClient(), settings)
        cloud.journal.clear()
        try:
            yield KeyHarness(cloud, google, VirtualClock())
        finally:
            await google.close()


async def settled(harness: KeyHarness, **spec: Any) -> str:
    """The id of the key of the resource, once that is applied."""
    await harness.engine.settle(manifest(**spec))
    status = (await harness.engine.resource(NAME)).status
    return str(status["name"]).rpartition("/")[2]

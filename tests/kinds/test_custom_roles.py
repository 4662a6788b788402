"""Custom roles: of projects and organizations; one that was deleted a short time ago is undeleted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import uuid4

import pytest

from setpoint.catalogue.rows import facts_of
from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.errors import ProjectRefused
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.localcloud.server import LocalCloud
from setpoint.stores.memory import MemoryStore
from setpoint.testing import EngineHarness, Interruption, Killed, VirtualClock, after_any_await, die
from tests.kinds.lifecycle_google import PROJECT, held_cloud

GROUP: Final = "iam.cnrm.cloud.google.com"
NAME: Final = ResourceRef(GROUP, "IAMCustomRole", "team", "reader")
IN_PROJECT: Final = {"cnrm.cloud.google.com/project-id": PROJECT}
IN_ORGANIZATION: Final = {"cnrm.cloud.google.com/organization-id": "123"}


def manifest(annotations: dict[str, str], **spec: Any) -> dict[str, Any]:
    """A role of these permissions."""
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "IAMCustomRole",
        "metadata": {"name": "reader", "namespace": "team", "annotations": annotations},
        "spec": {"title": "Reader", "permissions": ["a.b.get", "a.b.list"], **spec},
    }


class RoleHarness:
    """An engine with the kind, and the cloud."""

    def __init__(self, cloud: LocalCloud, google: GoogleClient) -> None:
        self.cloud, self.google, self.clock = cloud, google, VirtualClock()
        self.store = MemoryStore(self.clock, lambda: str(uuid4()))
        self.engine = EngineHarness([self.kind(google)], self.store, self.clock)

    def kind(self, google: Any) -> GoogleKind:
        """The kind over a client."""
        return GoogleKind.of(facts_of((GROUP, "IAMCustomRole")), google)

    def role(self, place: str = f"projects/{PROJECT}") -> dict[str, Any]:
        """The role as the service has it."""
        return self.cloud.google.state.objects[f"iam/{place}/roles/reader"].body

    @property
    def writes(self) -> list[str]:
        """The requests that ask for a change."""
        entries = [one for one in self.cloud.journal.entries if one.method != "GET"]
        return [f"{one.method} {one.path.rpartition('/')[2]}" for one in entries]


@asynccontextmanager
async def role_harness() -> AsyncIterator[RoleHarness]:
    """A harness over a new local cloud."""
    async with held_cloud() as cloud:
        settings = GoogleSettings(cloud.url, cloud.url, GoogleAuth.ANONYMOUS, base=cloud.url)
        google = GoogleClient(HttpClient(), settings)
        try:
            yield RoleHarness(cloud, google)
        finally:
            await google.close()


@pytest.mark.parametrize(
    ("annotations", "place"), [(IN_PROJECT, f"projects/{PROJECT}"), (IN_ORGANIZATION, "organizations/123")]
)
def test_a_role_is_created_changed_and_deleted(annotations: dict[str, str], place: str) -> None:
    async def test() -> None:
        async with role_harness() as harness:
            await harness.engine.settle(manifest(annotations))
            assert harness.role(place)["includedPermissions"] == ["a.b.get", "a.b.list"]
            assert harness.role(place)["stage"] == "GA"
            await harness.engine.settle(manifest(annotations, permissions=["a.b.list", "a.b.get"]))
            assert harness.writes == ["POST roles"]

            await harness.engine.settle(manifest(annotations, title="Other"))
            assert harness.role(place)["title"] == "Other"
            await harness.engine.delete(NAME)
            await harness.engine.go_on(NAME)

            assert await harness.engine.is_gone(NAME)
            assert harness.role(place)["deleted"] is True
            assert harness.writes == ["POST roles", "PATCH reader", "DELETE reader"]

    asyncio.run(test())


def test_killed_after_any_await_a_role_that_was_deleted_is_undeleted_and_as_declared() -> None:
    async def is_killed_after(awaits: int) -> bool:
        async with role_harness() as harness:
            await harness.engine.settle(manifest(IN_PROJECT, title="Former", description="former"))
            await harness.engine.delete(NAME)
            await harness.engine.go_on(NAME)
            await harness.engine.apply(manifest(IN_PROJECT))
            interruption = Interruption(awaits, die)
            kind = harness.kind(interruption.wrap(harness.google))
            was_killed = False
            try:
                await EngineHarness([kind], interruption.wrap(harness.store), harness.clock).go_on(NAME)
            except Killed:
                was_killed = True

            assert isinstance(await harness.engine.go_on(NAME), Settled)

            role = harness.role()
            assert (role["title"], role.get("deleted")) == ("Reader", None)
            # A description that is not declared is emptied with the rest, unless the process was killed in between.
            assert was_killed or "description" not in role
            assert harness.writes.count("POST reader:undelete") == 1
            return was_killed

    asyncio.run(after_any_await(is_killed_after, least=4))


def test_a_role_that_another_writer_deleted_is_undeleted() -> None:
    async def test() -> None:
        async with role_harness() as harness:
            await harness.engine.settle(manifest(IN_PROJECT))
            path = f"/iam.googleapis.com/v1/projects/{PROJECT}/roles/reader"
            assert harness.cloud.call("DELETE", path).status == 200

            assert isinstance(await harness.engine.go_on(NAME), Settled)

            assert "deleted" not in harness.role()

    asyncio.run(test())


def test_a_tenant_has_no_role_of_an_organization() -> None:
    async def test() -> None:
        async with role_harness() as harness:
            kind = harness.kind(harness.google).for_tenant(Tenant("team", project=PROJECT))
            await harness.engine.apply(manifest(IN_ORGANIZATION))

            outcome = await EngineHarness([kind], harness.store, harness.clock).go_on(NAME)

            assert isinstance(outcome, Stopped)
            assert isinstance(outcome.error, ProjectRefused)
            assert harness.writes == []

    asyncio.run(test())

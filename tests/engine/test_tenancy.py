"""What an administrator gives a namespace, by the annotations of its Namespace."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from setpoint.engine.context import EngineContext
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.step.outcomes import Stopped
from setpoint.engine.step.reconcile import step
from setpoint.engine.tenancy.tenants import NamespaceTenants, Tenancy, TenancyMode, Tenant, namespace_ref, tenant_from
from setpoint.errors import RemoteRefused, RemoteUnavailable, StoreError, TenantInvalid
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GadgetKind, Service, gadget_ref

ACCOUNT = "team@some-project.iam.gserviceaccount.com"


def namespace(name: str = "team", **annotations: str) -> Resource:
    given = {key.replace("__", "/").replace("_", "-"): text for key, text in annotations.items()}
    own = {f"setpoint.dev/{key}" if "google" in key else f"cnrm.cloud.google.com/{key}": given[key] for key in given}
    return Resource({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": own}})


@pytest.mark.parametrize(
    ("annotations", "mode", "tenant"),
    [
        ({}, TenancyMode.STRICT, Tenant("team", "team")),
        ({}, TenancyMode.SINGLE, Tenant("team")),
        ({"project_id": "p"}, TenancyMode.STRICT, Tenant("team", "p", "", "p")),
        ({"project_id": "p"}, TenancyMode.SINGLE, Tenant("team", None, "", "p")),
        (
            {"project_id": "a.com:p-1"},
            TenancyMode.STRICT,
            Tenant("team", "a.com:p-1", "", "a.com:p-1"),
        ),
        ({"google_service_account": ACCOUNT}, TenancyMode.STRICT, Tenant("team", "team", ACCOUNT)),
        ({"google_service_account": ACCOUNT}, TenancyMode.SINGLE, Tenant("team", None, ACCOUNT)),
        (
            {"google_shared_projects": "net, vpc-host"},
            TenancyMode.STRICT,
            Tenant("team", "team", shared_projects=frozenset({"net", "vpc-host"})),
        ),
    ],
)
def test_the_annotations_of_a_namespace_say_what_its_tenant_has(
    annotations: dict[str, str], mode: TenancyMode, tenant: Tenant
) -> None:
    assert tenant_from(namespace(**annotations), mode) == tenant


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        ({"project_id": "a/b"}, "cnrm.cloud.google.com/project-id of Namespace team is 'a/b', which is no ID"),
        ({"project_id": ".."}, "is '..', which is no ID of a project"),
        ({"project_id": "UPPER"}, "is 'UPPER', which is no ID of a project"),
        ({"project_id": "p\n"}, "which is no ID of a project"),
        ({"google_service_account": "team"}, "which is no e-mail address of a service account"),
        ({"google_service_account": "a@b.gserviceaccount.com/../x"}, "which is no e-mail address of a service account"),
        ({"google_service_account": "a@evil.com"}, "which is no e-mail address of a service account"),
        ({"google_shared_projects": "net;vpc"}, "which is no list of project IDs"),
    ],
)
def test_an_annotation_that_cannot_be_meant_is_refused(annotations: dict[str, str], problem: str) -> None:
    with pytest.raises(TenantInvalid) as caught:
        tenant_from(namespace(**annotations), TenancyMode.STRICT)

    assert problem in str(caught.value)
    assert str(caught.value).endswith("an administrator corrects it")


@dataclass
class Namespaces:
    """The Namespaces of a cluster, and how often they were read."""

    found: Resource | None = None
    error: Exception | None = None
    read: list[ResourceRef] = field(default_factory=list)

    async def get(self, ref: ResourceRef) -> Resource | None:
        self.read.append(ref)
        if self.error is not None:
            raise self.error
        return self.found


def refused(cause: Exception | None) -> StoreError:
    error = StoreError("the cluster: GET /api/v1/namespaces/team: 403")
    error.__cause__ = cause
    return error


def test_a_namespace_that_is_not_there_is_an_error() -> None:
    tenants = NamespaceTenants(Namespaces().get, TenancyMode.STRICT, FakeClock())

    with pytest.raises(TenantInvalid, match="Namespace team does not exist"):
        asyncio.run(tenants.tenant_of("team"))


@pytest.mark.parametrize(
    "error", [refused(RemoteRefused("no", 403)), RemoteRefused("no", 403)], ids=["store", "remote"]
)
def test_a_namespace_that_may_not_be_read_is_an_error(error: Exception) -> None:
    tenants = NamespaceTenants(Namespaces(error=error).get, TenancyMode.STRICT, FakeClock())

    with pytest.raises(TenantInvalid, match=r"Namespace team may not be read.*An administrator allows `get` on it"):
        asyncio.run(tenants.tenant_of("team"))


def test_a_cluster_that_does_not_answer_is_no_invalid_tenant() -> None:
    error = refused(RemoteUnavailable("cannot connect"))
    tenants = NamespaceTenants(Namespaces(error=error).get, TenancyMode.STRICT, FakeClock())

    with pytest.raises(StoreError):
        asyncio.run(tenants.tenant_of("team"))


def test_one_that_is_not_watched_is_read_again_after_a_while() -> None:
    clock, namespaces = FakeClock(), Namespaces(namespace(project_id="p"))
    tenants = NamespaceTenants(namespaces.get, TenancyMode.STRICT, clock, seconds=30)

    async def main() -> list[Any]:
        first = [await tenants.tenant_of("team") for _ in range(3)]
        namespaces.found = namespace(project_id="q")
        clock.seconds += 31
        return [*first, await tenants.tenant_of("team")]

    assert [one.project for one in asyncio.run(main())] == ["p", "p", "p", "q"]
    assert namespaces.read == [namespace_ref("team")] * 2


def test_one_that_is_watched_is_looked_at_each_time() -> None:
    namespaces = Namespaces(namespace(project_id="p"))
    tenants = NamespaceTenants(namespaces.get, TenancyMode.STRICT, FakeClock(), seconds=0)

    async def main() -> list[Any]:
        first = await tenants.tenant_of("team")
        namespaces.found = namespace(project_id="q")
        return [first, await tenants.tenant_of("team")]

    assert [one.project for one in asyncio.run(main())] == ["p", "q"]


class _EveryReference:
    async def require_granted(self, dependant: ResourceRef, target: ResourceRef, field: str) -> None:
        """Everything is granted."""


def test_without_a_tenant_no_service_is_asked_and_the_status_says_why() -> None:
    clock, service = FakeClock(), Service()
    kind = GadgetKind(service)

    async def main() -> tuple[Any, Any]:
        store = MemoryStore(clock, lambda: "uid")
        tenants = NamespaceTenants(Namespaces().get, TenancyMode.STRICT, clock)
        tenancy = Tenancy(tenants.tenant_of, _EveryReference())
        engine = EngineContext(store, clock, {(kind.group, kind.name): kind}, tenancy=tenancy)
        await store.apply(gadget("g", {"size": 1}))
        outcome = await step(gadget_ref("g"), engine)
        found = await store.get(gadget_ref("g"))
        assert found is not None
        return outcome, found.status

    outcome, status = asyncio.run(main())
    (ready,) = status["conditions"]
    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, TenantInvalid)
    assert (ready["reason"], ready["message"]) == (
        "TenantInvalid",
        "Namespace default does not exist: resources are kept in one that does",
    )
    assert service.calls == []

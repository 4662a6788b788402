"""One live object has one resource: in single commands, and by every name of an object."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from setpoint.clients.google.client import GoogleClient, GoogleSettings
from setpoint.core.conditions import find_condition
from setpoint.core.unstructured import conditions_of
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.claims.object_claims import Claim, ClaimKey, claim_keys_of, recorded_claim_keys
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import Location
from setpoint.engine.ports import ResourceUpdate, Store
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Gone, Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import preview, step
from setpoint.engine.tenancy.tenants import Tenancy, Tenant
from setpoint.errors import ManagementConflict, RecordLost
from setpoint.kinds.gcp.storage_bucket.kind import StorageBucketKind
from setpoint.kinds.kubernetes_object.clusters import Clusters
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from setpoint.stores.memory import MemoryStore
from setpoint.stores.sqlite.store import open_sqlite
from tests.clients.scripted_http import ScriptedHttp, response
from tests.engine.clock import FakeClock
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GadgetKind, Service, gadget_ref

ABANDON = {"cnrm.cloud.google.com/deletion-policy": "abandon"}


def claimant(name: str, size: int, of: str = "shared", namespace: str = "default", **more: Any) -> dict[str, Any]:
    return gadget(name, {"size": size, "resourceID": of}, namespace=namespace, **more)


@asynccontextmanager
async def opened(path: Path | None) -> AsyncIterator[Store]:
    clock, numbers = FakeClock(), iter(range(1000))
    store: Store = MemoryStore(clock, lambda: f"uid-{next(numbers)}")
    if path is not None:
        store = await open_sqlite(path, clock, lambda: f"uid-{next(numbers)}")
    try:
        yield store
    finally:
        await store.close()


def engine_for(store: Store, service: Service, tenancy: Tenancy | None = None) -> EngineContext:
    """The engine of one command."""
    kind = GadgetKind(service)
    return EngineContext(store, FakeClock(), {(kind.group, kind.name): kind}, tenancy=tenancy)


async def ready_of(store: Store, name: str, namespace: str = "default") -> tuple[str, str]:
    found = await store.get(gadget_ref(name)._replace(namespace=namespace))
    ready = None if found is None else find_condition(conditions_of(found.document), "Ready")
    return ("", "") if ready is None else (ready.reason, ready.message)


@pytest.fixture(params=["memory", "sqlite"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "state.db" if request.param == "sqlite" else None


def test_a_second_resource_is_refused_by_a_later_command(path: Path | None) -> None:
    service = Service()

    async def main() -> tuple[str, str]:
        async with opened(path) as store:
            await store.apply(claimant("first", 1))
            assert isinstance(await step(gadget_ref("first"), engine_for(store, service)), Settled)
            await store.apply(claimant("second", 2))
            outcome = await step(gadget_ref("second"), engine_for(store, service))
            assert isinstance(outcome, Stopped)
            assert isinstance(outcome.error, ManagementConflict)
            return await ready_of(store, "second")

    assert asyncio.run(main()) == (
        "ManagementConflict",
        "shared is managed by Gadget default/first already, and one object has one resource: delete one of the two, or "
        "let this one name another object",
    )
    assert [verb for verb, _ in service.calls if verb != "get"] == ["create"]


def test_a_plan_shows_the_refusal(path: Path | None) -> None:
    service = Service()

    async def main() -> None:
        async with opened(path) as store:
            await store.apply(claimant("first", 1))
            await step(gadget_ref("first"), engine_for(store, service))
            await store.apply(claimant("second", 2))
            await preview(gadget_ref("second"), engine_for(store, service))

    with pytest.raises(ManagementConflict):
        asyncio.run(main())


def test_the_second_is_refused_while_the_first_is_being_created(path: Path | None) -> None:
    service = Service(slow=True)

    async def main() -> tuple[str, str]:
        async with opened(path) as store:
            engine = engine_for(store, service)
            await store.apply(claimant("first", 1))
            await store.apply(claimant("second", 2))
            await step(gadget_ref("first"), engine)
            await step(gadget_ref("second"), engine)
            return (await ready_of(store, "first"))[0], (await ready_of(store, "second"))[0]

    assert asyncio.run(main()) == ("Updating", "ManagementConflict")


def test_steps_at_the_same_moment_make_one_object(path: Path | None) -> None:
    service = Service()
    refs = [gadget_ref(f"g{number}") for number in range(5)]

    async def main() -> list[str]:
        async with opened(path) as store:
            engine = engine_for(store, service)
            for size, ref in enumerate(refs):
                await store.apply(claimant(ref.name, size + 1))
            await asyncio.gather(*(step(ref, engine) for ref in refs))
            # Those that had to wait for a decision.
            for ref in refs:
                await step(ref, engine)
            return sorted([(await ready_of(store, ref.name))[0] for ref in refs])

    assert asyncio.run(main()) == ["ManagementConflict"] * 4 + ["UpToDate"]
    assert [verb for verb, _ in service.calls if verb in ("create", "update")] == ["create"]


def test_a_resource_that_moves_to_an_object_of_another_keeps_its_own(path: Path | None) -> None:
    service = Service()

    async def main() -> tuple[str, str | None]:
        async with opened(path) as store:
            engine = engine_for(store, service)
            for name in ("first", "second"):
                await store.apply(claimant(name, 1, of=name))
                await step(gadget_ref(name), engine)
            await store.apply(claimant("second", 1, of="first"))
            await step(gadget_ref("second"), engine)
            found = await store.get(gadget_ref("second"))
            assert found is not None
            return (await ready_of(store, "second"))[0], StoredState.of(found).location

    assert asyncio.run(main()) == ("ManagementConflict", "second")
    assert sorted(service.objects) == ["first", "second"]


def test_an_object_that_was_let_go_of_can_be_claimed(path: Path | None) -> None:
    service = Service()

    async def main() -> tuple[str, str]:
        async with opened(path) as store:
            engine = engine_for(store, service)
            await store.apply(claimant("first", 1, annotations=ABANDON))
            await step(gadget_ref("first"), engine)
            await store.delete(gadget_ref("first"))
            assert isinstance(await step(gadget_ref("first"), engine), Gone)
            await store.apply(claimant("second", 2))
            await step(gadget_ref("second"), engine)
            return await ready_of(store, "second")

    assert asyncio.run(main())[0] == "UpToDate"
    assert service.objects["shared"]["size"] == 2


@pytest.mark.parametrize("is_observed", [False, True])
def test_one_that_only_observes_an_object_claims_nothing(is_observed: bool, path: Path | None) -> None:
    service, observing = Service(), {"setpoint.dev/management": "observe"}

    async def main() -> list[str]:
        async with opened(path) as store:
            engine = engine_for(store, service)
            await store.apply(claimant("watching", 1, annotations=observing) if is_observed else claimant("other", 1))
            await store.apply(claimant("managing", 1))
            await step(gadget_ref("managing"), engine)
            await step(gadget_ref("watching" if is_observed else "other"), engine)
            return [(await ready_of(store, name))[0] for name in ("managing", "watching" if is_observed else "other")]

    assert asyncio.run(main()) == ["UpToDate", "Observed" if is_observed else "ManagementConflict"]


def test_two_that_an_earlier_version_let_have_one_object_are_told_apart_by_age(path: Path | None) -> None:
    """The younger one writes nothing, and its deletion leaves the object."""
    service = Service(objects={"shared": {"size": 9}})

    async def main() -> tuple[list[str], Any]:
        async with opened(path) as store:
            for name, size in (("older", 1), ("younger", 2)):
                applied = await store.apply(claimant(name, size))
                await store.update_status(applied, {"setpoint": {"location": "shared"}})
            await store.set_finalizers(await _found(store, "younger"), ("cnrm.cloud.google.com/finalizer",))
            await step(gadget_ref("younger"), engine_for(store, service))
            await step(gadget_ref("older"), engine_for(store, service))
            reasons = [(await ready_of(store, name))[0] for name in ("older", "younger")]
            await store.delete(gadget_ref("younger"))
            return reasons, await step(gadget_ref("younger"), engine_for(store, service))

    assert asyncio.run(main()) == (["UpToDate", "ManagementConflict"], Gone())
    assert service.objects["shared"]["size"] == 1


async def _found(store: Store, name: str) -> Resource:
    found = await store.get(gadget_ref(name))
    assert found is not None
    return found


@pytest.mark.parametrize("is_copied", [False, True], ids=["announced", "copied"])
def test_an_announced_claim_alone_deletes_nothing(is_copied: bool, path: Path | None) -> None:
    """An author can write the annotation, and a killed process has written nothing after it."""
    service = Service(objects={"shared": {"size": 9}})

    async def main() -> StepOutcome:
        async with opened(path) as store:
            engine, applied = engine_for(store, service), await store.apply(claimant("one", 1))
            claim = {"setpoint.dev/claim": f"{'another' if is_copied else applied.uid} shared"}
            update = ResourceUpdate(finalizers=("cnrm.cloud.google.com/finalizer",), annotations=claim)
            announced = await store.update(applied, update)
            assert announced is not None
            keys = recorded_claim_keys(announced, engine.kinds[gadget_ref("one").group_kind])
            assert [one.name for one in keys] == ([] if is_copied else ["shared"])
            await store.delete(gadget_ref("one"))
            return await step(gadget_ref("one"), engine)

    stopped = asyncio.run(main())
    # A status that was wiped looks the same: the author has to decide.
    assert isinstance(stopped, Stopped)
    assert isinstance(stopped.error, RecordLost)
    assert service.objects["shared"] == {"size": 9}
    assert service.calls == [("get", "shared")]


class _EveryReference:
    async def require_granted(self, dependant: ResourceRef, target: ResourceRef, field: str) -> None:
        """Everything is granted."""


async def _tenant_of(namespace: str) -> Tenant:
    return Tenant(namespace)


# --- Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_shared", [False, True], ids=["embedded", "tenants"])
def test_the_first_is_named_where_both_reach_the_object_by_the_same_location(is_shared: bool) -> None:
    """As a controller of all namespaces sees it."""
    service, location = Service(), Location("shared")

    class Everywhere:
        """The index of a controller."""

        def claimants(self, key: ClaimKey) -> list[ResourceRef]:
            return [ResourceRef("test.setpoint.dev", "Gadget", "theirs", "secret-name")]

        def location(self, ref: ResourceRef) -> None:
            """No record was wiped."""

        async def caught_up(self, ref: ResourceRef, revision: str) -> None:
            """It always is."""

    async def main() -> str:
        async with opened(None) as store:
            engine = engine_for(store, service, Tenancy(_tenant_of, _EveryReference()) if is_shared else None)
            theirs = await store.apply(claimant("secret-name", 1, namespace="theirs"))
            await store.update_status(theirs, {"setpoint": {"location": location}})
            await store.apply(claimant("mine", 1))
            engine.claims.index = Everywhere()
            await step(gadget_ref("mine"), engine)
            return (await ready_of(store, "mine"))[1]

    message = asyncio.run(main())
    assert message.startswith("shared is managed by Gadget theirs/secret-name already")


@pytest.mark.parametrize(("declared", "is_refused"), [("shared", True), ("another", False)], ids=["meant", "forged"])
def test_an_announcement_of_another_tenant_counts_if_its_resource_declares_the_object(
    declared: str, is_refused: bool
) -> None:
    """An author can write the annotation: that does not keep another tenant from its object."""
    service = Service()

    class Everywhere:
        """The index of a controller."""

        def claimants(self, key: ClaimKey) -> list[ResourceRef]:
            return [ResourceRef("test.setpoint.dev", "Gadget", "theirs", "older")]

        def location(self, ref: ResourceRef) -> None:
            """No record was wiped."""

        async def caught_up(self, ref: ResourceRef, revision: str) -> None:
            """It always is."""

    async def main() -> None:
        async with opened(None) as store:
            engine = engine_for(store, service, Tenancy(_tenant_of, _EveryReference()))
            theirs = await store.apply(claimant("older", 1, of=declared, namespace="theirs"))
            await store.update(theirs, ResourceUpdate(annotations={"setpoint.dev/claim": f"{theirs.uid} shared"}))
            await store.apply(claimant("mine", 1))
            engine.claims.index, engine.claims.is_shared = Everywhere(), True
            await step(gadget_ref("mine"), engine)

    asyncio.run(main())

    assert ("shared" in service.objects) is not is_refused


# --- Keys -------------------------------------------------------------------------------------------------------------

BUCKETS = StorageBucketKind(GoogleClient(ScriptedHttp(response(200, {})), GoogleSettings()))
OBJECTS = KubernetesObjectKind(Clusters(), FakeClock())


def keys(location: str, uid: str = "", kind: Any = OBJECTS) -> set[ClaimKey]:
    outputs: JsonObject = {"object": {"uid": uid}} if uid else {}
    return set(claim_keys_of(kind, Location(location), outputs))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (keys("projects/a/buckets/x", kind=BUCKETS), keys("projects/b/buckets/x", kind=BUCKETS)),
        (keys("apps/v1 Deployment a/web @ own"), keys("apps/v1beta1 Deployment a/web @ own")),
        (keys("v1 ConfigMap a/x @ own:a%2Fsetpoint"), keys("v1 ConfigMap a/x @ own:b%2Fother")),
        # A kind without namespaces has one in its location all the same.
        (keys("v1 Namespace a/x @ own:a%2Fsetpoint", "u-1"), keys("v1 Namespace b/x @ own:b%2Fsetpoint", "u-1")),
        (keys("v1 ConfigMap a/x @ context:one", "u-1"), keys("v1 ConfigMap a/x @ in-cluster", "u-1")),
    ],
)
def test_one_object_has_a_key_in_common_however_it_is_named(one: set[ClaimKey], other: set[ClaimKey]) -> None:
    assert one & other


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (keys("projects/a/buckets/x", kind=BUCKETS), keys("projects/a/buckets/y", kind=BUCKETS)),
        (keys("apps/v1 Deployment a/web @ own"), keys("extensions/v1 Deployment a/web @ own")),
        (keys("v1 ConfigMap a/x @ context:one"), keys("v1 ConfigMap a/x @ context:two")),
        (keys("v1 ConfigMap a/x @ own"), keys("v1 ConfigMap a/x @ secret:a%2Fk%2Fv")),
        # What a tenant's own API server reports is worth nothing: it could name any uid.
        (keys("v1 ConfigMap a/x @ secret:a%2Fk%2Fv", "u-1"), keys("v1 ConfigMap a/y @ own:a%2Fsetpoint", "u-1")),
        (keys("not a location"), keys("nor this")),
    ],
)
def test_objects_that_differ_have_no_key_in_common(one: set[ClaimKey], other: set[ClaimKey]) -> None:
    assert one.isdisjoint(other)


def test_an_object_that_a_tenants_server_shows_with_the_uid_of_a_claimed_one_is_seen() -> None:
    location, outputs = Location("v1 ConfigMap a/x @ secret:a%2Fk%2Fv"), {"object": {"uid": "u-1"}}

    seen = OBJECTS.seen_claim_keys(location, outputs)

    assert set(seen) & keys("v1 ConfigMap a/y @ own:a%2Fsetpoint", "u-1")


def test_a_claim_on_record_comes_first_then_a_confirmed_one_then_the_older() -> None:
    ref, later = gadget_ref("g"), gadget_ref("h")
    claims = [
        Claim(is_unrecorded=False, is_pending=False, created="2026-01-01T00:00:00Z", ref=ref, location=None),
        Claim(is_unrecorded=False, is_pending=False, created="2026-01-01T00:00:01Z", ref=ref, location=None),
        Claim(is_unrecorded=False, is_pending=False, created="2026-01-01T00:00:01Z", ref=later, location=None),
        Claim(is_unrecorded=False, is_pending=True, created="2025-01-01T00:00:00Z", ref=ref, location=None),
        Claim(is_unrecorded=True, is_pending=False, created="2024-01-01T00:00:00Z", ref=ref, location=None),
    ]

    assert sorted([claims[one] for one in (4, 2, 0, 3, 1)]) == claims

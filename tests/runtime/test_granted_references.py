"""A running manager and grants: a change of a grant wakes the dependants that it is about, and tells nothing else."""

from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from setpoint.engine.resource import Resource, ResourceRef
from setpoint.runtime.index import ResourceIndex
from setpoint.runtime.manager import Manager
from simulation.virtual_time import VirtualClock, run
from tests.engine.runner_harness import ADDRESS, FOR_ADDRESS
from tests.engine.shared_store import THING, A, B, SharedStoreHarness, grant, thing_in
from tests.engine.things import thing
from tests.runtime.manager_harness import RecordingMetrics, running_manager

REF = {"$ref": {"kind": "Thing", "namespace": B, "name": "y", "path": ADDRESS}}
GRANT = ResourceRef("setpoint.dev", "ReferenceGrant", B, "grant")


@asynccontextmanager
async def _managed(harness: SharedStoreHarness) -> Any:
    async with running_manager(Manager(replace(harness.engine, idle_cache=None), RecordingMetrics(), workers=2)):
        yield


def play(scenario: Callable[[SharedStoreHarness], Awaitable[None]]) -> None:
    """Plays `scenario` with a running manager, in virtual time."""

    async def main() -> None:
        harness = SharedStoreHarness()
        async with _managed(harness):
            await scenario(harness)

    run(main())


async def _reason(harness: SharedStoreHarness, ref: ResourceRef) -> str:
    found = await harness.store.get(ref)
    conditions: Any = [] if found is None else found.status.get("conditions", [])
    return next((one["reason"] for one in conditions if one["type"] == "Ready"), "")


async def _until_reason(harness: SharedStoreHarness, ref: ResourceRef, reason: str) -> None:
    """Returns once it has that reason: a minute is less than any resync."""
    clock = VirtualClock()
    end = clock.monotonic() + 60
    while await _reason(harness, ref) != reason:
        assert clock.monotonic() < end, await _reason(harness, ref)
        await clock.sleep(0.1)


async def _ready_target(harness: SharedStoreHarness) -> None:
    ref = await harness.apply(B, "y", waitFor=FOR_ADDRESS)
    await _until_reason(harness, ref, "Waiting")
    harness.service.set_status("y", address="10.0.0.1")
    await _until_reason(harness, ref, "UpToDate")


def test_a_grant_wakes_a_blocked_dependant_and_its_end_stops_it() -> None:
    async def scenario(harness: SharedStoreHarness) -> None:
        await _ready_target(harness)
        ref = await harness.apply(A, "x", {"host": REF})
        await _until_reason(harness, ref, "ReferenceNotGranted")

        await harness.store.apply(grant())
        await _until_reason(harness, ref, "UpToDate")
        assert harness.service.objects["x"]["spec"] == {"host": "10.0.0.1"}

        # A narrower grant, in place of the first.
        await harness.store.apply(grant(to=[{"group": THING[0], "kind": THING[1], "name": "other"}]))
        await _until_reason(harness, ref, "ReferenceNotGranted")
        await harness.store.apply(grant())
        await _until_reason(harness, ref, "UpToDate")
        await harness.store.delete(GRANT)
        await _until_reason(harness, ref, "ReferenceNotGranted")

    play(scenario)


def test_the_record_of_a_step_does_not_name_the_resource_of_another_tenant() -> None:
    async def scenario(harness: SharedStoreHarness) -> None:
        await _ready_target(harness)
        await harness.store.apply(grant())
        ref = await harness.apply(A, "x", {"host": REF})
        await _until_reason(harness, ref, "UpToDate")
        harness.service.set_status("y", address="10.0.0.2")
        clock = VirtualClock()
        while harness.service.objects["x"]["spec"] != {"host": "10.0.0.2"}:
            await clock.sleep(0.1)
        await _until_reason(harness, ref, "UpToDate")

        shown = await harness.shown(ref)

        assert "a change in another namespace" in shown
        assert "Thing b/y" not in shown

    play(scenario)


def test_the_index_knows_which_references_lead_into_a_namespace() -> None:
    index = ResourceIndex(SharedStoreHarness().engine.resource_types)

    def put(name: str, depends_on: str) -> None:
        manifest: Any = thing(name, {}, {"setpoint.dev/depends-on": depends_on})
        manifest["metadata"] |= {"namespace": A, "uid": name, "resourceVersion": depends_on, "generation": 1}
        index.put(Resource(manifest))

    put("one", f"Thing/{B}/y Thing/{B}/z Thing/own")
    put("two", f"Thing/{B}/y")
    assert sorted(index.dependants_into(B)) == [thing_in(A, "one"), thing_in(A, "two")]
    assert index.dependants_into(A) == ()

    put("one", f"Thing/{B}/z")
    index.drop(thing_in(A, "two"))
    assert index.dependants_into(B) == (thing_in(A, "one"),)
    put("one", "Thing/own")
    assert index.dependants_into(B) == ()

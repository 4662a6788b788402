"""The plan of manifests whose objects exist already: a reference to one that would be adopted is resolved."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import setpoint
from setpoint.library.results import CommandResult
from tests.library.worlds import World, world

_PROJECT: Final = {"cnrm.cloud.google.com/project-id": "some-project"}


def _manifest(kind: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    api = "compute.cnrm.cloud.google.com/v1beta1"
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": "shop", "annotations": dict(_PROJECT), **metadata},
        "spec": spec,
    }


def _chain(description: str = "") -> list[dict[str, Any]]:
    """Four objects, each of which refers to the one before it."""
    refers, place = {"name": "shop"}, {"location": "global"}
    more = {"description": description} if description else {}
    return [
        _manifest("ComputeHealthCheck", {**place, "tcpHealthCheck": {"port": 80}, **more}),
        _manifest("ComputeBackendService", {**place, "healthChecks": [{"healthCheckRef": refers}]}),
        _manifest("ComputeURLMap", {**place, "defaultService": {"backendServiceRef": refers}}),
        _manifest("ComputeTargetHTTPProxy", {**place, "urlMapRef": refers}),
    ]


def _open(world: World) -> setpoint.Session:
    return world.open(environment={**world.environment, "SETPOINT_GOOGLE_ENDPOINT": world.cloud.url})


async def _made(world: World, manifests: Sequence[dict[str, Any]]) -> None:
    """The objects of manifests, of which no later session knows."""
    async with _open(world) as session:
        (await session.apply(*manifests)).raise_for_failures()


def _outcomes(found: CommandResult) -> list[tuple[str, str, bool]]:
    return [(one.ref.kind, one.outcome.value, one.plan is not None and one.plan.is_adoption) for one in found]


def test_a_chain_of_objects_that_exist_is_planned_to_its_end_and_nothing_is_written() -> None:
    asyncio.run(_plan_chain())


async def _plan_chain() -> None:
    async with world() as found:
        await _made(found, _chain())
        before = found.writes

        async with _open(found) as session:
            # In any order: a plan is made in that of the references.
            planned = await session.plan(*reversed(_chain()))
            declared = await session.list()
            applied = await session.apply(*_chain())

    assert _outcomes(planned) == [
        ("ComputeHealthCheck", "unchanged", True),
        ("ComputeBackendService", "unchanged", True),
        ("ComputeURLMap", "unchanged", True),
        ("ComputeTargetHTTPProxy", "unchanged", True),
    ]
    assert planned.is_done
    assert len(declared) == 0
    assert [one.outcome.value for one in applied] == ["adopted"] * 4
    assert found.writes == before


def test_what_refers_to_an_object_that_would_be_created_waits_and_so_does_what_refers_to_that() -> None:
    asyncio.run(_plan_gap())


async def _plan_gap() -> None:
    async with world() as found:
        await _made(found, _chain()[:1])
        before = found.writes

        async with _open(found) as session:
            planned = await session.plan(*_chain())

    assert _outcomes(planned) == [
        ("ComputeHealthCheck", "unchanged", True),
        ("ComputeBackendService", "create", False),
        ("ComputeURLMap", "waiting", False),
        ("ComputeTargetHTTPProxy", "waiting", False),
    ]
    # The reference of the second is resolved: the plan shows what will be sent.
    assert "global/healthChecks/shop" in str(planned[1].changes)
    assert found.writes == before


def test_an_object_that_would_be_adopted_and_changed_can_be_referred_to() -> None:
    asyncio.run(_plan_change())


async def _plan_change() -> None:
    async with world() as found:
        await _made(found, _chain()[:2])
        before = found.writes

        async with _open(found) as session:
            planned = await session.plan(*_chain("of the shop")[:3])

    assert _outcomes(planned) == [
        ("ComputeHealthCheck", "update", True),
        ("ComputeBackendService", "unchanged", True),
        ("ComputeURLMap", "create", False),
    ]
    assert found.writes == before


def test_an_object_that_would_not_be_taken_over_is_waited_for() -> None:
    asyncio.run(_plan_others())


async def _plan_others() -> None:
    async with world() as found:
        await _made(found, _chain()[:2])
        paused, backend = _chain()[:2]
        paused["metadata"]["annotations"]["setpoint.dev/management"] = "observe"

        async with _open(found) as session:
            planned = await session.plan(paused, backend)

    assert _outcomes(planned)[1] == ("ComputeBackendService", "waiting", False)

"""The errors of steps that are retried, for commands that wait for them."""

import asyncio
import tempfile
from pathlib import Path

from setpoint.clients.admin_api import ResourceName
from setpoint.engine.resource import ResourceRef
from setpoint.errors import RemoteUnavailable
from setpoint.testing.faults import EVERY_VERB, CallFault
from tests.engine.gadgets import Fault, gadget_ref
from tests.runtime.admin_api_harness import AdminApiProcess
from tests.runtime.manager_harness import ManagerHarness, play

A, B = gadget_ref("a"), gadget_ref("b")


def _name(ref: ResourceRef) -> ResourceName:
    return ResourceName(ref.group, ref.kind, ref.namespace, ref.name)


def test_the_errors_of_retried_steps_can_be_requested() -> None:
    async def ask(path: Path) -> dict[str, tuple[type, str]]:
        async with AdminApiProcess(path / "state.db").serving() as process:
            process.failures[A] = RemoteUnavailable("GET a: 503")
            found = await process.client.step_failures([_name(A), _name(B)])
            return {name.name: (type(error), str(error)) for name, error in found.items()}

    with tempfile.TemporaryDirectory() as folder:
        assert asyncio.run(ask(Path(folder))) == {"a": (RemoteUnavailable, "GET a: 503")}


def test_the_last_error_is_cleared_by_a_successful_step() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        harness.service.faults.append(Fault(CallFault.CUT, EVERY_VERB, 10**6))
        await harness.apply("a")
        await harness.clock.sleep(5)
        during = harness.manager.last_error_of(A)
        harness.service.faults.clear()
        await harness.settled("a")

        assert isinstance(during, RemoteUnavailable)
        assert harness.manager.last_error_of(A) is None

    play(scenario)


def test_running_steps_are_listed_with_their_trigger() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        async def take_ten_seconds(_name: str) -> None:
            await harness.clock.sleep(10)

        harness.kind.before = take_ten_seconds
        await harness.apply("a")
        await harness.clock.sleep(1)
        (controller,) = harness.manager.controllers.values()
        during = {ref: trigger for ref, (trigger, _) in controller.running_steps.items()}
        await harness.settled("a")
        await harness.clock.sleep(0.1)

        assert during == {A: "its declaration"}
        assert controller.running_steps == {}

    play(scenario)

"""What keeps a process from going on, for those who wait for it."""

import asyncio
import tempfile
from pathlib import Path

from setpoint.clients.admin_api import ResourceName
from setpoint.engine.resource import ResourceRef
from setpoint.errors import RemoteUnavailable
from tests.engine.gadgets import Fault, gadget_ref
from tests.engine.kind_fixture import EVERY_VERB, Trouble
from tests.runtime.owner import Owner
from tests.runtime.rig import Rig, play

A, B = gadget_ref("a"), gadget_ref("b")


def _name(ref: ResourceRef) -> ResourceName:
    return ResourceName(ref.group, ref.kind, ref.namespace, ref.name)


def test_troubles_that_no_status_tells_can_be_asked_for() -> None:
    async def ask(path: Path) -> dict[str, tuple[type, str]]:
        async with Owner(path / "state.db").listening() as owner:
            owner.troubles[A] = RemoteUnavailable("GET a: 503")
            found = await owner.daemon.step_failures([_name(A), _name(B)])
            return {name.name: (type(error), str(error)) for name, error in found.items()}

    with tempfile.TemporaryDirectory() as folder:
        assert asyncio.run(ask(Path(folder))) == {"a": (RemoteUnavailable, "GET a: 503")}


def test_a_trouble_lasts_until_a_step_gets_through() -> None:
    async def scenario(rig: Rig) -> None:
        rig.service.faults.append(Fault(Trouble.CUT, EVERY_VERB, 10**6))
        await rig.apply("a")
        await rig.clock.sleep(5)
        during = rig.manager.last_error_of(A)
        rig.service.faults.clear()
        await rig.settled("a")

        assert isinstance(during, RemoteUnavailable)
        assert rig.manager.last_error_of(A) is None

    play(scenario)


def test_what_is_in_work_can_be_seen() -> None:
    async def scenario(rig: Rig) -> None:
        async def take_ten_seconds(_name: str) -> None:
            await rig.clock.sleep(10)

        rig.kind.before = take_ten_seconds
        await rig.apply("a")
        await rig.clock.sleep(1)
        (controller,) = rig.manager.controllers.values()
        during = {ref: trigger for ref, (trigger, _) in controller.running_steps.items()}
        await rig.settled("a")
        await rig.clock.sleep(0.1)

        assert during == {A: "its declaration"}
        assert controller.running_steps == {}

    play(scenario)

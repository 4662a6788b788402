"""The default root user of a MySQL instance: deleted from a new one despite faults, kept in one of another writer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from setpoint.engine.state import StoredState
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.errors import RemoteConflict, RemoteUnavailable
from setpoint.testing.faults import CallFault
from setpoint.testing.harness import ContractHarness
from setpoint.testing.interruptions import ENOUGH, Interruption, Killed, Undertaking, die, interrupted
from tests.engine.settings import Setting, begun
from tests.kinds.lifecycle_mysql import IN_MEMORY, ON_SQLITE, MysqlFixture

pytestmark = pytest.mark.slow


def mysql_fixture_of(harness: ContractHarness) -> MysqlFixture:
    fixture = harness.fixture
    assert isinstance(fixture, MysqlFixture)
    return fixture


async def killed(harness: ContractHarness, interruption: Any) -> bool:
    """Whether the process died during the steps."""
    try:
        await interrupted(harness, interruption).go_on()
    except Killed:
        await harness.restart()
        return True
    return False


@pytest.mark.parametrize("while_away", [False, True], ids=["at once", "when the service is done"])
@pytest.mark.parametrize("setting", [IN_MEMORY, ON_SQLITE], ids=str)
def test_the_default_root_user_is_deleted_wherever_the_process_dies(
    setting: Setting, while_away: bool, tmp_path: Path
) -> None:
    async def dies_after(awaits: int) -> bool:
        async with begun(setting, Undertaking.CREATING, tmp_path / str(awaits)) as harness:
            was_killed = await killed(harness, Interruption(awaits, die))
            if while_away:
                await harness.finish()
            assert isinstance(await harness.go_on(), Settled)
            assert (await harness.objects(), mysql_fixture_of(harness).users) == (["some-instance"], [])
            assert harness.writes.count("create") == 1
            assert StoredState.of(await harness.resource()).creating is None
            return was_killed

    for awaits in range(1, ENOUGH):
        if not asyncio.run(dies_after(awaits)):
            assert awaits > 8
            return
    pytest.fail("a step never ended")


@pytest.mark.parametrize("is_slow", [False, True])
def test_the_default_root_user_is_deleted_when_the_response_to_the_creation_is_lost(
    is_slow: bool, tmp_path: Path
) -> None:
    async def scenario() -> tuple[Any, list[str], int]:
        async with begun(IN_MEMORY, Undertaking.CREATING, tmp_path / "world") as harness:
            await harness.fail_next_calls(CallFault.LOST, ["create"], times=1)
            lost = await harness.step()
            if not is_slow:
                await harness.finish()
            assert isinstance(await harness.go_on(), Settled)
            return lost, mysql_fixture_of(harness).users, harness.writes.count("create")

    lost, users, created = asyncio.run(scenario())

    assert isinstance(lost, Stopped)
    assert isinstance(lost.error, RemoteUnavailable)
    assert (users, created) == ([], 1)


# --- Another writer creates the instance first -----------------------------------------------------------------------


class JustBefore:
    """Calls `happening` right before one verb of the wrapped object."""

    def __init__(self, inner: Any, verb: str, happening: Callable[[], None]) -> None:
        self._inner, self._verb, self._happening = inner, verb, happening

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name != self._verb:
            return found

        async def preceded(*arguments: Any, **named: Any) -> Any:
            self._happening()
            return await found(*arguments, **named)

        return preceded


@pytest.mark.parametrize("labels", [{}, {"managed-by-cnrm": "true"}], ids=["by a user", "by Config Connector"])
def test_an_instance_that_another_writer_created_first_is_adopted_and_keeps_its_root_user(
    labels: dict[str, str], tmp_path: Path
) -> None:
    async def scenario() -> tuple[Any, list[str]]:
        async with begun(IN_MEMORY, Undertaking.CREATING, tmp_path / "world") as harness:
            fixture = mysql_fixture_of(harness)
            kind = fixture.kind_over(
                lambda one: JustBefore(one, "post", lambda: fixture.create_as_another_writer(**labels))
            )
            taken = await replace(harness, kind=kind).step()
            assert isinstance(await harness.go_on(), Settled)
            return taken, fixture.users

    taken, users = asyncio.run(scenario())

    assert isinstance(taken, Stopped)
    assert isinstance(taken.error, RemoteConflict)
    assert users == ["root"]


def test_the_root_user_of_another_writers_instance_is_kept_wherever_the_process_dies(tmp_path: Path) -> None:
    async def dies_after(awaits: int) -> bool:
        async with begun(IN_MEMORY, Undertaking.CREATING, tmp_path / str(awaits)) as harness:
            fixture, interruption = mysql_fixture_of(harness), Interruption(awaits, die)
            make = fixture.create_as_another_writer
            was_killed = await killed(harness, Preceded(interruption, lambda one: JustBefore(one, "post", make)))
            if not fixture.objects():
                make()
            assert isinstance(await _until_settled(harness), Settled)
            assert fixture.users == ["root"]
            return was_killed

    for awaits in range(1, ENOUGH):
        if not asyncio.run(dies_after(awaits)):
            assert awaits > 4
            return
    pytest.fail("a step never ended")


def test_a_refused_creation_is_not_continued_under_another_name(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        async with begun(IN_MEMORY, Undertaking.CREATING, tmp_path / "world") as harness:
            fixture = mysql_fixture_of(harness)
            fixture.fail_next_calls(CallFault.REFUSED, ["create"], times=1)
            assert isinstance(await harness.step(), Stopped)
            fixture.create_as_another_writer(**{"managed-by-cnrm": "true"}, name="another")
            await harness.apply({**fixture.spec("db-custom-1-3840"), "resourceID": "another"})
            assert isinstance(await harness.go_on(), Settled)
            return fixture.users_of("another")

    assert asyncio.run(scenario()) == ["root"]


@dataclass(slots=True)
class Preceded:
    """An interruption of an object that is wrapped by `before`."""

    interruption: Interruption
    before: Callable[[Any], Any]

    def wrap(self, inner: Any) -> Any:
        """`inner`, with both."""
        return self.interruption.wrap(self.before(inner))


async def _until_settled(harness: ContractHarness) -> StepOutcome:
    """Steps again after a conflict about the name."""
    outcome = await harness.go_on()
    return outcome if isinstance(outcome, Settled) else await harness.go_on()

"""The error of a step is kept, and nothing that the step had read."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NoReturn

import pytest

from setpoint.engine.kind import Location
from setpoint.engine.step.outcomes import StepOutcome, Stopped
from setpoint.engine.step.reconcile import step
from setpoint.errors import RemoteUnavailable
from setpoint.testing.harness import contract_harness
from tests.engine.gadget_fixture import GadgetFixture
from tests.engine.gadgets import GadgetKind


class Body(bytearray):
    """What a service answered; it can be seen whether it is freed."""


@dataclass
class UnreadableService(GadgetKind):
    """A kind whose service answers what cannot be decoded."""

    bodies: list[weakref.ref[Body]] = field(default_factory=list)

    async def observe(self, location: Location, known: str | None = None) -> NoReturn:
        body = Body(1_000)
        self.bodies.append(weakref.ref(body))
        _decode(body)


def _decode(body: Body) -> NoReturn:
    try:
        raise ValueError(f"{len(body)} bytes of something else")
    except ValueError as error:
        raise RemoteUnavailable("the answer is not what it should be") from error


@pytest.fixture
def _without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_without_collector")
def test_what_an_error_was_found_in_is_freed_when_the_step_ends() -> None:
    bodies: list[weakref.ref[Body]] = []

    async def play() -> StepOutcome:
        fixture = GadgetFixture()
        async with contract_harness(fixture) as harness:
            await harness.apply()
            kinds = {fixture.ref.group_kind: UnreadableService(fixture.service, bodies=bodies)}
            return await step(fixture.ref, replace(harness.engine, kinds=kinds))

    outcome = asyncio.run(play())

    assert isinstance(outcome, Stopped)
    assert str(outcome.error) == "the answer is not what it should be"
    assert str(outcome.error.__cause__) == "1000 bytes of something else"
    assert [one() for one in bodies] == [None]

"""The lifecycle contract on kinds whose parts are set by methods of their own, one write for each."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar

import pytest

from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.engine.step.reconcile import preview
from setpoint.errors import ImmutableFieldChanged
from setpoint.testing import contract_harness
from setpoint.testing.claims.claim import LifecycleClaim
from setpoint.testing.contract import LackingPart
from setpoint.testing.interruptions import Undertaking
from tests.engine.settings import SettingContract
from tests.kinds.lifecycle_compute import (
    BackendServiceFixture,
    ComputeInstanceFixture,
    GuardedServiceFixture,
    NodePoolFixture,
    StoppedInstanceFixture,
)


class TestBackendService(SettingContract):
    fixture = BackendServiceFixture


class TestNodePool(SettingContract):
    fixture = NodePoolFixture


class KilledContract(SettingContract):
    """The part of the contract in which the process dies while it does one thing, which takes several writes."""

    undertaking: ClassVar[Undertaking]

    @classmethod
    def cases(cls) -> Sequence[LifecycleClaim | LackingPart]:
        claims = (one for one in super().cases() if isinstance(one, LifecycleClaim))
        return [one for one in claims if one.name.startswith(f"killed after any await, {cls.undertaking}")]


class TestGuardedService(KilledContract):
    """The policy is set by a method after the creation."""

    fixture = GuardedServiceFixture
    undertaking = Undertaking.CREATING


class TestStoppedInstance(KilledContract):
    """It is stopped for the change, and started again."""

    fixture = StoppedInstanceFixture
    undertaking = Undertaking.UPDATING


def test_a_policy_follows_the_creation_by_its_method() -> None:
    async def run() -> None:
        fixture = GuardedServiceFixture()
        async with contract_harness(fixture) as harness:
            await harness.settle()

            assert [one for one in fixture.calls if one != "get"] == ["create", "update"]
            assert str(fixture.read("securityPolicy")).endswith("/global/securityPolicies/policy")

    asyncio.run(run())


def test_an_instance_is_stopped_for_a_change_and_started_again() -> None:
    async def run() -> None:
        fixture = StoppedInstanceFixture()
        async with contract_harness(fixture) as harness:
            await harness.settle()
            fixture.cloud.journal.clear()
            await harness.change()

            outcome = await harness.go_on()

            assert isinstance(outcome, Settled)
            assert fixture.methods_called == ["stop", "setMinCpuPlatform", "start"]
            assert (fixture.read("minCpuPlatform"), fixture.read("status")) == ("Intel Ice Lake", "RUNNING")

    asyncio.run(run())


def test_without_leave_a_running_instance_is_not_stopped() -> None:
    async def run() -> None:
        class Fixture(StoppedInstanceFixture):
            annotations = ComputeInstanceFixture.annotations

        fixture = Fixture()
        async with contract_harness(fixture) as harness:
            await harness.settle()
            fixture.cloud.journal.clear()
            await harness.change()

            with pytest.raises(ImmutableFieldChanged) as planned:
                await preview(harness.ref, harness.engine)
            outcome = await harness.go_on()

            assert isinstance(outcome, Stopped)
            assert isinstance(outcome.error, ImmutableFieldChanged)
            assert str(planned.value) == str(outcome.error)
            assert "spec.minCpuPlatform cannot change while" in str(outcome.error)
            assert fixture.methods_called == []

    asyncio.run(run())

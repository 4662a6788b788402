"""What is seen of processes that share a store: logs, metrics, readiness."""

import logging

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from setpoint.runtime.manager import Manager, Phase
from setpoint.runtime.metrics.telemetry import Telemetry
from tests.runtime.fleet import LEASE, Fleet, play
from tests.runtime.manager_harness import ManagerHarness
from tests.runtime.manager_harness import play as play_alone
from tests.runtime.simulated_network import NetworkFault


async def samples_of(manager: Manager) -> dict[str, float]:
    """The samples of shards and leases."""
    telemetry = Telemetry()
    telemetry.watch(manager)
    body, _ = await telemetry.page("application/openmetrics-text;version=1.0.0")
    found = text_string_to_metric_families(body.decode())  # type: ignore[no-untyped-call] # the parser has no types
    ours = ("setpoint_shard", "setpoint_lease")
    return {
        " ".join((one.name, *one.labels.values())): one.value
        for family in found
        for one in family.samples
        if one.name.startswith(ours)
    }


def test_the_metrics_show_held_shards_holder_changes_and_failed_renewals() -> None:
    async def scenario(fleet: Fleet) -> None:
        younger = fleet.start("younger")
        await fleet.until_every_shard_is_held()
        before = await samples_of(younger.manager)
        fleet.start("elder")
        await fleet.clock.sleep(10)
        fleet.disconnect("younger", NetworkFault.REFUSED)
        await fleet.clock.sleep(12)
        fleet.reconnect("younger")
        await fleet.clock.sleep(15)
        after = await samples_of(younger.manager)

        assert before == {
            "setpoint_shards": 2,
            "setpoint_shards_held": 2,
            "setpoint_shard_holder_changes_total 0": 0,
            "setpoint_shard_holder_changes_total 1": 0,
            "setpoint_lease_renewal_failures_total layout": 0,
            "setpoint_lease_renewal_failures_total member": 0,
            "setpoint_lease_renewal_failures_total shard": 0,
        }
        assert after["setpoint_shards_held"] == 1
        assert after["setpoint_shard_holder_changes_total 1"] == 1
        assert min(number for name, number in after.items() if "failures" in name) > 2

    play(scenario, shards=2)


def test_the_log_has_a_line_for_each_shard_that_is_acquired_released_or_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.start("younger")
        await fleet.clock.sleep(5)
        fleet.start("elder")
        await fleet.clock.sleep(5)
        fleet.disconnect("younger", NetworkFault.REFUSED)
        await fleet.clock.sleep(11)

    with caplog.at_level(logging.INFO, logger="setpoint.runtime.sharding.replica"):
        play(scenario, shards=2)

    lines = [
        (one.message, vars(one).get("shard"))
        for one in caplog.records
        if one.name == "setpoint.runtime.sharding.replica"
    ]
    assert [line for line in lines if line[1] is not None] == [
        ("shard acquired", 0),
        ("shard acquired", 1),
        ("shard released", 1),
        ("shard acquired", 1),
        ("shard lost", 0),
    ]
    assert [message for message, _ in lines].count("leases cannot be read") == 1


def test_a_replica_without_access_to_leases_is_never_ready() -> None:
    async def scenario(fleet: Fleet) -> None:
        process = fleet.start("one")
        process.link.fault = lambda request: NetworkFault.REFUSED if "acquire" in request.url else None
        await fleet.clock.sleep(60)
        before = process.manager.phase
        process.link.fault = lambda request: None
        await fleet.clock.sleep(5)

        assert (before, process.manager.phase) == (Phase.STARTING, Phase.RUNNING)
        assert process.manager.failed_tasks == []

    play(scenario)


def test_a_standby_replica_is_ready_and_a_leaving_one_is_not() -> None:
    async def scenario(fleet: Fleet) -> None:
        for name in ("one", "two"):
            fleet.start(name)
        await fleet.clock.sleep(LEASE)
        ready = [one.manager.is_ready for one in fleet.live]
        held = sorted(len(one.replica.held_shards) for one in fleet.live)
        fleet.begin_to_stop("one")
        await fleet.clock.sleep(0.01)

        assert (ready, held) == ([True, True], [0, 1])
        assert fleet.processes["one"].manager.is_ready is False

    play(scenario, shards=1)


def test_a_single_process_acquires_no_lease() -> None:
    async def scenario(harness: ManagerHarness) -> None:
        await harness.apply("a")
        await harness.settled("a")
        await harness.clock.sleep(3600)

        assert await harness.store.leases("") == ()
        assert harness.manager.engine.store is harness.store
        assert await samples_of(harness.manager) == {}

    play_alone(scenario)

"""The benchmark of growth: its fleet is what steps would leave behind, and what it says of exponents and plots."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.__main__ import run as run_benchmarks
from benchmarks.comparison import QUICK
from benchmarks.growth.computing_loop import ComputingLoop
from benchmarks.growth.exponents import exponents, n_log_n
from benchmarks.growth.fleet_usage import MEMORY, FleetUsage
from benchmarks.growth.phases import Phase, PhaseUsage
from benchmarks.growth.replica_process import ReplicaUsage
from benchmarks.growth.simulated_service import PROJECT_SIZE, SimulatedStorage
from benchmarks.growth.simulated_store import (
    FleetDigests,
    SettledRecords,
    SimulatedStore,
    engine_context,
    manifest_of_fleet,
    ref_of,
    write_digests,
)
from benchmarks.growth.svg_chart import Axis, Line, line_chart
from benchmarks.peer_packages import NO_PEERS
from benchmarks.report import Report, as_json
from benchmarks.targets import check_targets
from setpoint.core.decide import Decision
from setpoint.engine.resource import Resource
from setpoint.engine.step.outcomes import Settled, StepOutcome, Stopped
from setpoint.engine.step.reconcile import step
from setpoint.errors import RemoteUnavailable
from setpoint.stores.memory import MemoryStore
from simulation.virtual_time import VirtualClock, run
from tests.benchmarks.documents import without_times

COUNT = PROJECT_SIZE + 5
OTHER = PROJECT_SIZE + 3


@pytest.fixture(scope="module")
def digests(tmp_path_factory: pytest.TempPathFactory) -> FleetDigests:
    path = tmp_path_factory.mktemp("growth") / "digests"
    write_digests(path, range(COUNT))
    return FleetDigests(path)


# --- The fleet --------------------------------------------------------------------------------------------------------


def test_a_bucket_of_the_fleet_is_as_a_step_settles_it(digests: FleetDigests) -> None:
    async def scenario() -> tuple[Resource | None, Resource | None]:
        clock, google = VirtualClock(), SimulatedStorage().client()
        records = SettledRecords(COUNT, digests)
        await records.settle(clock)
        stepped = MemoryStore(clock, lambda: "uid")
        await stepped.apply(manifest_of_fleet(OTHER))
        await step(ref_of(OTHER), engine_context(stepped, google, clock))
        return await SimulatedStore(clock, records).get(ref_of(OTHER)), await stepped.get(ref_of(OTHER))

    made, stepped = run(scenario())

    assert made is not None
    assert stepped is not None
    assert without_times(made.status) == without_times(stepped.status)
    assert (made.ref, made.spec, made.labels, made.finalizers) == (
        stepped.ref,
        stepped.spec,
        stepped.labels,
        stepped.finalizers,
    )


def test_pages_of_the_fleet_show_every_bucket_in_the_order_of_refs(digests: FleetDigests) -> None:
    async def scenario() -> list[Resource]:
        records = SettledRecords(COUNT, digests)
        await records.settle(VirtualClock())
        return [one async for page in SimulatedStore(VirtualClock(), records).pages(size=30) for one in page.resources]

    refs = [one.ref for one in run(scenario())]

    assert refs == sorted(map(ref_of, range(COUNT)))


def test_drift_is_corrected_and_an_outage_fails_every_step(digests: FleetDigests) -> None:
    async def scenario() -> tuple[list[StepOutcome], set[int]]:
        clock, service = VirtualClock(), SimulatedStorage(COUNT)
        records = SettledRecords(COUNT, digests)
        await records.settle(clock)
        engine = engine_context(SimulatedStore(clock, records), service.client(), clock)
        service.drift([OTHER])
        outcomes = [await step(ref_of(OTHER), engine)]
        left = set(service.drifted)
        service.is_down = True
        outcomes.append(await step(ref_of(OTHER), engine))
        return outcomes, left

    (corrected, failed), left = run(scenario())

    assert isinstance(corrected, Settled)
    assert corrected.plan.decision is Decision.DRIFTED
    assert left == set()
    assert isinstance(failed, Stopped)
    assert isinstance(failed.error, RemoteUnavailable)


def test_the_time_of_a_computing_loop_passes_with_timers_and_with_cpu_time() -> None:
    async def scenario() -> tuple[float, float, float]:
        clock = VirtualClock()
        await clock.sleep(3600)
        slept = clock.monotonic()
        sum(range(1000))
        return slept, clock.monotonic(), asyncio.get_running_loop().longest_block  # type: ignore[attr-defined]

    slept, computed, block = run(scenario(), ComputingLoop)

    assert slept >= 3600
    assert computed > slept
    assert block > 0


# --- Exponents --------------------------------------------------------------------------------------------------------

FLEET_SIZES = st.lists(st.integers(10, 10**7), min_size=2, max_size=5, unique=True).map(sorted)


@given(FLEET_SIZES, st.floats(0.0, 3.0), st.floats(1e-6, 1e6))
def test_the_exponent_of_a_power_is_that_power(sizes: list[int], power: float, factor: float) -> None:
    found = [one.value for one in exponents("x", [(size, factor * size**power) for size in sizes])]

    assert found == pytest.approx([power] * (len(sizes) - 1), abs=1e-6)


@given(FLEET_SIZES)
def test_n_log_n_meets_its_own_bar_and_a_square_does_not(sizes: list[int]) -> None:
    (met, *_), (missed, *_) = (
        list(exponents("x", [(size, value(size)) for size in sizes]))
        for value in (lambda size: size * log(size), lambda size: float(size) ** 2)
    )

    assert met.value == pytest.approx(met.limit)
    assert missed.value > missed.limit == n_log_n(sizes[0], sizes[1])


def test_a_quantity_that_grows_faster_than_n_log_n_does_not_meet_its_bar() -> None:
    measured = list(exponents("CPU time", [(1_000, 1.0), (10_000, 10.5), (100_000, 300.0)]))

    results = [result for result in check_targets((), measured, 129) if result.subject == "growth: exponents"]

    assert [str(one) for one in results] == [
        "≤ 1.12, as n log n: 1.02, met",
        "≤ 1.10, as n log n: 1.46, not met",
    ]


def test_a_quantity_that_is_zero_has_no_exponent() -> None:
    assert list(exponents("queue", [(10, 0.0), (100, 5.0), (1000, 0.0)])) == []


# --- Several replicas -------------------------------------------------------------------------------------------------


def _replica(own: int, cpu: float, seconds: float) -> ReplicaUsage:
    used = PhaseUsage(cpu, seconds, requests=10, requests_peak=2, depth=3, memory=90, block=0.5, began=0.0)
    return ReplicaUsage(own, 40, dict.fromkeys(Phase, used), [])


def test_replicas_are_added_up_and_the_slowest_counts() -> None:
    both = FleetUsage(100, 2, [_replica(60, 6.0, 9.0), _replica(40, 4.0, 5.0)]).quantities

    assert (both["restart: CPU time"].value, both["restart: virtual time"].value) == (10.0, 9.0)
    assert (both["outage: requests"].value, both[MEMORY].value) == (20, 100)


def test_replicas_that_were_not_measured_are_taken_to_be_like_the_others() -> None:
    one_of_two = FleetUsage(100, 2, [_replica(40, 4.0, 5.0)]).quantities

    assert (one_of_two["restart: CPU time"].value, one_of_two["outage: requests"].value) == (10.0, 25.0)
    assert (one_of_two["restart: virtual time"].value, one_of_two[MEMORY].value) == (5.0, 100)


# --- Plots ------------------------------------------------------------------------------------------------------------

VALUES = st.floats(1e-6, 1e9)
POINTS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=20)


@given(st.booleans(), st.lists(VALUES, min_size=1))
def test_every_value_is_between_the_first_and_the_last_tick(is_log: bool, values: Sequence[float]) -> None:
    axis = Axis("x", is_log=is_log)
    ticks = axis.ticks(values)

    assert list(ticks) == sorted(set(ticks))
    assert all(-1e-6 <= axis.position(value, ticks) <= 1 + 1e-6 for value in values)


@given(st.text(st.characters(exclude_categories=["C"])), st.lists(POINTS, min_size=1, max_size=8), st.booleans())
def test_a_chart_is_sound_xml_with_the_name_of_every_line(name: str, lines: list[Any], is_log: bool) -> None:
    drawn = [Line(f"{name} {number}", points, number) for number, points in enumerate(lines)]

    chart = ElementTree.fromstring(line_chart(name, Axis("x", is_log=is_log), Axis("y"), drawn))

    texts = [element.text for element in chart.iter("{http://www.w3.org/2000/svg}text")]
    assert [line.name for line in drawn] == [text for text in texts if text in {line.name for line in drawn}]


# --- A run ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    """A run with 10 and 20 resources in one process, and 200 in four, of which two are measured."""
    folder = tmp_path_factory.mktemp("plots")
    settings = replace(QUICK, sizes=(10_000, 20_000, 200_000), replicas=2, plots=folder)
    return run_benchmarks(("growth",), NO_PEERS, settings), folder


def test_a_run_measures_every_phase_of_every_fleet(report: tuple[Report, Path]) -> None:
    measured = {(one.subject, one.name): one for one in report[0].measurements}

    subjects = ("10 resources, 1 process", "20 resources, 1 process", "200 resources, 4 processes")
    for subject in subjects:
        for phase in Phase:
            assert measured[f"growth: {subject}", f"{phase}: CPU time"].value > 0
    # All of the 200 are in one replica or another, and most of them have a resync during the outage.
    assert 0 < measured["growth: 200 resources, 4 processes", "outage: longest queue"].value <= 200
    assert ("growth: exponents", f"1 process, {MEMORY}: 10 to 20") in measured


def test_a_run_writes_its_plots(report: tuple[Report, Path]) -> None:
    names = sorted(path.name for path in report[1].iterdir())

    assert names == ["growth-cpu.svg", "growth-memory.svg", "growth-queue.svg", "growth-time.svg"]


def test_the_report_for_programs_has_the_limit_of_each_exponent(report: tuple[Report, Path]) -> None:
    readings = json.loads(as_json(report[0]))["readings"]

    limits = {one["limit"] for one in readings if one["subject"] == "growth: exponents"}
    assert limits == {n_log_n(10, 20)}


@given(st.floats(0.01, 20), st.floats(20, 1e6))
def test_what_is_shorter_than_the_workers_counts_as_long_as_they_are_many(short: float, long: float) -> None:
    (found,) = exponents("longest queue", [(1_000, short), (10_000, long)], least=20)
    (same,) = exponents("longest queue", [(1_000, 20), (10_000, long)])

    assert found == same

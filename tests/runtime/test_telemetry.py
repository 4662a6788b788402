"""What the page of metrics says."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from prometheus_client import Metric as Family
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain_text

from setpoint.clients.ratelimit.circuit_breaker import Throttled
from setpoint.clients.ratelimit.fair_queue import Caller
from setpoint.clients.ratelimit.limiter import QuotaBudgets, QuotaKey
from setpoint.clients.ratelimit.token_bucket import AimdSettings
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.json_types import Json
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import Reconciliation
from setpoint.engine.metrics import BUGS, STEP_COUNTS, TERMINAL_ERRORS
from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource
from setpoint.errors import RemoteUnavailable
from setpoint.runtime.controller import Controller
from setpoint.runtime.index import ResourceIndex
from setpoint.runtime.manager import Manager
from setpoint.runtime.metrics.catalogue import CATALOGUE
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.sharding.replica import ControllerReplica
from setpoint.runtime.workqueue.scheduling import Priority
from setpoint.stores.memory import MemoryStore
from tests.clients.manual_time import ManualClock
from tests.engine.clock import FakeClock
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GROUP, GadgetKind, Service, gadget_ref
from tests.runtime.listed_rig import ListedKind
from tests.runtime.virtual_time import VirtualClock, run

OPEN_METRICS = "application/openmetrics-text;version=1.0.0"


@dataclass
class Shown:
    """What a manager shows, without one that runs."""

    engine: EngineContext
    index: ResourceIndex = field(default_factory=lambda: ResourceIndex({}))
    controllers: Mapping[GroupKind, Controller] = field(default_factory=dict)
    replica: ControllerReplica | None = None


def _store() -> Store:
    return MemoryStore(FakeClock(), lambda: "uid")


def _shown(*kinds: GadgetKind) -> Shown:
    engine = EngineContext(_store(), FakeClock(), {(kind.group, kind.name): kind for kind in kinds})
    shown = Shown(engine, ResourceIndex(engine.kinds))
    shown.controllers = {
        key: Controller(kind, engine, shown.index, workers=10, metrics=Telemetry(), stop=lambda error: None)
        for key, kind in engine.kinds.items()
    }
    return shown


async def _read(telemetry: Telemetry) -> list[Family]:
    body, _ = await telemetry.page(OPEN_METRICS)
    return list(open_metrics(body.decode()))  # type: ignore[no-untyped-call] # the parser has no types


def _page(telemetry: Telemetry) -> list[Family]:
    return asyncio.run(_read(telemetry))


def _samples(families: list[Family], name: str) -> dict[tuple[str, ...], float]:
    """The values under that name, by those of their labels, which stand in alphabetical order."""
    return {tuple(one.labels.values()): one.value for family in families for one in family.samples if one.name == name}


def _told(telemetry: Telemetry, name: str) -> dict[tuple[str, ...], float]:
    return _samples(_page(telemetry), name)


# --- Steps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "result"),
    [
        ("settled", "success"),
        ("gone", "success"),
        ("stopped", "error"),
        ("on_edit", "error"),
        ("on_change", "requeue_after"),
        ("back_off", "error"),
        ("step_again", "requeue"),
        ("stop", "error"),
        ("bug", "error"),
    ],
)
def test_a_step_counts_as_what_controller_runtime_would_call_it(outcome: str, result: str) -> None:
    telemetry = Telemetry()
    telemetry.step_finished("Gadget", outcome, "", 0.1)

    counted = _told(telemetry, "controller_runtime_reconcile_total")

    assert {labels: value for labels, value in counted.items() if value} == {("Gadget", result): 1.0}


def test_failures_are_told_apart_by_who_can_mend_them() -> None:
    telemetry = Telemetry()
    for outcome in ("on_edit", "on_edit", "bug", "back_off", "on_change", "settled"):
        telemetry.step_finished("Gadget", outcome, "", 0.1)
    for count in (TERMINAL_ERRORS, TERMINAL_ERRORS, BUGS):
        telemetry.count(count, "Gadget")

    page = _page(telemetry)

    assert _samples(page, "controller_runtime_reconcile_errors_total") == {("Gadget",): 4.0}
    assert _samples(page, "controller_runtime_terminal_reconcile_errors_total") == {("Gadget",): 2.0}
    assert _samples(page, "controller_runtime_reconcile_panics_total") == {("Gadget",): 1.0}


def test_a_look_is_a_hit_when_both_digests_matched_and_a_miss_otherwise() -> None:
    telemetry = Telemetry()
    for decision in ("in sync", "in sync", "in sync", "drifted", "create", ""):
        telemetry.step_finished("Gadget", "settled", decision, 0.1)

    page = _page(telemetry)

    assert _samples(page, "setpoint_cookie_checks_total") == {("Gadget", "hit"): 3.0, ("Gadget", "miss"): 2.0}
    assert _samples(page, "setpoint_decisions_total") == {
        ("create", "Gadget"): 1.0,
        ("intent changed", "Gadget"): 0.0,
        ("drifted", "Gadget"): 1.0,
        ("both", "Gadget"): 0.0,
        ("first look", "Gadget"): 0.0,
        ("in sync", "Gadget"): 3.0,
    }


def test_a_kind_without_cookies_has_neither_hits_nor_misses() -> None:
    telemetry = Telemetry()
    telemetry.watch(_shown(GadgetKind(Service()), GadgetKind(Service(), Reconciliation.STATELESS, name="Plain")))
    telemetry.step_finished("Plain", "settled", "first look", 0.1)

    assert _told(telemetry, "setpoint_cookie_checks_total") == {("Gadget", "hit"): 0.0, ("Gadget", "miss"): 0.0}


def test_a_duration_is_in_every_bucket_that_is_not_too_small_for_it() -> None:
    telemetry = Telemetry()
    for seconds in (0.004, 0.005, 0.3, 61.0):
        telemetry.step_finished("Gadget", "settled", "", seconds)

    page = _page(telemetry)
    buckets = _samples(page, "controller_runtime_reconcile_time_seconds_bucket")

    chosen = {bound: buckets["Gadget", bound] for bound in ("0.005", "0.25", "0.3", "60.0", "+Inf")}
    assert chosen == {"0.005": 2.0, "0.25": 2.0, "0.3": 3.0, "60.0": 3.0, "+Inf": 4.0}
    assert _samples(page, "controller_runtime_reconcile_time_seconds_sum") == {("Gadget",): 61.309}


def test_drift_and_convergence_have_buckets_of_their_own() -> None:
    telemetry = Telemetry()
    telemetry.converged("Gadget", 11.0)
    telemetry.drifted("Gadget", 700.0)

    page = _page(telemetry)
    convergence = _samples(page, "setpoint_convergence_seconds_bucket")
    drift = _samples(page, "setpoint_drift_age_seconds_bucket")

    assert (convergence["Gadget", "10.0"], convergence["Gadget", "30.0"]) == (0.0, 1.0)
    assert (drift["Gadget", "600.0"], drift["Gadget", "750.0"]) == (0.0, 1.0)


def test_everything_of_a_kind_is_there_before_anything_happened() -> None:
    telemetry = Telemetry()
    telemetry.watch(_shown(GadgetKind(Service())))

    page = _page(telemetry)

    results = ("success", "error", "requeue", "requeue_after")
    assert _samples(page, "controller_runtime_reconcile_total") == {("Gadget", result): 0.0 for result in results}
    assert [_samples(page, count.name) for count in STEP_COUNTS] == [{("Gadget",): 0.0}] * len(STEP_COUNTS)
    assert _samples(page, "setpoint_drift_age_seconds_count") == {("Gadget",): 0.0}
    assert _samples(page, "setpoint_resources") == {("Gadget", "true"): 0.0, ("Gadget", "false"): 0.0}


def test_a_look_that_a_list_made_needless_is_a_look_and_no_step() -> None:
    telemetry = Telemetry()
    telemetry.watch(_shown(ListedKind(Service())))
    telemetry.listed("Gadget", "complete", 20)
    telemetry.listed("Gadget", "refused", 0)

    page = _page(telemetry)

    endings = {labels: value for labels, value in _samples(page, "setpoint_listings_total").items() if value}
    assert endings == {("complete", "Gadget"): 1.0, ("refused", "Gadget"): 1.0}
    assert _samples(page, "setpoint_listed_looks_total") == {("Gadget",): 20.0}
    assert _samples(page, "setpoint_decisions_total")["in sync", "Gadget"] == 20.0
    assert _samples(page, "setpoint_cookie_checks_total")["Gadget", "hit"] == 20.0
    assert not any(_samples(page, "controller_runtime_reconcile_total").values())


def test_listings_are_told_of_kinds_that_can_be_listed_alone_and_from_the_start() -> None:
    listed, unlisted = Telemetry(), Telemetry()
    listed.watch(_shown(ListedKind(Service())))
    unlisted.watch(_shown(GadgetKind(Service())))

    endings = {ending for ending, _ in _told(listed, "setpoint_listings_total")}
    assert endings == {"complete", "useless", "refused", "unavailable", "broken"}
    assert _told(unlisted, "setpoint_listings_total") == {}


# --- Queues, resources, services --------------------------------------------------------------------------------------


def test_a_queue_is_shown_under_the_name_of_its_controller() -> None:
    telemetry, shown = Telemetry(), _shown(GadgetKind(Service()))
    telemetry.watch(shown)
    queue = shown.controllers[GROUP, "Gadget"].queue
    queue.add(gadget_ref("a"), Priority.EDIT, "")
    queue.add(gadget_ref("b"), Priority.RESYNC, "")

    page = _page(telemetry)

    depths = _samples(page, "workqueue_depth")
    assert (depths["Gadget", "Gadget", "edit"], depths["Gadget", "Gadget", "resync"]) == (1.0, 1.0)
    assert _samples(page, "workqueue_adds_total") == {("Gadget", "Gadget"): 2.0}
    assert _samples(page, "controller_runtime_active_workers") == {("Gadget",): 0.0}
    assert _samples(page, "controller_runtime_max_concurrent_reconciles") == {("Gadget",): 10.0}


def _resource(name: str, *, kind: str = "Gadget", ready: str = "True") -> Resource:
    status: Json = {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": ready}]}
    metadata: Json = {"namespace": "default", "name": name, "generation": 1, "resourceVersion": "1"}
    return Resource({"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "status": status})


def test_resources_are_counted_by_kind_and_readiness_and_what_no_kind_handles_is_left_out() -> None:
    telemetry, shown = Telemetry(), _shown(GadgetKind(Service()))
    telemetry.watch(shown)
    for resource in (_resource("a"), _resource("b"), _resource("c", ready="False"), _resource("d", kind="Other")):
        shown.index.put(resource)

    assert _told(telemetry, "setpoint_resources") == {("Gadget", "true"): 2.0, ("Gadget", "false"): 1.0}


def test_what_comes_goes_and_gets_ready_is_counted() -> None:
    telemetry, shown = Telemetry(), _shown(GadgetKind(Service()))
    telemetry.watch(shown)
    for resource in (_resource("a", ready="False"), _resource("b", ready="False"), _resource("a"), _resource("b")):
        shown.index.put(resource)
    shown.index.drop(gadget_ref("b"))
    shown.index.drop(gadget_ref("never there"))

    assert _told(telemetry, "setpoint_resources") == {("Gadget", "true"): 1.0, ("Gadget", "false"): 0.0}


def test_the_budget_of_each_project_is_shown_and_whether_its_service_is_there() -> None:
    time = ManualClock()
    budgets = QuotaBudgets(time, jitter=lambda: 0.0)
    budget = budgets.make(
        QuotaKey("sql", "p", "reads"), AimdSettings(start=8, burst=100, ceiling=8, growth=0), "sql.example"
    )

    async def call(number: int, ending: Exception | None = None) -> None:
        with await budget.limiter.acquire(budget, Caller(number), "GET") as slot:
            slot.outcome = Throttled(None)
            if ending is not None:
                raise ending

    async def main() -> list[Family]:
        await call(0)
        time.advance(60)
        for number in range(20):
            with pytest.raises(RemoteUnavailable):
                await call(number, RemoteUnavailable("GET: no answer"))
        with pytest.raises(RemoteUnavailable, match="not sent"):
            await call(21)
        return await _read(Telemetry([budgets]))

    page = asyncio.run(main())

    charged, service = ("p", "reads", "sql"), ("sql",)
    assert _samples(page, "setpoint_api_rate_limit") == {charged: 4.0}
    assert _samples(page, "setpoint_api_calls_total") == {charged: 21.0}
    assert _samples(page, "setpoint_api_throttles_total") == {charged: 1.0}
    assert _samples(page, "setpoint_api_wait_seconds_total") == {charged: 0.0}
    assert _samples(page, "setpoint_api_waiting") == {charged: 0.0}
    assert _samples(page, "setpoint_api_in_flight") == {service: 0.0}
    assert _samples(page, "setpoint_api_turned_away_total") == {service: 1.0}
    assert _samples(page, "setpoint_breaker_open") == {service: 1.0}
    assert _samples(page, "setpoint_breaker_openings_total") == {service: 1.0}


# --- The page ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accept", ["", "text/plain", "application/openmetrics-text;version=x", "no such thing"])
def test_whoever_does_not_ask_for_openmetrics_gets_plain_text(accept: str) -> None:
    body, content_type = asyncio.run(Telemetry().page(accept))

    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    families = plain_text(body.decode())
    assert {family.name for family in families} >= {"workqueue_depth", "setpoint_decisions", "python_info"}


def test_a_metric_with_many_lines_has_one_heading() -> None:
    telemetry = Telemetry()
    kinds = [f"Kind{number:03}" for number in range(250)]
    for kind in kinds:
        telemetry.step_finished(kind, "settled", "in sync", 0.1)

    body, _ = asyncio.run(telemetry.page())
    lines = body.decode().splitlines()

    named = [line for line in lines if "controller_runtime_reconcile_errors_total" in line]
    assert [line.split()[1] for line in named if line.startswith("#")] == ["HELP", "TYPE"]
    assert len(named) == 2 + 250


def test_nothing_is_put_into_the_registry_that_everybody_shares() -> None:
    telemetry = Telemetry()
    telemetry.step_finished("Gadget", "settled", "in sync", 0.1)

    assert [family.name for family in REGISTRY.collect() if family.name.startswith("setpoint")] == []


ROW = re.compile(r"^\| `(\w+)` \| (\w+) \|([^|]*)\|", re.MULTILINE)


def _on_the_page() -> dict[str, tuple[str, list[str]]]:
    rows = ROW.findall(Path("docs/metrics.md").read_text(encoding="utf-8"))
    return {name: (sort, re.findall(r"`(\w+)`", labels)) for name, sort, labels in rows}


def test_the_docs_name_the_metrics_that_there_are_with_type_and_labels() -> None:
    ours = {metric.name: (metric.sort.value, list(metric.labels)) for metric in CATALOGUE}
    of_the_process = ("process_", "python_")

    found = {name: row for name, row in _on_the_page().items() if not name.startswith(of_the_process)}

    assert found == ours


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="where there is no /proc, less is known of a process")
def test_the_docs_name_every_metric_of_the_page_and_no_other() -> None:
    body, _ = asyncio.run(Telemetry().page())

    assert sorted(re.findall(r"^# TYPE (\w+) ", body.decode(), re.MULTILINE)) == sorted(_on_the_page())


# --- A manager --------------------------------------------------------------------------------------------------------


def test_a_running_manager_tells_of_its_resources_from_their_edit_to_their_drift() -> None:
    async def main() -> list[Family]:
        clock, service, telemetry = VirtualClock(), Service(), Telemetry()
        kind = GadgetKind(service)
        store = MemoryStore(clock, lambda: "uid")
        engine = EngineContext(store, clock, {(kind.group, kind.name): kind}, metrics=telemetry)
        manager = Manager(engine, telemetry)
        telemetry.watch(manager)
        running = asyncio.create_task(manager.run())
        await clock.sleep(1)
        await store.apply(gadget("g", {"size": 1}))
        await clock.sleep(10)
        service.objects["g"]["size"] = 2
        await clock.sleep(1_000)
        page = await _read(telemetry)
        manager.stop()
        await running
        return page

    page = run(main())

    assert _samples(page, "setpoint_resources") == {("Gadget", "true"): 1.0, ("Gadget", "false"): 0.0}
    assert _samples(page, "setpoint_convergence_seconds_count") == {("Gadget",): 1.0}
    assert _samples(page, "setpoint_drift_age_seconds_count") == {("Gadget",): 1.0}
    decisions = _samples(page, "setpoint_decisions_total")
    assert (decisions["create", "Gadget"], decisions["drifted", "Gadget"]) == (1.0, 1.0)
    assert _samples(page, "workqueue_depth")["Gadget", "Gadget", "edit"] == 0.0


def test_requests_are_counted_by_what_came_of_them() -> None:
    counts = {("GET", "localhost:1", "200"): 3, ("GET", "localhost:1", "<error>"): 1}

    page = _page(Telemetry(requests=[counts]))

    shown = {
        (one.labels["method"], one.labels["host"], one.labels["code"]): one.value
        for family in page
        for one in family.samples
        if one.name == "rest_client_requests_total"
    }
    assert shown == counts

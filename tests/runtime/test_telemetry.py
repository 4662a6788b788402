"""The values of the metrics page: steps, queues, resources, budgets, requests."""

import asyncio

import pytest
from prometheus_client import Metric as Family
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics

from setpoint.clients.ratelimit.circuit_breaker import Throttled
from setpoint.clients.ratelimit.fair_queue import Caller
from setpoint.clients.ratelimit.limiter import QuotaBudgets, QuotaKey
from setpoint.clients.ratelimit.token_bucket import AimdSettings
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import Reconciliation
from setpoint.engine.metrics import BUGS, STEP_COUNTS, TERMINAL_ERRORS
from setpoint.errors import RemoteUnavailable
from setpoint.runtime.manager import Manager
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.workqueue.scheduling import Priority
from setpoint.stores.memory import MemoryStore
from simulation.virtual_time import VirtualClock, run
from tests.clients.manual_time import ManualClock
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GROUP, GadgetKind, Service, gadget_ref
from tests.runtime.list_resync_harness import ListedKind
from tests.runtime.monitored_manager import manager_view, resource, watch, watched

OPEN_METRICS = "application/openmetrics-text;version=1.0.0"


async def _read(telemetry: Telemetry) -> list[Family]:
    body, _ = await telemetry.page(OPEN_METRICS)
    return list(open_metrics(body.decode()))  # type: ignore[no-untyped-call] # the parser has no types


def _page(telemetry: Telemetry) -> list[Family]:
    return asyncio.run(_read(telemetry))


def _samples(families: list[Family], name: str) -> dict[tuple[str, ...], float]:
    """The values under that name, by the values of their labels, in alphabetical order of the labels."""
    return {tuple(one.labels.values()): one.value for family in families for one in family.samples if one.name == name}


def _read_samples(telemetry: Telemetry, name: str) -> dict[tuple[str, ...], float]:
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
def test_the_result_of_a_step_has_the_name_of_controller_runtime(outcome: str, result: str) -> None:
    telemetry = Telemetry()
    telemetry.step_finished("Gadget", outcome, "", 0.1)

    counted = _read_samples(telemetry, "controller_runtime_reconcile_total")

    assert {labels: value for labels, value in counted.items() if value} == {("Gadget", result): 1.0}


def test_errors_for_the_author_and_bugs_are_counted_separately() -> None:
    telemetry = Telemetry()
    for outcome in ("on_edit", "on_edit", "bug", "back_off", "on_change", "settled"):
        telemetry.step_finished("Gadget", outcome, "", 0.1)
    for count in (TERMINAL_ERRORS, TERMINAL_ERRORS, BUGS):
        telemetry.count(count, "Gadget")

    page = _page(telemetry)

    assert _samples(page, "controller_runtime_reconcile_errors_total") == {("Gadget",): 4.0}
    assert _samples(page, "controller_runtime_terminal_reconcile_errors_total") == {("Gadget",): 2.0}
    assert _samples(page, "controller_runtime_reconcile_panics_total") == {("Gadget",): 1.0}


def test_a_step_in_sync_is_a_cookie_hit_and_any_other_a_miss() -> None:
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
        ("revised", "Gadget"): 0.0,
        ("revised, live changed", "Gadget"): 0.0,
        ("first look", "Gadget"): 0.0,
        ("differs", "Gadget"): 0.0,
        ("in sync", "Gadget"): 3.0,
    }


def test_a_kind_without_cookies_has_neither_hits_nor_misses() -> None:
    telemetry = watched(GadgetKind(Service()), GadgetKind(Service(), Reconciliation.STATELESS, name="Plain"))
    telemetry.step_finished("Plain", "settled", "differs", 0.1)

    assert _read_samples(telemetry, "setpoint_cookie_checks_total") == {("Gadget", "hit"): 0.0, ("Gadget", "miss"): 0.0}


def test_a_duration_counts_in_every_bucket_that_holds_it() -> None:
    telemetry = Telemetry()
    for seconds in (0.004, 0.005, 0.3, 61.0):
        telemetry.step_finished("Gadget", "settled", "", seconds)

    page = _page(telemetry)
    buckets = _samples(page, "controller_runtime_reconcile_time_seconds_bucket")

    chosen = {bound: buckets["Gadget", bound] for bound in ("0.005", "0.25", "0.3", "60.0", "+Inf")}
    assert chosen == {"0.005": 2.0, "0.25": 2.0, "0.3": 3.0, "60.0": 3.0, "+Inf": 4.0}
    assert _samples(page, "controller_runtime_reconcile_time_seconds_sum") == {("Gadget",): 61.309}


def test_drift_and_convergence_have_their_own_buckets() -> None:
    telemetry = Telemetry()
    telemetry.converged("Gadget", 11.0)
    telemetry.drifted("Gadget", 700.0)

    page = _page(telemetry)
    convergence = _samples(page, "setpoint_convergence_seconds_bucket")
    drift = _samples(page, "setpoint_drift_age_seconds_bucket")

    assert (convergence["Gadget", "10.0"], convergence["Gadget", "30.0"]) == (0.0, 1.0)
    assert (drift["Gadget", "600.0"], drift["Gadget", "750.0"]) == (0.0, 1.0)


def test_every_series_of_a_kind_starts_at_zero() -> None:
    telemetry = watched(GadgetKind(Service()))

    page = _page(telemetry)

    results = ("success", "error", "requeue", "requeue_after")
    assert _samples(page, "controller_runtime_reconcile_total") == {("Gadget", result): 0.0 for result in results}
    assert [_samples(page, count.name) for count in STEP_COUNTS] == [{("Gadget",): 0.0}] * len(STEP_COUNTS)
    assert _samples(page, "setpoint_drift_age_seconds_count") == {("Gadget",): 0.0}
    assert _samples(page, "setpoint_resources") == {("Gadget", "true"): 0.0, ("Gadget", "false"): 0.0}


def test_a_resync_saved_by_a_list_counts_as_in_sync_and_not_as_a_step() -> None:
    telemetry = watched(ListedKind(Service()))
    telemetry.listed("Gadget", "complete", 20)
    telemetry.listed("Gadget", "refused", 0)

    page = _page(telemetry)

    endings = {labels: value for labels, value in _samples(page, "setpoint_listings_total").items() if value}
    assert endings == {("complete", "Gadget"): 1.0, ("refused", "Gadget"): 1.0}
    assert _samples(page, "setpoint_listed_looks_total") == {("Gadget",): 20.0}
    assert _samples(page, "setpoint_decisions_total")["in sync", "Gadget"] == 20.0
    assert _samples(page, "setpoint_cookie_checks_total")["Gadget", "hit"] == 20.0
    assert not any(_samples(page, "controller_runtime_reconcile_total").values())


def test_only_kinds_that_can_be_listed_have_listing_series() -> None:
    listed, unlisted = watched(ListedKind(Service())), watched(GadgetKind(Service()))

    endings = {ending for ending, _ in _read_samples(listed, "setpoint_listings_total")}
    assert endings == {"complete", "useless", "refused", "unavailable", "broken"}
    assert _read_samples(unlisted, "setpoint_listings_total") == {}


# --- Queues, resources, services --------------------------------------------------------------------------------------


def test_the_series_of_a_queue_have_the_name_of_its_controller() -> None:
    telemetry, view = Telemetry(), manager_view(GadgetKind(Service()))
    watch(telemetry, view)
    queue = view.controllers[GROUP, "Gadget"].queue
    queue.add(gadget_ref("a"), Priority.EDIT, "")
    queue.add(gadget_ref("b"), Priority.RESYNC, "")

    page = _page(telemetry)

    depths = _samples(page, "workqueue_depth")
    assert (depths["Gadget", "Gadget", "edit"], depths["Gadget", "Gadget", "resync"]) == (1.0, 1.0)
    assert _samples(page, "workqueue_adds_total") == {("Gadget", "Gadget"): 2.0}
    assert _samples(page, "controller_runtime_active_workers") == {("Gadget",): 0.0}
    assert _samples(page, "controller_runtime_max_concurrent_reconciles") == {("Gadget",): 10.0}


def test_queue_metrics_have_the_types_and_labels_of_controller_runtime() -> None:
    telemetry = watched(GadgetKind(Service()))

    queue = [one for one in _page(telemetry) if one.name.startswith(("workqueue_", "setpoint_workqueue_"))]

    assert {one.name: one.type for one in queue} == {
        "workqueue_depth": "gauge",
        "workqueue_adds": "counter",
        "workqueue_retries": "counter",
        "workqueue_queue_duration_seconds": "histogram",
        "workqueue_work_duration_seconds": "histogram",
        "workqueue_unfinished_work_seconds": "gauge",
        "workqueue_longest_running_processor_seconds": "gauge",
        "setpoint_workqueue_delayed": "gauge",
        "setpoint_workqueue_in_work": "gauge",
    }
    labels = {(sample.labels["name"], sample.labels["controller"]) for one in queue for sample in one.samples}
    assert labels == {("Gadget", "Gadget")}


def test_resources_are_counted_by_kind_and_readiness_without_those_of_other_kinds() -> None:
    telemetry, view = Telemetry(), manager_view(GadgetKind(Service()))
    watch(telemetry, view)
    for one in (resource("a"), resource("b"), resource("c", ready="False"), resource("d", kind="Other")):
        view.index.put(one)

    assert _read_samples(telemetry, "setpoint_resources") == {("Gadget", "true"): 2.0, ("Gadget", "false"): 1.0}


def test_the_resource_counts_follow_the_index() -> None:
    telemetry, view = Telemetry(), manager_view(GadgetKind(Service()))
    watch(telemetry, view)
    for one in (resource("a", ready="False"), resource("b", ready="False"), resource("a"), resource("b")):
        view.index.put(one)
    view.index.drop(gadget_ref("b"))
    view.index.drop(gadget_ref("never there"))

    assert _read_samples(telemetry, "setpoint_resources") == {("Gadget", "true"): 1.0, ("Gadget", "false"): 0.0}


def test_each_budget_and_circuit_breaker_has_its_series() -> None:
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


# --- A manager --------------------------------------------------------------------------------------------------------


def test_a_running_manager_measures_convergence_and_drift() -> None:
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


def test_requests_are_counted_by_method_host_and_code() -> None:
    counts = {("GET", "localhost:1", "200"): 3, ("GET", "localhost:1", "<error>"): 1}

    page = _page(Telemetry(requests=[counts]))

    shown = {
        (one.labels["method"], one.labels["host"], one.labels["code"]): one.value
        for family in page
        for one in family.samples
        if one.name == "rest_client_requests_total"
    }
    assert shown == counts

"""The metrics page of a fixed scenario is, byte for byte, the recorded one: dashboards and alerts depend on it.

`metrics_exposition.txt` was recorded from the version that counted by itself, before it used prometheus-client.
"""

import asyncio
import re
from pathlib import Path
from platform import python_version

from setpoint import __version__
from setpoint.clients.ratelimit.circuit_breaker import Throttled
from setpoint.clients.ratelimit.fair_queue import Caller
from setpoint.clients.ratelimit.limiter import QuotaBudgets, QuotaKey
from setpoint.clients.ratelimit.token_bucket import AimdSettings
from setpoint.engine.kind import Reconciliation
from setpoint.engine.metrics import BUGS, TERMINAL_ERRORS
from setpoint.runtime.metrics.build import revision
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.sharding.replica import ControllerReplica
from setpoint.runtime.workqueue.scheduling import Priority
from setpoint.stores.memory import MemoryStore
from tests.clients.manual_time import ManualClock
from tests.engine.clock import FakeClock
from tests.engine.gadgets import GROUP, GadgetKind, Service, gadget_ref
from tests.runtime.list_resync_harness import ListedKind
from tests.runtime.monitored_manager import ManagerView, manager_view, resource, watch

RECORDED = Path(__file__).with_name("metrics_exposition.txt")
REQUESTS = {("GET", "sql.example", "200"): 3, ("GET", "sql.example", "<error>"): 1}
STEPS = (
    ("settled", "in sync", 0.004),
    ("settled", "create", 0.3),
    ("gone", "", 0.02),
    ("on_edit", "", 0.1),
    ("on_change", "drifted", 2.0),
    ("back_off", "", 70.0),
    ("step_again", "", 0.1),
    ("stop", "", 0.1),
    ("bug", "", 0.1),
)


def test_the_page_is_as_recorded() -> None:
    running = f'python="{python_version()}",revision="{revision()}",version="{__version__}"'
    recorded = RECORDED.read_text(encoding="utf-8").replace("WHAT_RUNS", running)

    assert _own_metrics(asyncio.run(_page())) == recorded


async def _page() -> str:
    view = manager_view(
        GadgetKind(Service()),
        GadgetKind(Service(), Reconciliation.STATELESS, name="Plain"),
        ListedKind(Service(), name="Listed"),
    )
    view.replica = ControllerReplica(MemoryStore(FakeClock(), lambda: "uid"), FakeClock(), "one", 2)
    telemetry = Telemetry([await _budgets()], [REQUESTS])
    watch(telemetry, view)
    for outcome, decision, seconds in STEPS:
        telemetry.step_finished("Gadget", outcome, decision, seconds)
    for count in (TERMINAL_ERRORS, BUGS):
        telemetry.count(count, "Gadget")
    telemetry.step_finished("Plain", "settled", "first look", 0.1)
    telemetry.converged("Gadget", 11.0)
    telemetry.drifted("Gadget", 700.0)
    telemetry.listed("Listed", "complete", 20)
    await _fill(view)
    body, _ = await telemetry.page()
    return body.decode()


async def _budgets() -> QuotaBudgets:
    budgets = QuotaBudgets(ManualClock(), jitter=lambda: 0.0)
    settings = AimdSettings(start=8, burst=100, ceiling=8, growth=0)
    budget = budgets.make(QuotaKey("sql", "p", "reads"), settings, "sql.example")
    with await budget.limiter.acquire(budget, Caller(1), "GET") as slot:
        slot.outcome = Throttled(None)
    return budgets


async def _fill(view: ManagerView) -> None:
    for one in (resource("a"), resource("b", ready="False")):
        view.index.put(one)
    queue = view.controllers[GROUP, "Gadget"].queue
    queue.add(gadget_ref("a"), Priority.EDIT, "")
    queue.add(gadget_ref("b"), Priority.RESYNC, "")
    await queue.get()
    queue.schedule(gadget_ref("c"), 60.0, Priority.RESYNC, "")


def _own_metrics(text: str) -> str:
    """Without the metrics of the process and the interpreter, which differ from machine to machine."""
    blocks = re.split(r"(?=^# HELP )", text, flags=re.MULTILINE)
    return "".join(block for block in blocks if not block.startswith(("# HELP process_", "# HELP python_")))

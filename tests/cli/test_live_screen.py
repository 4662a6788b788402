"""The live screen: its sections, at any size."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from setpoint.cli.views.live_screen import LogBuffer, draw_snapshot
from setpoint.cli.views.process_snapshot import ProcessSnapshot, RunningStep, StepCounter, StoreSummary, UnreadyResource
from setpoint.clients.ratelimit.circuit_breaker import BreakerState
from setpoint.clients.ratelimit.limiter import BudgetStats, LimiterSnapshot, LimiterStats, QuotaKey
from setpoint.engine.metrics import NoMetrics
from setpoint.engine.ports import EventRecord
from setpoint.engine.resource import ResourceRef
from setpoint.runtime.workqueue.scheduling import Priority

LOGS = ResourceRef("storage", "StorageBucket", "default", "logs")
APP = ResourceRef("sql", "SQLDatabase", "default", "app")
SUMMARY = StoreSummary(
    {("StorageBucket", "ready"): 12, ("StorageBucket", "deleting"): 1, ("SQLDatabase", "not ready"): 1},
    (UnreadyResource(APP, "DependencyNotFound", "reference SQLInstance default/main is not found"),),
    (EventRecord(LOGS, "uid", "Normal", "Created", "created with spec.location", "2026-01-05T09:00:00Z"),),
)
SNAPSHOT = ProcessSnapshot(
    phase="running",
    seconds=3725.9,
    kinds=("SQLDatabase", "StorageBucket"),
    depth={Priority.EDIT: 2, Priority.DRIFT: 0, Priority.START_UP: 40},
    busy=(RunningStep(LOGS, "a change of its spec", 4.2),),
    retrying=((APP, "GET /sql: 503"),),
    delayed=13,
    retries=5,
    steps=StepCounter(NoMetrics(), all=10, hits=6, misses=2),
    services=LimiterSnapshot(
        (LimiterStats("storage", 3, BreakerState.CLOSED, 0, 0),),
        (BudgetStats(QuotaKey("storage", "p", "write"), 2.5, 4, 100, 1, 0.0),),
    ),
    summary=SUMMARY,
)


def _drawn(snapshot: ProcessSnapshot, height: int = 24, width: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height)
    with console.capture() as captured:
        console.print(draw_snapshot(snapshot, height))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_the_screen_has_every_section() -> None:
    assert _drawn(SNAPSHOT) == [
        "setpoint run  running  for 1:02:05  (q ends it)",
        "",
        "KIND           READY  NOT READY  DELETING",
        "SQLDatabase    0      1          0",
        "StorageBucket  12     0          1",
        "",
        "QUEUE        2 edit, 40 start_up",
        "IN WORK      StorageBucket default/logs (4s, after a change of its spec)",
        "TO COME      13 steps; 5 retries so far",
        "RETRYING     1: SQLDatabase default/app: GET /sql: 503",
        "COOKIE HITS  75% of 8; 10 steps",
        "SERVICE      storage: 3 calls under way, 4 waiting, 2.5/s allowed, throttled 1 times",
        "",
        "NOT READY                REASON              MESSAGE",
        "SQLDatabase default/app  DependencyNotFound  reference SQLInstance default/main is not found",
        "",
        "EVENT                 RESOURCE                    REASON   MESSAGE",
        "2026-01-05T09:00:00Z  StorageBucket default/logs  Created  created with spec.location",
    ]


def test_a_replica_shows_its_shards() -> None:
    lines = _drawn(replace(SNAPSHOT, shards=(3, 8)))

    assert "SHARDS       3 of 8 held here" in lines


def test_an_open_circuit_breaker_is_shown() -> None:
    down = replace(SNAPSHOT, services=LimiterSnapshot((LimiterStats("storage", 0, BreakerState.OPEN, 1, 7),), ()))

    assert (
        "SERVICE      storage: does not answer (breaker open); 0 calls under way, 0 waiting, 0.0/s allowed"
        in _drawn(down)
    )


def test_a_process_that_has_just_started_shows_no_figures() -> None:
    steps = StepCounter(NoMetrics())
    idle = replace(
        SNAPSHOT,
        phase="starting",
        depth={},
        busy=(),
        retrying=(),
        steps=steps,
        services=LimiterSnapshot((), ()),
        summary=StoreSummary(),
    )

    assert _drawn(idle)[6:] == [
        "QUEUE        empty",
        "IN WORK      nothing",
        "TO COME      13 steps; 5 retries so far",
        "RETRYING     nothing",
        "COOKIE HITS  none yet; 0 steps",
        "",
    ]


@pytest.mark.parametrize(
    ("height", "troubles", "notes"), [(1, 0, 0), (13, 0, 0), (15, 0, 1), (17, 1, 0), (21, 2, 3), (41, 12, 13)]
)
def test_unready_resources_and_events_share_the_remaining_lines(height: int, troubles: int, notes: int) -> None:
    many = replace(SUMMARY, troubles=SUMMARY.troubles * 100, notes=SUMMARY.notes * 100)

    drawn = _drawn(replace(SNAPSHOT, summary=many), height)

    assert len(drawn) <= max(height, 13)
    assert sum(line.startswith("SQLDatabase default/app") for line in drawn) == troubles
    assert sum(line.startswith("2026-01-05") for line in drawn) == notes


def test_long_lines_are_cut_and_control_characters_are_removed() -> None:
    message = "line one\nline two \x1b[2J" + "x" * 200
    odd = replace(SNAPSHOT, summary=replace(SUMMARY, troubles=(UnreadyResource(APP, "UpdateFailed", message),)))

    (line,) = (line for line in _drawn(odd) if line.startswith("SQLDatabase default/app"))

    assert len(line) == 100
    assert line.endswith("…")
    assert "\x1b" not in line


def test_steps_are_counted_as_cookie_hits_or_misses_and_passed_on() -> None:
    behind = StepCounter(NoMetrics())
    counting = StepCounter(behind)
    for decision in ("in sync", "in sync", "drifted", ""):
        counting.step_finished("StorageBucket", "settled", decision, 0.1)

    assert [(one.all, one.hits, one.misses) for one in (counting, behind)] == [(4, 2, 1), (4, 2, 1)]


def test_a_kind_without_cookies_has_neither_hits_nor_misses() -> None:
    counting = StepCounter(NoMetrics(), stateless=frozenset({"SQLUser"}))
    for decision in ("in sync", "differs"):
        counting.step_finished("SQLUser", "settled", decision, 0.1)

    assert (counting.all, counting.hits, counting.misses) == (2, 0, 0)


def test_the_log_buffer_keeps_the_last_lines() -> None:
    log = LogBuffer()
    for number in range(300):
        log.write(f"line {number}\n")

    assert (len(log.lines), log.lines[0], log.lines[-1]) == (200, "line 100\n", "line 299\n")

"""The live view: what is drawn of a process, whatever the size of the screen."""

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
SURVEY = StoreSummary(
    {("StorageBucket", "ready"): 12, ("StorageBucket", "deleting"): 1, ("SQLDatabase", "not ready"): 1},
    (UnreadyResource(APP, "DependencyNotFound", "reference SQLInstance default/main is not found"),),
    (EventRecord(LOGS, "uid", "Normal", "Created", "created with spec.location", "2026-01-05T09:00:00Z"),),
)
GLANCE = ProcessSnapshot(
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
    summary=SURVEY,
)


def _drawn(glance: ProcessSnapshot, height: int = 24, width: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height)
    with console.capture() as captured:
        console.print(draw_snapshot(glance, height))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_everything_is_on_one_screen() -> None:
    assert _drawn(GLANCE) == [
        "setpoint run  running  for 1:02:05  (q ends it)",
        "",
        "KIND           READY  NOT READY  DELETING",
        "SQLDatabase    0      1          0",
        "StorageBucket  12     0          1",
        "",
        "QUEUE        2 edit, 40 start_up",
        "IN WORK      StorageBucket default/logs (4s, after a change of its spec)",
        "TO COME      13 looks; 5 retries so far",
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


def test_a_process_among_others_shows_its_shards() -> None:
    lines = _drawn(replace(GLANCE, shards=(3, 8)))

    assert "SHARDS       3 of 8 held here" in lines


def test_a_service_that_does_not_answer_stands_out() -> None:
    down = replace(GLANCE, services=LimiterSnapshot((LimiterStats("storage", 0, BreakerState.OPEN, 1, 7),), ()))

    assert (
        "SERVICE      storage: does not answer (breaker open); 0 calls under way, 0 waiting, 0.0/s allowed"
        in _drawn(down)
    )


def test_nothing_is_told_of_what_has_not_begun() -> None:
    steps = StepCounter(NoMetrics())
    idle = replace(
        GLANCE,
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
        "TO COME      13 looks; 5 retries so far",
        "RETRYING     nothing",
        "COOKIE HITS  none yet; 0 steps",
        "",
    ]


@pytest.mark.parametrize(
    ("height", "troubles", "notes"), [(1, 0, 0), (13, 0, 0), (15, 0, 1), (17, 1, 0), (21, 2, 3), (41, 12, 13)]
)
def test_troubles_and_notes_share_the_room_that_there_is(height: int, troubles: int, notes: int) -> None:
    many = replace(SURVEY, troubles=SURVEY.troubles * 100, notes=SURVEY.notes * 100)

    drawn = _drawn(replace(GLANCE, summary=many), height)

    assert len(drawn) <= max(height, 13)
    assert sum(line.startswith("SQLDatabase default/app") for line in drawn) == troubles
    assert sum(line.startswith("2026-01-05") for line in drawn) == notes


def test_what_is_too_long_is_cut_off_and_nothing_moves_the_cursor() -> None:
    message = "line one\nline two \x1b[2J" + "x" * 200
    odd = replace(GLANCE, summary=replace(SURVEY, troubles=(UnreadyResource(APP, "UpdateFailed", message),)))

    (line,) = (line for line in _drawn(odd) if line.startswith("SQLDatabase default/app"))

    assert len(line) == 100
    assert line.endswith("…")
    assert "\x1b" not in line


def test_steps_are_counted_by_what_the_cookie_said_and_passed_on() -> None:
    behind = StepCounter(NoMetrics())
    counting = StepCounter(behind)
    for decision in ("in sync", "in sync", "drifted", ""):
        counting.step_finished("StorageBucket", "settled", decision, 0.1)

    assert [(one.all, one.hits, one.misses) for one in (counting, behind)] == [(4, 2, 1), (4, 2, 1)]


def test_the_last_lines_of_a_log_are_kept() -> None:
    log = LogBuffer()
    for number in range(300):
        log.write(f"line {number}\n")

    assert (len(log.lines), log.lines[0], log.lines[-1]) == (200, "line 100\n", "line 299\n")

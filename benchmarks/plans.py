"""Contests: what the live object should be, and the fields in which it differs from that."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from benchmarks import sql_instance
from benchmarks.measuring import Contest, Contestant
from benchmarks.opponents import Differ, Opponents, Route
from benchmarks.sql_instance import Size
from setpoint.core.decide import Decision
from setpoint.core.diff import FieldChange, diff
from setpoint.core.overlay import Declared, overlay
from setpoint.core.plan import Plan, plan_fields
from setpoint.core.schema.policy import IGNORE, PRUNE
from setpoint.core.schema.shape import Field
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.paths import Path

OVERLAY: Final = "effective desired state, one field to change"
NOTHING: Final = "fields to change: none"
ONE_FIELD: Final = "fields to change: one, in a keyed list"

_PLACE: Final = Field(sql_instance.SHAPE)
# What a contestant does, and whether its answer is right.
_Work: TypeAlias = tuple[Callable[[], object], Callable[[object], bool]]


@dataclass(frozen=True, slots=True)
class _Task:
    """A live object and what the author wrote under either policy.

    The opponents are given what comes of that, and all have to find the fields at `paths`, which stand at `routes`.
    """

    live: JsonObject
    wanted: JsonObject
    ignoring: Declared
    pruning: Declared
    paths: list[Path]
    routes: list[Route]


def contests(opponents: Opponents) -> Iterator[Contest]:
    """The overlay alone, then overlay and diff where nothing and where one flag is to change, in each size."""
    for size in sql_instance.SIZES:
        changed = _task_with_change(size)
        yield Contest(OVERLAY, size.label, _overlays(changed))
        yield Contest(NOTHING, size.label, _plans(_task_without_change(size), opponents))
        yield Contest(ONE_FIELD, size.label, _plans(changed, opponents))


def _task_without_change(size: Size) -> _Task:
    body = sql_instance.body_of(size)
    return _task(body, body, [], [])


def _task_with_change(size: Size) -> _Task:
    change = sql_instance.with_other_flag(size)
    return _task(sql_instance.body_of(size), change.body, [change.path], [change.route])


def _task(body: bytes, wanted: bytes, paths: list[Path], routes: list[Route]) -> _Task:
    return _Task(
        sql_instance.live_tree(body),
        sql_instance.live_tree(wanted),
        sql_instance.declared_of(wanted, IGNORE),
        sql_instance.declared_of(wanted, PRUNE),
        paths,
        routes,
    )


def _overlays(task: _Task) -> tuple[Contestant, ...]:
    def is_wanted(found: object) -> bool:
        assert isinstance(found, dict)
        return not diff(found, task.wanted, _PLACE) and bool(diff(found, task.live, _PLACE))

    return (
        Contestant("ours: overlay, ignore-unspecified", lambda: overlay(task.ignoring, task.live), is_wanted),
        Contestant("ours: overlay, prune", lambda: overlay(task.pruning, task.live), is_wanted),
        Contestant(
            "copy.deepcopy, before any change",
            lambda: copy.deepcopy(task.live),
            lambda found: isinstance(found, dict) and same(found, task.live),
        ),
    )


def _plans(task: _Task, opponents: Opponents) -> tuple[Contestant, ...]:
    return (
        Contestant("ours: overlay + diff, ignore-unspecified", *_differing(task, task.ignoring)),
        Contestant("ours: overlay + diff, prune", *_differing(task, task.pruning)),
        Contestant("ours: plan_fields, ignore-unspecified", *_planning(task, task.ignoring)),
        Contestant("ours: plan_fields, prune", *_planning(task, task.pruning)),
        *(Contestant(f"{one.name}, the overlay given", *_comparing(task, one)) for one in opponents.differs),
    )


def _differing(task: _Task, declared: Declared) -> _Work:
    def changes() -> tuple[FieldChange, ...]:
        return diff(task.live, overlay(declared, task.live), _PLACE)

    return changes, lambda _: [change.path for change in changes()] == task.paths


def _planning(task: _Task, declared: Declared) -> _Work:
    def plan() -> Plan:
        return plan_fields(Decision.DRIFTED, declared, task.live)

    return plan, lambda _: [change.path for change in plan().changes] == task.paths


def _comparing(task: _Task, differ: Differ) -> _Work:
    return (
        lambda: differ.compare(task.live, task.wanted),
        lambda found: bool(found) is bool(task.routes) and differ.routes(task.live, task.wanted) == task.routes,
    )

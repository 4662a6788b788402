"""Comparisons: the effective desired state of an object, and the fields that differ from the live state."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from benchmarks import sql_instance
from benchmarks.comparison import Candidate, Comparison
from benchmarks.peer_packages import Differ, IndexPath, Peers
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
NO_FIELD: Final = "fields to change: none"
ONE_FIELD: Final = "fields to change: one, in a keyed list"

_ROOT_FIELD: Final = Field(sql_instance.SHAPE)
# The call of a candidate, and the check of its result.
_CallAndCheck: TypeAlias = tuple[Callable[[], object], Callable[[object], bool]]


@dataclass(frozen=True, slots=True)
class _PlanCase:
    """A live object, its effective desired state, and what the author declares under either field policy.

    Peers are given the effective desired state. All have to find the fields at `paths`: for peers, at `index_paths`.
    """

    live: JsonObject
    desired: JsonObject
    declared_ignore: Declared
    declared_prune: Declared
    paths: list[Path]
    index_paths: list[IndexPath]


def comparisons(peers: Peers) -> Iterator[Comparison]:
    """In each size: the overlay alone, then overlay and diff with no change, and with one changed flag."""
    for size in sql_instance.SIZES:
        changed = _case_with_change(size)
        yield Comparison(OVERLAY, size.label, _overlay_candidates(changed))
        yield Comparison(NO_FIELD, size.label, _plan_candidates(_case_without_change(size), peers))
        yield Comparison(ONE_FIELD, size.label, _plan_candidates(changed, peers))


def _case_without_change(size: Size) -> _PlanCase:
    body = sql_instance.body_of(size)
    return _plan_case(body, body, [], [])


def _case_with_change(size: Size) -> _PlanCase:
    change = sql_instance.with_other_flag(size)
    return _plan_case(sql_instance.body_of(size), change.body, [change.path], [change.index_path])


def _plan_case(body: bytes, desired: bytes, paths: list[Path], index_paths: list[IndexPath]) -> _PlanCase:
    return _PlanCase(
        sql_instance.live_tree(body),
        sql_instance.live_tree(desired),
        sql_instance.declared_of(desired, IGNORE),
        sql_instance.declared_of(desired, PRUNE),
        paths,
        index_paths,
    )


def _overlay_candidates(case: _PlanCase) -> tuple[Candidate, ...]:
    def is_desired(result: object) -> bool:
        assert isinstance(result, dict)
        return not diff(result, case.desired, _ROOT_FIELD) and bool(diff(result, case.live, _ROOT_FIELD))

    return (
        Candidate("ours: overlay, ignore-unspecified", lambda: overlay(case.declared_ignore, case.live), is_desired),
        Candidate("ours: overlay, prune", lambda: overlay(case.declared_prune, case.live), is_desired),
        Candidate(
            "copy.deepcopy, before any change",
            lambda: copy.deepcopy(case.live),
            lambda result: isinstance(result, dict) and same(result, case.live),
        ),
    )


def _plan_candidates(case: _PlanCase, peers: Peers) -> tuple[Candidate, ...]:
    return (
        Candidate("ours: overlay + diff, ignore-unspecified", *_overlay_and_diff(case, case.declared_ignore)),
        Candidate("ours: overlay + diff, prune", *_overlay_and_diff(case, case.declared_prune)),
        Candidate("ours: plan_fields, ignore-unspecified", *_plan_fields(case, case.declared_ignore)),
        Candidate("ours: plan_fields, prune", *_plan_fields(case, case.declared_prune)),
        *(Candidate(f"{peer.name}, the overlay given", *_peer_diff(case, peer)) for peer in peers.differs),
    )


def _overlay_and_diff(case: _PlanCase, declared: Declared) -> _CallAndCheck:
    def changes() -> tuple[FieldChange, ...]:
        return diff(case.live, overlay(declared, case.live), _ROOT_FIELD)

    return changes, lambda _: [change.path for change in changes()] == case.paths


def _plan_fields(case: _PlanCase, declared: Declared) -> _CallAndCheck:
    def plan() -> Plan:
        return plan_fields(Decision.DRIFTED, declared, case.live)

    return plan, lambda _: [change.path for change in plan().changes] == case.paths


def _peer_diff(case: _PlanCase, differ: Differ) -> _CallAndCheck:
    return (
        lambda: differ.compare(case.live, case.desired),
        lambda result: (
            bool(result) is bool(case.index_paths) and differ.index_paths(case.live, case.desired) == case.index_paths
        ),
    )

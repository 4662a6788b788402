"""Contests: people's edits to a generated object, carried over to what is generated now."""

import copy
from collections.abc import Callable, Iterator
from typing import Final

from benchmarks.generated_config import TABLE, History, histories
from benchmarks.measuring import Contest, Contestant
from benchmarks.opponents import Differ, Opponents
from setpoint.core.merge.threeway import MergeResult, merge, remember
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json

SUBJECT: Final = "three-way merge: three edits, two moves"


def contests(opponents: Opponents) -> Iterator[Contest]:
    """A merge without conflicts in each size: in a conflict every package has an opinion of its own."""
    for history in histories():
        yield Contest(SUBJECT, history.size, _contestants(history, opponents))


def _contestants(history: History, opponents: Opponents) -> tuple[Contestant, ...]:
    last = remember(history.last, TABLE)

    def is_merged(found: object) -> bool:
        assert isinstance(found, MergeResult)
        return same(found.value, history.merged) and {str(path) for path in found.edits} == history.edits

    return (
        Contestant("ours: merge", lambda: merge(last, history.live, history.generated, TABLE), is_merged),
        Contestant("ours: remember", lambda: remember(history.last, TABLE), lambda found: found == last),
        Contestant(
            "copy.deepcopy, before any edit",
            lambda: copy.deepcopy(history.generated),
            lambda found: _is_tree(found, history.generated),
        ),
        *(
            Contestant(
                f"{one.name}: diff, patch", _carrying(one, history), lambda found: _is_tree(found, history.merged)
            )
            for one in opponents.differs
        ),
    )


def _carrying(differ: Differ, history: History) -> Callable[[], object]:
    return lambda: differ.carry(history.last, history.live, history.generated)


def _is_tree(found: object, tree: Json) -> bool:
    return isinstance(found, dict) and same(found, tree)

"""Comparisons: a three-way merge that keeps the edits of another writer to a generated object."""

import copy
from collections.abc import Callable, Iterator
from typing import Final

from benchmarks.comparison import Candidate, Comparison
from benchmarks.generated_config import TABLE, MergeCase, merge_cases
from benchmarks.peer_packages import Differ, Peers
from setpoint.core.merge.threeway import MergeResult, merge, remember
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json

SUBJECT: Final = "three-way merge: three edits, two moves"


def comparisons(peers: Peers) -> Iterator[Comparison]:
    """A merge without conflicts in each size: packages resolve conflicts differently."""
    for case in merge_cases():
        yield Comparison(SUBJECT, case.size, _candidates(case, peers))


def _candidates(case: MergeCase, peers: Peers) -> tuple[Candidate, ...]:
    last = remember(case.last, TABLE)

    def is_merged(result: object) -> bool:
        assert isinstance(result, MergeResult)
        return same(result.value, case.merged) and {str(path) for path in result.edits} == case.edits

    return (
        Candidate("ours: merge", lambda: merge(last, case.live, case.generated, TABLE), is_merged),
        Candidate("ours: remember", lambda: remember(case.last, TABLE), lambda result: result == last),
        Candidate(
            "copy.deepcopy, before any edit",
            lambda: copy.deepcopy(case.generated),
            lambda result: _is_tree(result, case.generated),
        ),
        *(
            Candidate(f"{peer.name}: diff, patch", _merging(peer, case), lambda result: _is_tree(result, case.merged))
            for peer in peers.differs
        ),
    )


def _merging(differ: Differ, case: MergeCase) -> Callable[[], object]:
    return lambda: differ.merge(case.last, case.live, case.generated)


def _is_tree(result: object, tree: Json) -> bool:
    return isinstance(result, dict) and same(result, tree)

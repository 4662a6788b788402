"""The lifecycle contract on a few kinds of the catalogue that have all mechanisms; every other one in brief.

`make contracts` tries the whole contract on every kind.
"""

import asyncio

import pytest

from setpoint.catalogue.rows import facts_of
from setpoint.core.unstructured import GroupKind
from tests.catalogue_kinds.compact import live_once
from tests.catalogue_kinds.contract_run import (
    CHAPTER_NAMES,
    INTERRUPTED,
    failures_of,
    interrupted_kinds,
    mechanisms_of,
    play_chapter,
    representative_kinds,
    tried_kinds,
)
from tests.catalogue_kinds.fixtures import fixture_of

_REPRESENTATIVES = representative_kinds()
_OTHERS = [name for name in tried_kinds() if name not in _REPRESENTATIVES]


def _kind(name: GroupKind) -> str:
    return name[1]


@pytest.mark.parametrize("chapter", [one for one in CHAPTER_NAMES if one != INTERRUPTED])
@pytest.mark.parametrize("name", _REPRESENTATIVES, ids=_kind)
def test_the_contract_holds(name: GroupKind, chapter: str) -> None:
    assert failures_of(play_chapter(fixture_of(name), chapter)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", interrupted_kinds(), ids=_kind)
def test_the_contract_holds_when_a_step_is_interrupted(name: GroupKind) -> None:
    """Half of the time of the contract: what makes a difference are operations, and how an object is found again."""
    assert failures_of(play_chapter(fixture_of(name), INTERRUPTED)) == {}


@pytest.mark.parametrize("name", _OTHERS, ids=_kind)
def test_it_lives_once(name: GroupKind) -> None:
    asyncio.run(live_once(fixture_of(name)))


@pytest.mark.parametrize("name", _REPRESENTATIVES, ids=_kind)
def test_the_fixture_has_each_part_or_says_why_the_kind_lacks_it(name: GroupKind) -> None:
    assert (fixture_of(name).undeclared(), fixture_of(name).contradicted()) == ([], [])


def test_few_kinds_have_all_mechanisms() -> None:
    updatable = [facts_of(name) for name in tried_kinds() if fixture_of(name).can_update]
    tried = [facts_of(name) for name in _REPRESENTATIVES]

    assert {one for row in updatable for one in mechanisms_of(row)} == {
        one for row in tried for one in mechanisms_of(row)
    }
    assert len(tried) <= 18

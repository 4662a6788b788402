"""Whatever an author, other writers and kills do: the result of a step is what the model says."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.testing.owners.owner_harness import owner_harness
from tests.engine.owners.histories import Deed, History, authors, drifts, edits, kills, sources, steps
from tests.engine.owners.owner_fixtures import WEBSITE

pytestmark = [pytest.mark.laws, pytest.mark.slow]

# Steps are what everything is about: there is one after every other deed.
quiet = st.one_of(authors(), edits(), drifts(), sources(), steps(), steps(), steps(), steps())
disturbed = st.one_of(authors(), edits(), drifts(), sources(), steps(), steps(), kills(), kills())


@given(st.lists(quiet, max_size=14))
def test_after_a_step_every_writer_keeps_its_fields(deeds: list[Deed]) -> None:
    play(deeds)


@given(st.lists(disturbed, max_size=14))
def test_whatever_is_killed_in_between(deeds: list[Deed]) -> None:
    play(deeds)


def play(deeds: list[Deed]) -> None:
    async def main() -> None:
        async with owner_harness(WEBSITE) as harness:
            history = History(harness)
            await history.rotate()
            await history.declare()
            for deed in deeds:
                await deed(history)
            await history.step()

    asyncio.run(main())

"""Another writer acts after any await of a step: no edit is lost, and nothing is taken for what it is not."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from setpoint.core.values.paths import get_at
from setpoint.engine.step.outcomes import Gone, Settled, Stopped
from setpoint.errors import StoreError
from setpoint.testing.interruptions import Interruption, after_any_await
from tests.engine.owners.owner_fixtures import FIXTURES, OwnerFixture
from tests.engine.owners.owner_harness import OwnerHarness, owner_harness_for

pytestmark = pytest.mark.slow

Happening = Callable[[OwnerHarness], Awaitable[None]]


async def is_there(harness: OwnerHarness) -> bool:
    return await harness.store.get(harness.at(harness.fixture.readiness_child)) is not None


async def another_writer_edits_an_editable_field(harness: OwnerHarness) -> None:
    if await is_there(harness):
        await harness.write()


async def another_writer_changes_what_is_managed(harness: OwnerHarness) -> None:
    if await is_there(harness) and await harness.store.get(harness.at(harness.fixture.managed.key)) is not None:
        await harness.drift()


async def another_writer_deletes_a_child(harness: OwnerHarness) -> None:
    await harness.remove(harness.fixture.readiness_child)


async def the_author_wants_something_else(harness: OwnerHarness) -> None:
    await harness.apply({"title": "Third"} if harness.fixture.owner.name == "Website" else harness.fixture.then)


async def the_source_is_rotated(harness: OwnerHarness) -> None:
    await harness.rotate()


async def the_author_deletes_it(harness: OwnerHarness) -> None:
    await harness.store.delete(harness.ref)


HAPPENINGS = (
    another_writer_edits_an_editable_field,
    another_writer_changes_what_is_managed,
    another_writer_deletes_a_child,
    the_author_wants_something_else,
    the_source_is_rotated,
    the_author_deletes_it,
)


@pytest.mark.parametrize("fixture", FIXTURES, ids=str)
@pytest.mark.parametrize("happening", HAPPENINGS)
@pytest.mark.parametrize("is_first", [True, False])
def test_whatever_happens_after_any_await_every_writer_keeps_its_fields(
    fixture: OwnerFixture, happening: Happening, is_first: bool
) -> None:
    async def happens_after(awaits: int) -> bool:
        async with owner_harness_for(fixture) as harness:
            await harness.begin()
            if not is_first:
                await harness.settled()
                await harness.change()
            was_there = await is_there(harness)
            interruption = Interruption(awaits, lambda: happening(harness))
            store, harness.store = harness.store, interruption.wrap(harness.store)
            outcome = await harness.step()
            harness.store = store
            assert not isinstance(outcome, Stopped) or isinstance(outcome.error, StoreError)

            is_to_go = happening is the_author_deletes_it and interruption.has_happened
            assert isinstance(await harness.step(), Gone if is_to_go else Settled)
            if not is_to_go:
                has_written = was_there and happening is another_writer_edits_an_editable_field
                await _check(harness, has_written=has_written and interruption.has_happened)
            return interruption.has_happened

    asyncio.run(after_any_await(happens_after, least=4))


async def _check(harness: OwnerHarness, *, has_written: bool) -> None:
    revision = await harness.revision()
    assert (await harness.settled()).plan.is_empty
    assert await harness.revision() == revision
    theirs, managed = harness.fixture.theirs, harness.fixture.managed
    is_kept = get_at((await harness.child(theirs.key)).document, theirs.path) == theirs.value
    assert is_kept or not has_written
    assert get_at((await harness.child(managed.key)).document, managed.path) != managed.value
    edited = (await harness.conditions())["Edited"]
    assert (edited["status"] == "True") == (is_kept and harness.fixture.reports_edits)

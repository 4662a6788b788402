"""Somebody else acts after any await of a step: nobody's work is lost, and nothing is taken for what it is not."""

from collections.abc import Awaitable, Callable

import pytest

from setpoint.core.values.paths import get_at
from setpoint.engine.context import Gone, Settled, Stopped
from setpoint.errors import StoreError
from tests.engine.interruptions import Interruption, after_any_await
from tests.engine.owners.home import Home, home_of
from tests.engine.owners.stands import STANDS, OwnerStand

pytestmark = pytest.mark.slow

Happening = Callable[[Home], Awaitable[None]]


async def is_there(home: Home) -> bool:
    return await home.store.get(home.at(home.stand.teller)) is not None


async def a_person_writes_what_is_theirs(home: Home) -> None:
    if await is_there(home):
        await home.write()


async def somebody_changes_what_is_managed(home: Home) -> None:
    if await is_there(home) and await home.store.get(home.at(home.stand.managed.key)) is not None:
        await home.meddle()


async def somebody_deletes_a_child(home: Home) -> None:
    await home.remove(home.stand.teller)


async def the_author_wants_something_else(home: Home) -> None:
    await home.apply({"title": "Third"} if home.stand.owner.name == "Website" else home.stand.then)


async def the_source_is_rotated(home: Home) -> None:
    await home.rotate()


async def the_author_deletes_it(home: Home) -> None:
    await home.store.delete(home.ref)


HAPPENINGS = (
    a_person_writes_what_is_theirs,
    somebody_changes_what_is_managed,
    somebody_deletes_a_child,
    the_author_wants_something_else,
    the_source_is_rotated,
    the_author_deletes_it,
)


@pytest.mark.parametrize("stand", STANDS, ids=str)
@pytest.mark.parametrize("happening", HAPPENINGS)
@pytest.mark.parametrize("is_first", [True, False])
def test_whatever_happens_after_any_await_everybody_has_what_is_theirs(
    stand: OwnerStand, happening: Happening, is_first: bool
) -> None:
    async def happens_after(awaits: int) -> bool:
        async with home_of(stand) as home:
            await home.begin()
            if not is_first:
                await home.settled()
                await home.change()
            was_there = await is_there(home)
            interruption = Interruption(awaits, lambda: happening(home))
            store, home.store = home.store, interruption.wrap(home.store)
            outcome = await home.step()
            home.store = store
            assert not isinstance(outcome, Stopped) or isinstance(outcome.error, StoreError)

            is_to_go = happening is the_author_deletes_it and interruption.has_happened
            assert isinstance(await home.step(), Gone if is_to_go else Settled)
            if not is_to_go:
                has_written = was_there and happening is a_person_writes_what_is_theirs
                await _check(home, has_written=has_written and interruption.has_happened)
            return interruption.has_happened

    after_any_await(happens_after, least=4)


async def _check(home: Home, *, has_written: bool) -> None:
    revision = await home.revision()
    assert (await home.settled()).plan.is_empty
    assert await home.revision() == revision
    theirs, managed = home.stand.theirs, home.stand.managed
    is_kept = get_at((await home.child(theirs.key)).document, theirs.path) == theirs.value
    assert is_kept or not has_written
    assert get_at((await home.child(managed.key)).document, managed.path) != managed.value
    edited = (await home.conditions())["Edited"]
    assert (edited["status"] == "True") == (is_kept and home.stand.tells_edits)

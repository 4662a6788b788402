"""The process dies, or another writer acts, after any await of a step: every writer keeps its fields."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeAlias

from setpoint.core.values.paths import get_at
from setpoint.engine.step.outcomes import Gone, Settled, Stopped
from setpoint.errors import StoreError
from setpoint.testing.interruptions import Interruption, after_any_await
from setpoint.testing.owners.owner_contract import OpenOwnerHarness, OwnerClaim
from setpoint.testing.owners.owner_fixture import OwnerPart
from setpoint.testing.owners.owner_harness import OwnerHarness

# What was done before the step, or is done in the middle of it.
Deed: TypeAlias = Callable[[OwnerHarness], Awaitable[None]]


# --- The process dies -------------------------------------------------------------------------------------------------


async def _making(harness: OwnerHarness) -> None:
    """Everything is to be made."""


async def _changing(harness: OwnerHarness) -> None:
    await harness.settled()
    await harness.change()


async def _following(harness: OwnerHarness) -> None:
    await harness.settled()
    await harness.rotate()


async def _reverting(harness: OwnerHarness) -> None:
    await harness.settled()
    await harness.drift()
    await harness.remove(harness.fixture.managed.key)


async def _doing_everything(harness: OwnerHarness) -> None:
    await _reverting(harness)
    await harness.change()
    if harness.fixture.has(OwnerPart.SOURCE):
        await harness.rotate()


async def killed_after_any_await(doing: Deed, open_harness: OpenOwnerHarness) -> None:
    """It ends as if nothing had happened: with the same children, and no value of its own taken for an edit."""
    found: list[dict[str, Any]] = []

    async def ends(harness: OwnerHarness, awaits: int) -> bool:
        await harness.begin()
        await doing(harness)
        was_killed = awaits > 0 and await harness.killed_after(awaits)
        await harness.restart()
        await harness.settled()
        assert (await harness.conditions())["Edited"]["status"] == "False"
        assert (await harness.settled()).plan.is_empty
        found.append(await _contents(harness))
        await harness.store.delete(harness.ref)
        await harness.step()
        return was_killed

    # In one world: children may have something of the versions of their sources.
    async with open_harness() as harness:
        await ends(harness, 0)
        await after_any_await(partial(ends, harness), least=3)
    assert [one for one in found if one != found[0]] == []


async def _contents(harness: OwnerHarness) -> dict[str, Any]:
    """What there is of the children, apart from what is random."""
    found = await harness.children()
    specs = {key: (one.spec, one.labels) for key, one in found.items()}
    data = {f"{key} data": one.document.get("data") for key, one in found.items() if key != harness.fixture.once}
    return specs | data


# --- Another writer acts ----------------------------------------------------------------------------------------------


async def _is_there(harness: OwnerHarness) -> bool:
    return await harness.store.get(harness.at(harness.fixture.managed.key)) is not None


async def _another_writer_edits_an_editable_field(harness: OwnerHarness) -> None:
    if await harness.store.get(harness.at(harness.fixture.editable.key)) is not None:
        await harness.write()


async def _another_writer_changes_a_managed_field(harness: OwnerHarness) -> None:
    if await _is_there(harness):
        await harness.drift()


async def _another_writer_deletes_a_child(harness: OwnerHarness) -> None:
    await harness.remove(harness.fixture.managed.key)


async def _the_author_changes_the_spec(harness: OwnerHarness) -> None:
    is_changed = harness.fixture.changed.items() <= (await harness.resource()).spec.items()
    await harness.apply({} if is_changed else harness.fixture.changed)


async def _the_source_changes(harness: OwnerHarness) -> None:
    await harness.rotate()


async def _the_author_deletes_it(harness: OwnerHarness) -> None:
    await harness.store.delete(harness.ref)


async def happens_after_any_await(happening: Deed, open_harness: OpenOwnerHarness, *, is_first: bool) -> None:
    """Whatever happens in the middle of a step, the next one settles, and every writer keeps its fields."""

    async def happens_after(awaits: int) -> bool:
        async with open_harness() as harness:
            await harness.begin()
            if not is_first:
                await harness.settled()
                await harness.change()
            was_there = await _is_there(harness)
            interruption = Interruption(awaits, lambda: happening(harness))
            store, harness.store = harness.store, interruption.wrap(harness.store)
            outcome = await harness.step()
            harness.store = store
            assert not isinstance(outcome, Stopped) or isinstance(outcome.error, StoreError)

            is_to_go = happening is _the_author_deletes_it and interruption.has_happened
            assert isinstance(await harness.step(), Gone if is_to_go else Settled)
            if not is_to_go:
                has_written = was_there and happening is _another_writer_edits_an_editable_field
                await _check(harness, has_written=has_written and interruption.has_happened)
            return interruption.has_happened

    await after_any_await(happens_after, least=3)


async def _check(harness: OwnerHarness, *, has_written: bool) -> None:
    revision = await harness.revision()
    assert (await harness.settled()).plan.is_empty
    assert await harness.revision() == revision
    editable, managed = harness.fixture.editable, harness.fixture.managed
    assert get_at((await harness.child(managed.key)).document, managed.path) != managed.value
    if harness.fixture.has(OwnerPart.EDITABLE):
        is_kept = get_at((await harness.child(editable.key)).document, editable.path) == editable.value
        assert is_kept or not has_written
        edited = (await harness.conditions())["Edited"]
        assert (edited["status"] == "True") == (is_kept and harness.fixture.reports_edits)


def _killed(what: str, doing: Deed, *parts: OwnerPart) -> OwnerClaim:
    name = f"killed after any await while {what} it ends as if nothing had happened"
    return OwnerClaim(name, partial(killed_after_any_await, doing), frozenset(parts), is_long=True)


def _happens(what: str, happening: Deed, *parts: OwnerPart) -> tuple[OwnerClaim, OwnerClaim]:
    times = {"the first": True, "a later": False}
    first, later = (
        OwnerClaim(
            f"every writer keeps its fields when {what} during {which} step",
            partial(happens_after_any_await, happening, is_first=is_first),
            frozenset(parts),
            is_long=True,
        )
        for which, is_first in times.items()
    )
    return first, later


CLAIMS: Final[tuple[OwnerClaim, ...]] = (
    _killed("making its children", _making),
    _killed("changing them", _changing),
    _killed("following its source", _following, OwnerPart.SOURCE),
    _killed("reverting what others did", _reverting),
    _killed("doing all of that", _doing_everything),
    *_happens("another edits a field", _another_writer_edits_an_editable_field, OwnerPart.EDITABLE),
    *_happens("another changes a managed field", _another_writer_changes_a_managed_field),
    *_happens("another deletes a child", _another_writer_deletes_a_child),
    *_happens("the author changes the spec", _the_author_changes_the_spec),
    *_happens("the source changes", _the_source_changes, OwnerPart.SOURCE),
    *_happens("the author deletes it", _the_author_deletes_it),
)

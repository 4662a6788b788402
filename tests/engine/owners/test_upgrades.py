"""The harness for upgrades of owners: every owner passes it, and it finds what was not declared."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from setpoint.core.decide import Decision, DecisionReason
from setpoint.core.merge.children import Child, ChildUpdatePolicy
from setpoint.core.values.paths import Path
from setpoint.engine.owner import Owner
from setpoint.engine.step.preview import PreviewFinding, PreviewResult
from setpoint.testing import ChildField
from setpoint.testing.owners.owner_harness import OwnerHarness
from setpoint.testing.upgrades import read_only
from tests.engine.owners.owner_fixtures import TRUSTEE, WEBSITE, field_at
from tests.engine.owners.settings import Setting, everywhere, in_memory
from tests.engine.owners.upgrading import (
    CLAIMS,
    Claim,
    Ground,
    Upgrade,
    field_of,
    leaving_out,
    made_now,
    manage_with,
    otherwise,
    play_upgrade,
    revised,
    with_another,
)

COPY = field_at("Secret/tc-https-key-secret", Path(("data", "privateKey")), "b3RoZXI=")


@everywhere
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__.replace("_", " "))
def test_upgrades(setting: Setting, claim: Claim) -> None:
    setting.play(claim)


@everywhere
def test_a_raised_revision_is_not_taken_for_an_edit_of_the_author(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        owner = harness.fixture.owner
        await harness.settle()
        manage_with(harness, revised(owner))

        revised_plan = await harness.preview()
        await harness.change()
        edited = await harness.preview()
        manage_with(harness, otherwise(owner, with_another(harness.fixture.managed), owner.revision + 1))
        await harness.apply()
        generated = await harness.preview()

        assert (revised_plan.decision, revised_plan.writes) == (Decision.REVISED, ())
        assert edited.decision is Decision.INTENT_CHANGED
        assert generated.decision is Decision.REVISED
        assert generated.writes

    setting.play(scenario)


@everywhere
def test_children_that_were_all_deleted_are_told_apart_from_new_ones(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        await harness.begin()
        new = await harness.preview()
        await harness.settled()
        for key in await harness.children():
            await harness.remove(key)

        deleted = await harness.preview()

        assert (new.decision, new.reason) == (Decision.CREATE, None)
        assert (deleted.decision, deleted.reason) == (Decision.CREATE, DecisionReason.DELETED)

    setting.play(scenario)


# --- It finds what was not declared -----------------------------------------------------------------------------------


@everywhere
def test_what_was_not_declared_is_named(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        owner, managed = harness.fixture.owner, harness.fixture.managed

        with pytest.raises(AssertionError) as caught:
            await play_upgrade(harness, Upgrade(otherwise(owner, with_another(managed)), revised(owner)))

        assert str(caught.value).startswith(f"read-only: writes: ({field_of(managed)!r},)")

    setting.play(scenario)


@everywhere
def test_a_child_that_was_not_made_before_is_named(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        owner, key = harness.fixture.owner, harness.fixture.managed.key

        with pytest.raises(AssertionError) as caught:
            await play_upgrade(harness, Upgrade(otherwise(owner, leaving_out(key)), revised(owner)))

        assert str(caught.value).startswith(f"read-only: writes: ('{key}.")

    setting.play(scenario)


@everywhere
def test_what_was_declared_and_does_not_come_is_named(setting: Setting) -> None:
    async def scenario(harness: OwnerHarness) -> None:
        owner, managed = harness.fixture.owner, harness.fixture.managed

        with pytest.raises(AssertionError, match="read-only: in sync"):
            await play_upgrade(harness, Upgrade(owner, owner, (field_of(managed),)))

    setting.play(scenario)


def _play(stand_of: Setting, new: Owner) -> None:
    """An upgrade from the owner of today to `new`, of which nothing is declared."""

    async def scenario(harness: OwnerHarness) -> None:
        await play_upgrade(harness, Upgrade(harness.fixture.owner, new))

    stand_of.play(scenario)


def test_a_secret_that_is_made_otherwise_without_a_revision_is_named(tmp_path: Any) -> None:
    trustee = Setting(TRUSTEE, is_on_sqlite=False, folder=tmp_path)

    with pytest.raises(AssertionError, match=r"read-only: masked: \('Secret/tc-https-key-secret\.data\.privateKey',\)"):
        _play(trustee, otherwise(TRUSTEE.owner, with_another(COPY)))
    with pytest.raises(AssertionError, match=r"read-only: writes: \('Secret/tc-https-key-secret\.data\.privateKey',\)"):
        _play(trustee, otherwise(TRUSTEE.owner, with_another(COPY), TRUSTEE.owner.revision + 1))


class Restless:
    """Makes something else each time."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, child: Child) -> Child:
        self.times += 1
        return with_another(replace(WEBSITE.managed, value=f"{self.times}"))(child)


def test_an_owner_that_never_comes_to_rest_is_named(tmp_path: Any) -> None:
    website = Setting(WEBSITE, is_on_sqlite=False, folder=tmp_path)

    with pytest.raises(AssertionError, match=r"read-only: writes: \('Gallery/shop\.spec\.heading',\)"):
        _play(website, otherwise(WEBSITE.owner, Restless()))


# --- Whatever it is ---------------------------------------------------------------------------------------------------


@in_memory
def test_every_field_that_an_implementation_made_otherwise_is_named(setting: Setting) -> None:
    async def main() -> None:
        async with setting.harness() as harness:
            await harness.settle()
            children = await made_now(harness)
        places = [place for child in children for place in _places(child)]
        assert len(places) > 5

        assert [one for one in places if not _names(await _preview_after_upgrade(setting, one), one)] == []

    asyncio.run(main())


async def _preview_after_upgrade(setting: Setting, place: ChildField) -> PreviewResult:
    """The preview of today's owner, for children of one that had something else in that place."""
    async with setting.harness() as harness:
        owner = harness.fixture.owner
        manage_with(harness, otherwise(owner, with_another(place)))
        await harness.settle()
        manage_with(harness, revised(owner))
        return await read_only(Ground(harness))


def _places(child: Child) -> Iterator[ChildField]:
    """Every generated field of a child, and another value for it; create-only children are left out."""
    # No server allows a change of the type of a Secret.
    apart = ("apiVersion", "kind", "metadata", *(("type",) if child.key.startswith("Secret/") else ()))
    body = {name: value for name, value in child.object.items() if name not in apart}
    if child.update_policy is not ChildUpdatePolicy.CREATE_ONLY:
        yield from (field_at(child.key, Path(steps), _another(value)) for steps, value in _leaves(body))


def _leaves(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    inside: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list | tuple) and all(isinstance(one, dict) for one in value):
        inside = list(enumerate(value))
    for step, member in inside:
        yield from _leaves(member, (*at, step))
    if not inside:
        yield at, value


def _another(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            # Four letters, so that it is still base64 where it was.
            return f"more{value}"
        case list() | tuple():
            return [*value, "more"]
        case _:
            return {"more": "more"}


def _names(preview: PreviewResult, place: ChildField) -> bool:
    """Whether the field, or the list that it is in, is reported; or that it can never be written."""
    if preview.finding is PreviewFinding.FAILED:
        return "spec.selector cannot change any more" in preview.trouble and "spec.selector" in str(place.path)
    (field,) = preview.fields or ("",)
    steps = place.path.steps
    listed = next((number for number, step in enumerate(steps) if isinstance(step, int)), len(steps))
    return preview.finding is PreviewFinding.WRITES and field == field_of(
        field_at(place.key, Path(steps[:listed]), None)
    )

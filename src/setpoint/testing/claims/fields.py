"""The owner of a field: the author's annotations, and the protection that silence never gives up."""

import re

from setpoint.core.schema.policy import DEFAULT_TO_GCP, IGNORE_UNSPECIFIED, UNMANAGED
from setpoint.engine.step.outcomes import Stopped
from setpoint.errors import UnknownField
from setpoint.testing.claims.claim import claim
from setpoint.testing.harness import ContractHarness
from setpoint.testing.kind_parts import Part
from setpoint.testing.upgrades import manage_with, revised

IGNORE = {IGNORE_UNSPECIFIED: "true"}


async def ignore_unspecified_fields_keeps_what_is_unspecified(harness: ContractHarness) -> None:
    other = harness.fixture.unspecified
    await harness.settle(harness.fixture.spec_without(other), annotations=IGNORE)
    await harness.set_unspecified(other)

    await harness.go_on()

    assert await harness.read(other.member) == other.theirs
    assert harness.writes == ["create"]


async def what_is_unspecified_outlives_a_change_under_ignore_unspecified_fields(harness: ContractHarness) -> None:
    other = harness.fixture.unspecified
    await harness.settle(harness.fixture.spec_without(other), annotations=IGNORE)
    await harness.set_unspecified(other)

    await harness.settle(harness.fixture.spec(harness.fixture.field.then), annotations=IGNORE)

    assert await harness.value() == harness.fixture.field.then
    assert await harness.read(other.member) == other.theirs


async def prunes_what_is_unspecified_without_it(harness: ContractHarness) -> None:
    await harness.settle()
    for other in (harness.fixture.unspecified, harness.fixture.unlisted):
        await harness.set_unspecified(other)

    await harness.go_on()

    for other in (harness.fixture.unspecified, harness.fixture.unlisted):
        assert await harness.read(other.member) == other.pruned
    assert harness.writes == ["create", "update"]


async def default_to_gcp_fields_keeps_the_listed_field_only(harness: ContractHarness) -> None:
    listed, unlisted = harness.fixture.unspecified, harness.fixture.unlisted
    await harness.settle(annotations={DEFAULT_TO_GCP: listed.path})
    await harness.set_unspecified(listed)
    await harness.set_unspecified(unlisted)

    await harness.go_on()

    assert await harness.read(listed.member) == listed.theirs
    assert await harness.read(unlisted.member) == unlisted.pruned


async def toggling_the_annotation_leaves_the_fast_path(harness: ContractHarness) -> None:
    other = harness.fixture.unspecified
    await harness.settle(annotations=IGNORE)
    await harness.set_unspecified(other)
    await harness.step()

    await harness.settle()

    assert await harness.read(other.member) == other.pruned


async def what_the_author_takes_back_from_the_service_is_pruned_after_an_upgrade(harness: ContractHarness) -> None:
    other = harness.fixture.unspecified
    await harness.settle(annotations=IGNORE)
    await harness.set_unspecified(other)
    await harness.go_on()

    manage_with(harness, revised(harness.fixture.kind))
    await harness.settle()

    assert await harness.read(other.member) == other.pruned


async def unmanaged_keeps_the_live_value_over_the_spec(harness: ContractHarness) -> None:
    unmanaged = {UNMANAGED: harness.fixture.field.path}
    await harness.settle(annotations=unmanaged)
    assert await harness.value() == harness.fixture.field.first
    await harness.drift()

    await harness.go_on()
    await harness.settle(harness.fixture.spec(harness.fixture.field.then), annotations=unmanaged)

    assert await harness.value() == harness.fixture.field.drifted
    assert harness.writes == ["create"]


async def a_path_that_is_no_field_is_refused(harness: ContractHarness) -> None:
    await harness.apply(annotations={UNMANAGED: f"{harness.fixture.field.path}s"})

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, UnknownField)
    # Of an element of a keyed list, the type alone is known.
    assert re.sub(r"=[^\]]*\]", "=…]", harness.fixture.field.path) in outcome.error.nearest
    assert harness.writes == []


async def protection_is_kept_when_the_spec_falls_silent(harness: ContractHarness) -> None:
    for one in harness.fixture.protections:
        await harness.settle(one.on)

        await harness.settle(one.silent)

        assert await harness.read(one.member) == one.kept


async def protection_is_given_up_by_an_explicit_value(harness: ContractHarness) -> None:
    for one in harness.fixture.protections:
        await harness.settle(one.on)

        await harness.settle(one.off)

        assert await harness.read(one.member) == one.given_up


CLAIMS = (
    claim(ignore_unspecified_fields_keeps_what_is_unspecified, Part.UNSPECIFIED),
    claim(what_is_unspecified_outlives_a_change_under_ignore_unspecified_fields, Part.PRUNING),
    claim(prunes_what_is_unspecified_without_it, Part.PRUNING),
    claim(default_to_gcp_fields_keeps_the_listed_field_only, Part.PRUNING),
    claim(toggling_the_annotation_leaves_the_fast_path, Part.COOKIE, Part.PRUNING),
    claim(what_the_author_takes_back_from_the_service_is_pruned_after_an_upgrade, Part.PRUNING),
    claim(unmanaged_keeps_the_live_value_over_the_spec),
    claim(a_path_that_is_no_field_is_refused),
    claim(protection_is_kept_when_the_spec_falls_silent, Part.PROTECTION),
    claim(protection_is_given_up_by_an_explicit_value, Part.PROTECTION),
)

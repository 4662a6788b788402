"""The owner of a field: the author's annotations, and the protection that silence never gives up."""

from setpoint.core.schema.policy import DEFAULT_TO_GCP, IGNORE_UNSPECIFIED, UNMANAGED
from setpoint.engine.step.outcomes import Stopped
from setpoint.errors import UnknownField
from tests.engine.claim import claim
from tests.engine.kind_fixture import Part
from tests.engine.step_harness import StepHarness
from tests.engine.upgrades import manage_with, revised

IGNORE = {IGNORE_UNSPECIFIED: "true"}


async def ignore_unspecified_fields_keeps_what_is_unspecified(harness: StepHarness) -> None:
    other = harness.fixture.unspecified
    await harness.settle(other.spec, annotations=IGNORE)
    harness.fixture.set_unspecified(other)

    await harness.go_on()

    assert harness.fixture.read(other.member) == other.theirs
    assert harness.fixture.writes == ["create"]


async def what_is_unspecified_outlives_a_change_under_ignore_unspecified_fields(harness: StepHarness) -> None:
    other = harness.fixture.unspecified
    await harness.settle(other.spec, annotations=IGNORE)
    harness.fixture.set_unspecified(other)

    await harness.settle(harness.fixture.spec(harness.fixture.field.then), annotations=IGNORE)

    assert harness.fixture.value == harness.fixture.field.then
    assert harness.fixture.read(other.member) == other.theirs


async def prunes_what_is_unspecified_without_it(harness: StepHarness) -> None:
    await harness.settle()
    for other in (harness.fixture.unspecified, harness.fixture.unlisted):
        harness.fixture.set_unspecified(other)

    await harness.go_on()

    for other in (harness.fixture.unspecified, harness.fixture.unlisted):
        assert harness.fixture.read(other.member) == other.pruned
    assert harness.fixture.writes == ["create", "update"]


async def default_to_gcp_fields_keeps_the_listed_field_only(harness: StepHarness) -> None:
    listed, unlisted = harness.fixture.unspecified, harness.fixture.unlisted
    await harness.settle(annotations={DEFAULT_TO_GCP: listed.path})
    harness.fixture.set_unspecified(listed)
    harness.fixture.set_unspecified(unlisted)

    await harness.go_on()

    assert harness.fixture.read(listed.member) == listed.theirs
    assert harness.fixture.read(unlisted.member) == unlisted.pruned


async def toggling_the_annotation_leaves_the_fast_path(harness: StepHarness) -> None:
    other = harness.fixture.unspecified
    await harness.settle(annotations=IGNORE)
    harness.fixture.set_unspecified(other)
    await harness.step()

    await harness.settle()

    assert harness.fixture.read(other.member) == other.pruned


async def what_the_author_takes_back_from_the_service_is_pruned_after_an_upgrade(harness: StepHarness) -> None:
    other = harness.fixture.unspecified
    await harness.settle(annotations=IGNORE)
    harness.fixture.set_unspecified(other)
    await harness.go_on()

    manage_with(harness, revised(harness.fixture.kind))
    await harness.settle()

    assert harness.fixture.read(other.member) == other.pruned


async def unmanaged_keeps_the_live_value_over_the_spec(harness: StepHarness) -> None:
    unmanaged = {UNMANAGED: harness.fixture.field.path}
    await harness.settle(annotations=unmanaged)
    assert harness.fixture.value == harness.fixture.field.first
    harness.fixture.drift()

    await harness.go_on()
    await harness.settle(harness.fixture.spec(harness.fixture.field.then), annotations=unmanaged)

    assert harness.fixture.value == harness.fixture.field.drifted
    assert harness.fixture.writes == ["create"]


async def a_path_that_is_no_field_is_refused(harness: StepHarness) -> None:
    await harness.apply(annotations={UNMANAGED: f"{harness.fixture.field.path}s"})

    outcome = await harness.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, UnknownField)
    assert harness.fixture.field.path in outcome.error.nearest
    assert harness.fixture.writes == []


async def protection_is_kept_when_the_spec_falls_silent(harness: StepHarness) -> None:
    for one in harness.fixture.protections:
        await harness.settle(one.on)

        await harness.settle(one.silent)

        assert harness.fixture.read(one.member) == one.kept


async def protection_is_given_up_by_an_explicit_value(harness: StepHarness) -> None:
    for one in harness.fixture.protections:
        await harness.settle(one.on)

        await harness.settle(one.off)

        assert harness.fixture.read(one.member) == one.given_up


CLAIMS = (
    claim(ignore_unspecified_fields_keeps_what_is_unspecified),
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

"""Who owns a field: the author's annotations, and the protection that silence never gives up."""

from setpoint.core.schema.policy import DEFAULT_TO_GCP, IGNORE_UNSPECIFIED, UNMANAGED
from setpoint.engine.context import Stopped
from setpoint.errors import UnknownField
from tests.engine.bench import Bench
from tests.engine.claim import claim
from tests.engine.stand import Part
from tests.engine.upgrades import manage_with, revised

IGNORE = {IGNORE_UNSPECIFIED: "true"}


async def ignore_unspecified_fields_keeps_what_nobody_asked_for(bench: Bench) -> None:
    other = bench.stand.unspecified
    await bench.settle(other.spec, annotations=IGNORE)
    bench.stand.meddle(other)

    await bench.go_on()

    assert bench.stand.read(other.member) == other.theirs
    assert bench.stand.writes == ["create"]


async def what_nobody_asked_for_outlives_a_change_under_ignore_unspecified_fields(bench: Bench) -> None:
    other = bench.stand.unspecified
    await bench.settle(other.spec, annotations=IGNORE)
    bench.stand.meddle(other)

    await bench.settle(bench.stand.spec(bench.stand.field.then), annotations=IGNORE)

    assert bench.stand.value == bench.stand.field.then
    assert bench.stand.read(other.member) == other.theirs


async def prunes_what_nobody_asked_for_without_it(bench: Bench) -> None:
    await bench.settle()
    for other in (bench.stand.unspecified, bench.stand.unlisted):
        bench.stand.meddle(other)

    await bench.go_on()

    for other in (bench.stand.unspecified, bench.stand.unlisted):
        assert bench.stand.read(other.member) == other.pruned
    assert bench.stand.writes == ["create", "update"]


async def default_to_gcp_fields_keeps_the_listed_field_only(bench: Bench) -> None:
    listed, unlisted = bench.stand.unspecified, bench.stand.unlisted
    await bench.settle(annotations={DEFAULT_TO_GCP: listed.path})
    bench.stand.meddle(listed)
    bench.stand.meddle(unlisted)

    await bench.go_on()

    assert bench.stand.read(listed.member) == listed.theirs
    assert bench.stand.read(unlisted.member) == unlisted.pruned


async def toggling_the_annotation_leaves_the_fast_path(bench: Bench) -> None:
    other = bench.stand.unspecified
    await bench.settle(annotations=IGNORE)
    bench.stand.meddle(other)
    await bench.step()

    await bench.settle()

    assert bench.stand.read(other.member) == other.pruned


async def what_the_author_takes_back_from_the_service_is_pruned_after_an_upgrade(bench: Bench) -> None:
    other = bench.stand.unspecified
    await bench.settle(annotations=IGNORE)
    bench.stand.meddle(other)
    await bench.go_on()

    manage_with(bench, revised(bench.stand.kind))
    await bench.settle()

    assert bench.stand.read(other.member) == other.pruned


async def unmanaged_keeps_the_live_value_over_the_spec(bench: Bench) -> None:
    unmanaged = {UNMANAGED: bench.stand.field.path}
    await bench.settle(annotations=unmanaged)
    assert bench.stand.value == bench.stand.field.first
    bench.stand.drift()

    await bench.go_on()
    await bench.settle(bench.stand.spec(bench.stand.field.then), annotations=unmanaged)

    assert bench.stand.value == bench.stand.field.drifted
    assert bench.stand.writes == ["create"]


async def a_path_that_is_no_field_is_refused(bench: Bench) -> None:
    await bench.apply(annotations={UNMANAGED: f"{bench.stand.field.path}s"})

    outcome = await bench.step()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, UnknownField)
    assert bench.stand.field.path in outcome.error.nearest
    assert bench.stand.writes == []


async def protection_is_kept_when_the_spec_falls_silent(bench: Bench) -> None:
    for one in bench.stand.protections:
        await bench.settle(one.on)

        await bench.settle(one.silent)

        assert bench.stand.read(one.member) == one.kept


async def protection_is_given_up_by_an_explicit_value(bench: Bench) -> None:
    for one in bench.stand.protections:
        await bench.settle(one.on)

        await bench.settle(one.off)

        assert bench.stand.read(one.member) == one.given_up


CLAIMS = (
    claim(ignore_unspecified_fields_keeps_what_nobody_asked_for),
    claim(what_nobody_asked_for_outlives_a_change_under_ignore_unspecified_fields, Part.PRUNING),
    claim(prunes_what_nobody_asked_for_without_it, Part.PRUNING),
    claim(default_to_gcp_fields_keeps_the_listed_field_only, Part.PRUNING),
    claim(toggling_the_annotation_leaves_the_fast_path, Part.COOKIE, Part.PRUNING),
    claim(what_the_author_takes_back_from_the_service_is_pruned_after_an_upgrade, Part.PRUNING),
    claim(unmanaged_keeps_the_live_value_over_the_spec),
    claim(a_path_that_is_no_field_is_refused),
    claim(protection_is_kept_when_the_spec_falls_silent, Part.PROTECTION),
    claim(protection_is_given_up_by_an_explicit_value, Part.PROTECTION),
)

"""What a new implementation of a kind does to what an old one made: nothing that was not declared."""

from setpoint.core.schema.policy import IGNORE_UNSPECIFIED
from setpoint.engine.capabilities import SupportsFormerRevisions
from setpoint.engine.kind import Reconciliation
from setpoint.engine.step.preview import PreviewFinding
from tests.engine.claim import claim
from tests.engine.step_harness import StepHarness
from tests.engine.upgrades import Upgrade, handled, manage_with, play_upgrade, read_only, revised, take_over


async def a_new_revision_writes_nothing(harness: StepHarness) -> None:
    kind = harness.fixture.kind

    await play_upgrade(harness, Upgrade(kind, revised(kind)))


async def a_new_revision_writes_nothing_to_the_least_that_a_spec_can_say(harness: StepHarness) -> None:
    kind = harness.fixture.kind

    await play_upgrade(harness, Upgrade(kind, revised(kind)), harness.fixture.bare)


async def an_upgrade_that_finds_no_cookie_writes_nothing(harness: StepHarness) -> None:
    kind = harness.fixture.kind

    await play_upgrade(harness, Upgrade(kind, kind), forgets=True)
    await play_upgrade(harness, Upgrade(kind, revised(kind)), forgets=True)


async def a_cookie_more_or_less_writes_nothing(harness: StepHarness) -> None:
    stateful, stateless = (handled(harness.fixture.kind, way) for way in Reconciliation)

    await play_upgrade(harness, Upgrade(stateful, stateless))
    await play_upgrade(harness, Upgrade(stateless, stateful))


async def what_is_left_to_the_service_stays_so_after_an_upgrade(harness: StepHarness) -> None:
    other = harness.fixture.unspecified
    await harness.settle(other.spec, annotations={IGNORE_UNSPECIFIED: "true"})
    harness.fixture.set_unspecified(other)
    await harness.go_on()

    manage_with(harness, revised(harness.fixture.kind))
    await take_over(harness)

    assert harness.fixture.read(other.member) == other.theirs


async def drift_is_corrected_by_either_revision_and_previewed(harness: StepHarness) -> None:
    kind = harness.fixture.kind
    await harness.settle()
    harness.fixture.drift()

    before = await read_only(harness)
    harness.kind = revised(kind)
    after = await read_only(harness)

    assert (before.finding, after.finding) == (PreviewFinding.WRITES, PreviewFinding.WRITES)
    assert before.fields == after.fields == (harness.fixture.field.path,)


async def whatever_it_was_done_like_before_writes_only_what_is_declared(harness: StepHarness) -> None:
    kind = harness.fixture.kind
    for former in kind.former() if isinstance(kind, SupportsFormerRevisions) else ():
        await play_upgrade(harness, Upgrade(former, kind, harness.fixture.upgrades.get(former.revision, ())))


CLAIMS = (
    claim(a_new_revision_writes_nothing),
    claim(a_new_revision_writes_nothing_to_the_least_that_a_spec_can_say),
    claim(an_upgrade_that_finds_no_cookie_writes_nothing),
    claim(a_cookie_more_or_less_writes_nothing),
    claim(what_is_left_to_the_service_stays_so_after_an_upgrade),
    claim(drift_is_corrected_by_either_revision_and_previewed),
    claim(whatever_it_was_done_like_before_writes_only_what_is_declared),
)

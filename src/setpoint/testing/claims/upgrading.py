"""What a new implementation of a kind does to what an old one made: nothing that was not declared."""

from setpoint.core.schema.policy import IGNORE_UNSPECIFIED
from setpoint.engine.capabilities import SupportsFormerRevisions
from setpoint.engine.kind import Reconciliation
from setpoint.engine.step.preview import PreviewFinding
from setpoint.testing.claims.claim import claim
from setpoint.testing.harness import ContractHarness
from setpoint.testing.kind_parts import Part
from setpoint.testing.upgrades import KindUpgrade, handled, manage_with, play_upgrade, read_only, revised, take_over


async def a_new_revision_writes_nothing(harness: ContractHarness) -> None:
    kind = harness.fixture.kind

    await play_upgrade(harness, KindUpgrade(kind, revised(kind)))


async def a_new_revision_writes_nothing_to_the_least_that_a_spec_can_say(harness: ContractHarness) -> None:
    kind = harness.fixture.kind

    await play_upgrade(harness, KindUpgrade(kind, revised(kind)), harness.fixture.bare)


async def an_upgrade_that_finds_no_cookie_writes_nothing(harness: ContractHarness) -> None:
    kind = harness.fixture.kind

    await play_upgrade(harness, KindUpgrade(kind, kind), forgets=True)
    await play_upgrade(harness, KindUpgrade(kind, revised(kind)), forgets=True)


async def a_cookie_more_or_less_writes_nothing(harness: ContractHarness) -> None:
    stateful, stateless = (handled(harness.fixture.kind, way) for way in Reconciliation)

    await play_upgrade(harness, KindUpgrade(stateful, stateless))
    await play_upgrade(harness, KindUpgrade(stateless, stateful))


async def what_is_left_to_the_service_stays_so_after_an_upgrade(harness: ContractHarness) -> None:
    other = harness.fixture.unspecified
    await harness.settle(harness.fixture.spec_without(other), annotations={IGNORE_UNSPECIFIED: "true"})
    await harness.set_unspecified(other)
    await harness.go_on()

    manage_with(harness, revised(harness.fixture.kind))
    await take_over(harness)

    assert await harness.read(other.member) == other.theirs


async def drift_is_corrected_by_either_revision_and_previewed(harness: ContractHarness) -> None:
    kind = harness.fixture.kind
    await harness.settle()
    await harness.drift()

    before = await read_only(harness)
    harness.kind = revised(kind)
    after = await read_only(harness)

    assert (before.finding, after.finding) == (PreviewFinding.WRITES, PreviewFinding.WRITES)
    assert before.fields == after.fields == (harness.fixture.field.path,)


async def whatever_it_was_done_like_before_writes_only_what_is_declared(harness: ContractHarness) -> None:
    kind = harness.fixture.kind
    for former in kind.former() if isinstance(kind, SupportsFormerRevisions) else ():
        await play_upgrade(harness, KindUpgrade(former, kind, harness.fixture.upgrades.get(former.revision, ())))


CLAIMS = (
    claim(a_new_revision_writes_nothing),
    claim(a_new_revision_writes_nothing_to_the_least_that_a_spec_can_say),
    claim(an_upgrade_that_finds_no_cookie_writes_nothing),
    claim(a_cookie_more_or_less_writes_nothing),
    claim(what_is_left_to_the_service_stays_so_after_an_upgrade, Part.UNSPECIFIED),
    claim(drift_is_corrected_by_either_revision_and_previewed),
    claim(whatever_it_was_done_like_before_writes_only_what_is_declared, Part.FORMER),
)

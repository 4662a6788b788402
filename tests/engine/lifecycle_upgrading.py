"""What a new implementation of a kind does to what an old one made: nothing that was not declared."""

from setpoint.core.schema.policy import IGNORE_UNSPECIFIED
from setpoint.engine.capabilities import SupportsFormerRevisions
from setpoint.engine.kind import Reconciliation
from setpoint.engine.step.preview import PreviewFinding
from tests.engine.bench import Bench
from tests.engine.claim import claim
from tests.engine.upgrades import Upgrade, handled, manage_with, play_upgrade, read_only, revised, take_over


async def a_new_revision_writes_nothing(bench: Bench) -> None:
    kind = bench.stand.kind

    await play_upgrade(bench, Upgrade(kind, revised(kind)))


async def a_new_revision_writes_nothing_to_the_least_that_a_spec_can_say(bench: Bench) -> None:
    kind = bench.stand.kind

    await play_upgrade(bench, Upgrade(kind, revised(kind)), bench.stand.bare)


async def an_upgrade_that_finds_no_cookie_writes_nothing(bench: Bench) -> None:
    kind = bench.stand.kind

    await play_upgrade(bench, Upgrade(kind, kind), forgets=True)
    await play_upgrade(bench, Upgrade(kind, revised(kind)), forgets=True)


async def a_cookie_more_or_less_writes_nothing(bench: Bench) -> None:
    stateful, stateless = (handled(bench.stand.kind, way) for way in Reconciliation)

    await play_upgrade(bench, Upgrade(stateful, stateless))
    await play_upgrade(bench, Upgrade(stateless, stateful))


async def what_is_left_to_the_service_stays_so_after_an_upgrade(bench: Bench) -> None:
    other = bench.stand.unspecified
    await bench.settle(other.spec, annotations={IGNORE_UNSPECIFIED: "true"})
    bench.stand.meddle(other)
    await bench.go_on()

    manage_with(bench, revised(bench.stand.kind))
    await take_over(bench)

    assert bench.stand.read(other.member) == other.theirs


async def what_drifted_is_put_back_by_either_and_told_beforehand(bench: Bench) -> None:
    kind = bench.stand.kind
    await bench.settle()
    bench.stand.drift()

    before = await read_only(bench)
    bench.kind = revised(kind)
    after = await read_only(bench)

    assert (before.finding, after.finding) == (PreviewFinding.WRITES, PreviewFinding.WRITES)
    assert before.fields == after.fields == (bench.stand.field.path,)


async def whatever_it_was_done_like_before_writes_only_what_is_declared(bench: Bench) -> None:
    kind = bench.stand.kind
    for former in kind.former() if isinstance(kind, SupportsFormerRevisions) else ():
        await play_upgrade(bench, Upgrade(former, kind, bench.stand.upgrades.get(former.revision, ())))


CLAIMS = (
    claim(a_new_revision_writes_nothing),
    claim(a_new_revision_writes_nothing_to_the_least_that_a_spec_can_say),
    claim(an_upgrade_that_finds_no_cookie_writes_nothing),
    claim(a_cookie_more_or_less_writes_nothing),
    claim(what_is_left_to_the_service_stays_so_after_an_upgrade),
    claim(what_drifted_is_put_back_by_either_and_told_beforehand),
    claim(whatever_it_was_done_like_before_writes_only_what_is_declared),
)

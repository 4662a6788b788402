"""How a contest ends: by quiet, by the author, by whoever gives in; and who may put the field back before its time."""

from setpoint.core.schema.policy import UNMANAGED
from setpoint.engine.context import MANAGEMENT
from setpoint.engine.state import RECONCILE_HANDLED, RECONCILE_REQUESTED
from tests.engine.bench import Bench
from tests.engine.claim import claim
from tests.engine.lifecycle_keeping import UP_TO_DATE
from tests.engine.meddling import HOUR, contested, counts, meddle, ready_now, updates


async def quiet_forgets(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=3)
    bench.clock.seconds += 6 * HOUR - 2
    await bench.step()
    late = await contested(bench)
    bench.clock.seconds += 1

    await bench.step()

    assert late is not None
    assert await bench.ready() == UP_TO_DATE
    assert await counts(bench) == []
    assert updates(bench) == 3


async def after_the_quiet_it_is_put_back_at_once(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=3)
    bench.clock.seconds += 6 * HOUR

    await meddle(bench)

    assert bench.stand.value == bench.stand.field.first
    assert await bench.ready() == UP_TO_DATE


async def whoever_gives_in_is_taken_at_their_word(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=4)
    bench.stand.edit(bench.stand.field.member, bench.stand.field.first)

    await bench.step()

    assert await ready_now(bench) == UP_TO_DATE
    assert "was put back 3 times" in (await contested(bench) or "")
    assert updates(bench) == 3


async def an_edit_of_the_author_ends_it(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=4)
    await bench.change()

    await bench.go_on()

    assert bench.stand.value == bench.stand.field.then
    assert await bench.ready() == UP_TO_DATE


async def leaving_the_field_to_others_ends_it(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=4)

    await bench.settle(annotations={UNMANAGED: bench.stand.field.path})

    assert bench.stand.value == bench.stand.field.drifted
    assert await bench.ready() == UP_TO_DATE
    assert updates(bench) == 3


async def taking_over_their_value_ends_it(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=4)

    await bench.settle(bench.stand.spec(bench.stand.field.drifted))

    assert await bench.ready() == UP_TO_DATE
    assert updates(bench) == 3


async def whoever_asks_has_it_put_back_at_once(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=4)

    await bench.go_on(requested=True)

    assert bench.stand.value == bench.stand.field.first
    assert await ready_now(bench) == UP_TO_DATE
    assert "was put back 4 times" in (await contested(bench) or "")


async def a_request_for_a_look_puts_it_back_at_once(bench: Bench) -> None:
    await bench.settle()
    await meddle(bench, times=4)
    await bench.apply(annotations={RECONCILE_REQUESTED: "now"})

    await bench.go_on()

    assert bench.stand.value == bench.stand.field.first
    assert (await bench.resource()).status[RECONCILE_HANDLED] == "now"


async def what_is_only_observed_is_not_contested(bench: Bench) -> None:
    for word, reason in (("observe", "Observed"), ("paused", "Paused")):
        await bench.settle()
        await meddle(bench, times=4)
        await bench.apply(annotations={MANAGEMENT: word})

        await bench.step()

        assert (await bench.ready())[1] == reason
        assert bench.stand.value == bench.stand.field.drifted


CLAIMS = (
    claim(quiet_forgets),
    claim(after_the_quiet_it_is_put_back_at_once),
    claim(whoever_gives_in_is_taken_at_their_word),
    claim(an_edit_of_the_author_ends_it),
    claim(leaving_the_field_to_others_ends_it),
    claim(taking_over_their_value_ends_it),
    claim(whoever_asks_has_it_put_back_at_once),
    claim(a_request_for_a_look_puts_it_back_at_once),
    claim(what_is_only_observed_is_not_contested),
)

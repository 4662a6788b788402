"""The keys of a work queue that were scheduled anew, for a reader that shows when each is due."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from setpoint.errors import RemoteUnavailable
from setpoint.runtime.workqueue.scheduling import Priority
from tests.runtime.test_workqueue import Queue, play, take

DRIFT, RESYNC = Priority.DRIFT, Priority.RESYNC


def test_the_first_reader_of_what_was_scheduled_gets_all_and_then_what_changed() -> None:
    async def scenario(queue: Queue) -> None:
        for key in "ab":
            queue.schedule(key, 60.0, RESYNC, "resync")
        first = sorted(queue.take_rescheduled())
        queue.schedule("a", 30.0, RESYNC, "resync")
        queue.retry("c", RemoteUnavailable("down"), DRIFT, "retry")

        assert (first, sorted(queue.take_rescheduled())) == (["a", "b"], ["a", "c"])
        assert list(queue.take_rescheduled()) == []

    play(scenario)


def test_a_key_whose_add_came_due_counts_as_changed_once_nothing_follows() -> None:
    async def scenario(queue: Queue) -> None:
        queue.schedule("a", 30.0, RESYNC, "resync")
        queue.take_rescheduled()
        await take(queue, 1)
        queue.forget("a")

        assert list(queue.take_rescheduled()) == ["a"]
        assert queue.seconds_until("a") is None

    play(scenario)


@given(
    before=st.lists(st.tuples(st.sampled_from("abcd"), st.floats(1, 90))),
    adds=st.lists(st.tuples(st.sampled_from("abcd"), st.floats(40, 90))),
    later=st.floats(-30, 30),
)
def test_many_adds_at_once_are_those_adds_one_by_one(
    before: list[tuple[str, float]], adds: list[tuple[str, float]], later: float
) -> None:
    found = []

    async def scenario(queue: Queue, *, at_once: bool) -> None:
        for key, seconds in before:
            queue.schedule(key, seconds, RESYNC, "resync")
        queue.take_rescheduled()
        if at_once:
            queue.schedule_all(adds, later, RESYNC, "resync")
        else:
            for key, seconds in adds:
                queue.schedule(key, max(0.0, seconds + later), RESYNC, "resync")
        found.append((sorted(queue.take_rescheduled()), [queue.seconds_until(key) for key in "abcd"]))

    play(partial(scenario, at_once=True))
    play(partial(scenario, at_once=False))

    assert found[0] == found[1]

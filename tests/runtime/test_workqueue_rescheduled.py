"""The keys of a work queue that were scheduled anew, for a reader that shows when each is due."""

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

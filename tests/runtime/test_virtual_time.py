"""Virtual time: exact, immediate, and standing still while a thread is at work."""

import asyncio
import hashlib
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.stores.sqlite.store import open_sqlite
from tests.runtime import virtual_time
from tests.runtime.virtual_time import Deadlock, VirtualClock, outside, run
from tests.stores.samples import instance

DAY = 24 * 3600


def toil() -> None:
    """Takes some milliseconds of real time, and lets other threads go on meanwhile."""
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 20_000)


class Worker:
    """Something that is answered by a thread of which the loop knows nothing."""

    def __init__(self) -> None:
        self.answers = 0

    async def work(self) -> int:
        loop = asyncio.get_running_loop()
        answered = asyncio.Event()

        def serve() -> None:
            toil()
            loop.call_soon_threadsafe(answered.set)

        threading.Thread(target=serve, daemon=True).start()
        await answered.wait()
        self.answers += 1
        return self.answers


def test_a_year_passes_in_no_time() -> None:
    async def scenario() -> tuple[float, str]:
        await asyncio.sleep(365 * DAY)
        return asyncio.get_running_loop().time(), VirtualClock().now()

    assert run(scenario()) == (365 * DAY, "2027-01-01T00:00:00Z")


def test_the_clock_starts_at_zero_and_shows_whole_seconds() -> None:
    async def scenario() -> list[object]:
        clock = VirtualClock()
        shown: list[object] = [clock.monotonic(), clock.now()]
        await clock.sleep(1.75)
        return [*shown, clock.monotonic(), clock.now()]

    assert run(scenario()) == [0.0, "2026-01-01T00:00:00Z", 1.75, "2026-01-01T00:00:01Z"]


def test_time_stands_still_while_something_is_ready() -> None:
    async def scenario() -> float:
        for _ in range(1_000):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert run(scenario()) == 0.0


@given(st.lists(st.floats(min_value=0, max_value=1e9), min_size=1, max_size=20))
def test_sleepers_wake_in_order_and_not_a_step_of_a_float_early(naps: list[float]) -> None:
    async def sleep(seconds: float, woken: list[tuple[float, float]]) -> None:
        await asyncio.sleep(seconds)
        woken.append((seconds, asyncio.get_running_loop().time()))

    async def scenario() -> list[tuple[float, float]]:
        woken: list[tuple[float, float]] = []
        await asyncio.gather(*(sleep(nap, woken) for nap in naps))
        return woken

    assert run(scenario()) == [(nap, nap) for nap in sorted(naps)]


def test_a_timeout_is_virtual_too() -> None:
    async def scenario() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run(scenario()) == 3600.0


def test_a_timer_that_was_cancelled_moves_no_time() -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        loop.call_later(5, lambda: None).cancel()
        await asyncio.sleep(10)
        loop.call_later(100, lambda: None).cancel()
        await asyncio.sleep(0)
        return loop.time()

    assert run(scenario()) == 10.0


def test_a_deadlock_names_who_waits_and_where() -> None:
    async def wait_in_vain() -> None:
        await asyncio.Event().wait()

    async def scenario() -> None:
        await asyncio.sleep(7)
        await asyncio.create_task(wait_in_vain(), name="the one who waits")

    with pytest.raises(Deadlock) as caught:
        run(scenario())

    text = str(caught.value)
    assert "nothing is ready and no timer is set, at 7 virtual seconds:" in text
    assert "the one who waits waits at test_a_deadlock_names_who_waits_and_where.<locals>.wait_in_vain:" in text
    assert " > Event.wait:" in text


def test_the_clock_refuses_a_loop_of_real_time() -> None:
    async def scenario() -> None:
        VirtualClock().monotonic()

    with pytest.raises(RuntimeError, match=r"start it with tests\.runtime\.virtual_time\.run"):
        asyncio.run(scenario())


def test_no_time_passes_while_an_executor_is_at_work() -> None:
    async def scenario() -> float:
        ticking = asyncio.create_task(asyncio.sleep(1))
        await asyncio.to_thread(toil)
        now = asyncio.get_running_loop().time()
        await ticking
        return now

    assert run(scenario()) == 0.0


def test_no_time_passes_while_something_outside_is_at_work() -> None:
    async def scenario() -> tuple[int, float]:
        ticking = asyncio.create_task(asyncio.sleep(1))
        answer = await outside(Worker()).work()
        now = asyncio.get_running_loop().time()
        await ticking
        return answer, now

    assert run(scenario()) == (1, 0.0)


def test_no_time_passes_until_a_thread_has_answered_even_him_who_gave_up() -> None:
    async def scenario() -> tuple[int, float]:
        worker = Worker()
        impatient = asyncio.create_task(outside(worker).work())
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.sleep(1)
        return worker.answers, asyncio.get_running_loop().time()

    assert run(scenario()) == (1, 1.0)


def test_a_failure_outside_is_the_caller_s() -> None:
    class Failing:
        async def work(self) -> None:
            raise LookupError("not there")

    async def scenario() -> None:
        with pytest.raises(LookupError, match="not there"):
            await outside(Failing()).work()

    run(scenario())


def test_without_a_timer_a_thread_is_given_real_time() -> None:
    async def scenario() -> float:
        await Worker().work()
        return asyncio.get_running_loop().time()

    assert run(scenario()) == 0.0


def test_a_thread_that_never_answers_is_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        async def work(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(virtual_time, "PATIENCE", 0.02)

    with pytest.raises(Deadlock, match=r"no thread answered within 0\.02 real seconds, at 0 virtual seconds:"):
        run(outside(Silent()).work())


def test_a_store_with_a_thread_of_its_own_is_quick_in_virtual_time(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[str], float]:
        clock = VirtualClock()
        store = outside(await open_sqlite(tmp_path / "state.db", clock, lambda: "uid"))
        ticking = asyncio.create_task(clock.sleep(3 * DAY))
        names = [(await store.apply(instance(name))).ref.name for name in ("a", "b", "c")]
        now = clock.monotonic()
        await ticking
        await store.close()
        return names, now

    assert run(scenario()) == (["a", "b", "c"], 0.0)


def test_a_watch_of_such_a_store_hears_of_what_is_written(tmp_path: Path) -> None:
    async def scenario() -> tuple[str, float]:
        clock = VirtualClock()
        store = outside(await open_sqlite(tmp_path / "state.db", clock, lambda: "uid"))
        events = store.watch((await store.list()).revision)
        heard = asyncio.ensure_future(anext(events))
        await clock.sleep(60)
        await store.apply(instance("a"))
        event = await heard
        await store.close()
        return event.resource.ref.name, clock.monotonic()

    assert run(scenario()) == ("a", 60.0)

"""Virtual time: exact, immediate, and stopped while a thread works."""

import asyncio
import hashlib
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.stores.sqlite.store import open_sqlite
from simulation import virtual_time
from simulation.virtual_time import Deadlock, VirtualClock, run, threaded
from tests.stores.samples import instance

DAY = 24 * 3600


def work_in_real_time() -> None:
    """Takes some milliseconds of real time, without the interpreter lock."""
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 20_000)


class Worker:
    """Calls that are answered by a thread which the loop does not know."""

    def __init__(self) -> None:
        self.answers = 0

    async def work(self) -> int:
        loop = asyncio.get_running_loop()
        answered = asyncio.Event()

        def serve() -> None:
            work_in_real_time()
            loop.call_soon_threadsafe(answered.set)

        threading.Thread(target=serve, daemon=True).start()
        await answered.wait()
        self.answers += 1
        return self.answers


def test_a_sleep_of_a_year_takes_no_real_time() -> None:
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


def test_no_time_passes_while_a_callback_is_ready() -> None:
    async def scenario() -> float:
        for _ in range(1_000):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert run(scenario()) == 0.0


@given(st.lists(st.floats(min_value=0, max_value=1e9), min_size=1, max_size=20))
def test_timers_fire_in_order_and_never_early(naps: list[float]) -> None:
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


def test_a_cancelled_timer_does_not_advance_the_time() -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        loop.call_later(5, lambda: None).cancel()
        await asyncio.sleep(10)
        loop.call_later(100, lambda: None).cancel()
        await asyncio.sleep(0)
        return loop.time()

    assert run(scenario()) == 10.0


def test_a_deadlock_names_the_waiting_tasks_and_where_they_wait() -> None:
    async def wait_in_vain() -> None:
        await asyncio.Event().wait()

    async def scenario() -> None:
        await asyncio.sleep(7)
        await asyncio.create_task(wait_in_vain(), name="waiting-task")

    with pytest.raises(Deadlock) as caught:
        run(scenario())

    text = str(caught.value)
    assert "nothing is ready and no timer is set, at 7 virtual seconds:" in text
    assert (
        "waiting-task waits at test_a_deadlock_names_the_waiting_tasks_and_where_they_wait.<locals>.wait_in_vain:"
        in text
    )
    assert " > Event.wait:" in text


def test_the_virtual_clock_rejects_another_event_loop() -> None:
    async def scenario() -> None:
        VirtualClock().monotonic()

    with pytest.raises(RuntimeError, match=r"start it with simulation\.virtual_time\.run"):
        asyncio.run(scenario())


def test_no_time_passes_while_an_executor_runs() -> None:
    async def scenario() -> float:
        ticking = asyncio.create_task(asyncio.sleep(1))
        await asyncio.to_thread(work_in_real_time)
        now = asyncio.get_running_loop().time()
        await ticking
        return now

    assert run(scenario()) == 0.0


def test_no_time_passes_during_a_call_that_a_thread_answers() -> None:
    async def scenario() -> tuple[int, float]:
        ticking = asyncio.create_task(asyncio.sleep(1))
        answer = await threaded(Worker()).work()
        now = asyncio.get_running_loop().time()
        await ticking
        return answer, now

    assert run(scenario()) == (1, 0.0)


def test_no_time_passes_until_a_thread_has_answered_a_cancelled_call() -> None:
    async def scenario() -> tuple[int, float]:
        worker = Worker()
        cancelled_call = asyncio.create_task(threaded(worker).work())
        await asyncio.sleep(0)
        cancelled_call.cancel()
        await asyncio.sleep(1)
        return worker.answers, asyncio.get_running_loop().time()

    assert run(scenario()) == (1, 1.0)


def test_an_error_of_a_threaded_call_is_raised_to_the_caller() -> None:
    class Failing:
        async def work(self) -> None:
            raise LookupError("not there")

    async def scenario() -> None:
        with pytest.raises(LookupError, match="not there"):
            await threaded(Failing()).work()

    run(scenario())


def test_without_a_timer_the_loop_waits_for_a_thread() -> None:
    async def scenario() -> float:
        await Worker().work()
        return asyncio.get_running_loop().time()

    assert run(scenario()) == 0.0


def test_a_thread_that_never_answers_is_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        async def work(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(virtual_time, "THREAD_TIMEOUT_SECONDS", 0.02)

    with pytest.raises(Deadlock, match=r"no thread answered within 0\.02 real seconds, at 0 virtual seconds:"):
        run(threaded(Silent()).work())


def test_calls_of_a_store_with_a_thread_take_no_virtual_time(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[str], float]:
        clock = VirtualClock()
        store = threaded(await open_sqlite(tmp_path / "state.db", clock, lambda: "uid"))
        ticking = asyncio.create_task(clock.sleep(3 * DAY))
        names = [(await store.apply(instance(name))).ref.name for name in ("a", "b", "c")]
        now = clock.monotonic()
        await ticking
        await store.close()
        return names, now

    assert run(scenario()) == (["a", "b", "c"], 0.0)


def test_a_watch_of_a_store_with_a_thread_sees_its_writes(tmp_path: Path) -> None:
    async def scenario() -> tuple[str, float]:
        clock = VirtualClock()
        store = threaded(await open_sqlite(tmp_path / "state.db", clock, lambda: "uid"))
        events = store.watch((await store.list()).revision)
        next_event = asyncio.ensure_future(anext(events))
        await clock.sleep(60)
        await store.apply(instance("a"))
        event = await next_event
        await store.close()
        return event.resource.ref.name, clock.monotonic()

    assert run(scenario()) == ("a", 60.0)

"""The tests above virtual time can be trusted: a process that is stopped does nothing, and notices everything later."""

import asyncio

from simulation.virtual_time import VirtualClock
from tests.runtime.pausable_loop import pausable_loop, run_pausable, start_process


def test_a_paused_process_runs_nothing_and_on_resume_everything_that_was_due() -> None:
    seen: list[tuple[str, float]] = []
    clock = VirtualClock()

    async def tick(name: str) -> None:
        async def second() -> None:
            await clock.sleep(2.5)
            seen.append((f"{name} child", clock.monotonic()))

        child = asyncio.create_task(second())
        for _ in range(5):
            await clock.sleep(1)
            seen.append((name, clock.monotonic()))
        await child

    async def main() -> None:
        tasks = [start_process(name, tick(name)) for name in ("a", "b")]
        await clock.sleep(1.5)
        pausable_loop().pause("a")
        await clock.sleep(60)
        pausable_loop().resume("a")
        await asyncio.gather(*tasks)

    run_pausable(main())

    assert [at for name, at in seen if name == "b"] == [1, 2, 3, 4, 5]
    assert [at for name, at in seen if name == "a"] == [1, 61.5, 62.5, 63.5, 64.5]
    assert [at for name, at in seen if name.endswith("child")] == [2.5, 61.5]


def test_on_resume_an_answer_is_delivered_before_a_timeout_that_came_after_it() -> None:
    clock, seen = VirtualClock(), list[str]()

    async def wait(answer: asyncio.Future[str]) -> None:
        try:
            async with asyncio.timeout(10):
                seen.append(await answer)
        except TimeoutError:
            seen.append("too late")

    async def main() -> None:
        answers = [asyncio.get_running_loop().create_future() for _ in range(2)]
        tasks = [start_process("a", wait(answer)) for answer in answers]
        await clock.sleep(1)
        pausable_loop().pause("a")
        answers[0].set_result("an answer")
        await clock.sleep(60)
        pausable_loop().resume("a")
        await asyncio.gather(*tasks)

    run_pausable(main())

    assert seen == ["an answer", "too late"]


def test_a_cancelled_paused_process_ends_on_resume() -> None:
    clock = VirtualClock()

    async def main() -> bool:
        task = start_process("a", clock.sleep(10**9))
        await clock.sleep(1)
        pausable_loop().pause("a")
        task.cancel()
        await clock.sleep(1)
        was_done = task.done()
        pausable_loop().resume("a")
        await asyncio.gather(task, return_exceptions=True)
        return was_done

    assert run_pausable(main()) is False

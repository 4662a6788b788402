"""Something happens right after one of the awaits of a step: the process dies, or another writer acts."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from tests.engine.kind_fixture import Trouble
from tests.engine.settings import Setting
from tests.engine.step_harness import StepHarness

# No step has more awaits than this.
ENOUGH = 100


def after_any_await(happens_after: Callable[[int], Coroutine[Any, Any, bool]], *, least: int) -> None:
    """Lets it happen after the first await, the second and so on, until a step has no more; `least` it has at least."""
    for awaits in range(1, ENOUGH):
        if not asyncio.run(happens_after(awaits)):
            assert awaits > least
            return
    pytest.fail("a step never ended")


class Killed(BaseException):
    """kill -9, as far as a test can: nothing catches it."""


async def die() -> None:
    """The process is gone."""
    raise Killed


@dataclass(slots=True)
class Interruption:
    """Runs `happening` once, when so many awaits of whatever is wrapped are over."""

    after: int
    happening: Callable[[], Awaitable[None]]

    @property
    def has_happened(self) -> bool:
        """Whether there were that many awaits."""
        return self.after <= 0

    def wrap(self, inner: Any) -> Any:
        """`inner`, with a tick after every await of it."""
        return _Watched(inner, self)

    async def tick(self) -> None:
        """One more await is over."""
        self.after -= 1
        if self.after == 0:
            await self.happening()


class _Watched:
    def __init__(self, inner: Any, interruption: Interruption) -> None:
        self._inner = inner
        self._interruption = interruption

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def watched(*arguments: Any, **named: Any) -> Any:
            answer = await found(*arguments, **named)
            await self._interruption.tick()
            return answer

        return watched


class Side(StrEnum):
    """The store or the service: what a step calls."""

    STORE = "the store"
    SERVICE = "the service"


def interrupted(harness: StepHarness, interruption: Interruption, sides: Collection[Side] = tuple(Side)) -> StepHarness:
    """The same harness, with its store, its kind and the client of the kind wrapped."""
    store = interruption.wrap(harness.store) if Side.STORE in sides else harness.store
    kind = harness.fixture.kind_over(interruption.wrap) if Side.SERVICE in sides else None
    return replace(harness, store=store, kind=kind)


class Doing(StrEnum):
    """What the step does when it is interrupted."""

    CREATING = "creating"
    UPDATING = "updating"
    DELETING = "deleting"
    # The service refuses the write, once.
    FAILING = "failing"
    HANDING_OVER = "handing over a secret"
    REVERTING = "reverting drift"


class Pace(StrEnum):
    """Whether the service answers with long-running operations."""

    AT_ONCE = "at once"
    SLOWLY = "slowly"


async def begin(doing: Doing, harness: StepHarness) -> None:
    """Everything up to the step that is to be interrupted."""
    match doing:
        case Doing.CREATING:
            await harness.apply()
        case Doing.UPDATING:
            await harness.settle()
            await harness.change()
        case Doing.DELETING:
            await harness.settle()
            await harness.delete()
        case Doing.FAILING:
            await harness.settle()
            await harness.change()
            harness.fixture.trouble(Trouble.REFUSED, ["update"], times=1)
        case Doing.HANDING_OVER:
            await harness.secret({"password": "first"})
            await harness.apply(harness.fixture.with_secret)
        case Doing.REVERTING:
            await harness.settle()
            harness.fixture.drift()


@asynccontextmanager
async def begun(setting: Setting, doing: Doing, folder: Path) -> AsyncIterator[StepHarness]:
    """A new world in which the step that is to be interrupted comes next."""
    folder.mkdir()
    async with setting.harness(folder) as harness:
        await begin(doing, harness)
        yield harness


async def killed_after(awaits: int, harness: StepHarness) -> bool:
    """Whether the process was killed after that many awaits, and restarted; False when it ended with fewer."""
    try:
        await interrupted(harness, Interruption(awaits, die)).go_on()
    except Killed:
        await harness.restart()
        return True
    return False

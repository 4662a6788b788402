"""Something happens right after one of the awaits of a step: the process dies, or another writer acts."""

import inspect
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.testing.faults import CallFault
from setpoint.testing.harness import ContractHarness

# No step has more awaits than this.
ENOUGH: Final = 100


async def after_any_await(happens_after: Callable[[int], Awaitable[bool]], *, least: int) -> None:
    """Lets it happen after the first await, the second and so on, until a step has no more; `least` it has at least."""
    for awaits in range(1, ENOUGH):
        if not await happens_after(awaits):
            assert awaits > least, f"a step has {awaits - 1} awaits: are the store and the client of the kind wrapped?"
            return
    raise AssertionError(f"a step never ended: it has more than {ENOUGH} awaits")


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


class StepSide(StrEnum):
    """The store or the service: what a step calls."""

    STORE = "the store"
    SERVICE = "the service"


def interrupted(
    harness: ContractHarness, interruption: Interruption, sides: Collection[StepSide] = tuple(StepSide)
) -> ContractHarness:
    """The same harness, with its store, its kind and the client of the kind wrapped."""
    store = interruption.wrap(harness.store) if StepSide.STORE in sides else harness.store
    kind = harness.fixture.kind_over(interruption.wrap) if StepSide.SERVICE in sides else None
    return replace(harness, store=store, kind=kind)


class Undertaking(StrEnum):
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


async def begin(undertaking: Undertaking, harness: ContractHarness) -> None:
    """Everything up to the step that is to be interrupted."""
    match undertaking:
        case Undertaking.CREATING:
            await harness.apply()
        case Undertaking.UPDATING:
            await harness.settle()
            await harness.change()
        case Undertaking.DELETING:
            await harness.settle()
            await harness.delete()
        case Undertaking.FAILING:
            await harness.settle()
            await harness.change()
            await harness.fail_next_calls(CallFault.REFUSED, ["update"], times=1)
        case Undertaking.HANDING_OVER:
            await harness.secret({"password": "first"})
            await harness.apply(harness.fixture.with_secret)
        case Undertaking.REVERTING:
            await harness.settle()
            await harness.drift()


async def killed_after(awaits: int, harness: ContractHarness) -> bool:
    """Whether the process was killed after that many awaits, and restarted; False when it ended with fewer."""
    try:
        await interrupted(harness, Interruption(awaits, die)).go_on()
    except Killed:
        await harness.restart()
        return True
    return False

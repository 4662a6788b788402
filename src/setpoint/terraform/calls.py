"""A call from Terraform while it is answered: what it told so far, what is to be kept, and whether it is to end."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import msgspec

from setpoint.terraform.cty_values import Values
from setpoint.terraform.diagnostics import Diagnostic, Interrupted

T = TypeVar("T")

# How long a call that was asked to end may take to do so by itself.
GRACE_S: Final = 5.0


class Stored(msgspec.Struct, frozen=True):
    """What Terraform keeps of a resource: its attributes, and bytes that only the provider reads."""

    state: Values
    private: bytes = b""


class Call:
    """What a method of a provider gets besides its request."""

    def __init__(self, grace_s: float = GRACE_S) -> None:
        self.told: list[Diagnostic] = []
        self._grace_s = grace_s
        self._keep: Callable[[Stored], None] = _forget
        self._stop = asyncio.Event()
        self._is_cut = False

    def tell(self, diagnostic: Diagnostic) -> None:
        """Shows something to the user, whatever comes of the call."""
        self.told.append(diagnostic)

    def keep(self, stored: Stored) -> None:
        """From now on the resource is kept like this in the state, even if the rest of `create` or `update` fails.

        What is not known yet is kept as null.
        """
        self._keep(stored)

    def when_kept(self, keep: Callable[[Stored], None]) -> None:
        """`keep` hears of everything that is to be kept from now on."""
        self._keep = keep

    @property
    def is_stopping(self) -> bool:
        """Whether the call is to end soon."""
        return self._stop.is_set()

    async def sleep(self, seconds: float) -> None:
        """Waits; Interrupted as soon as the call is to end."""
        await self.unless_stopped(asyncio.sleep(seconds))

    async def unless_stopped(self, waited: Awaitable[T]) -> T:
        """What `waited` gives; Interrupted, and `waited` cancelled, as soon as the call is to end."""
        work, stop = asyncio.ensure_future(waited), asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            work.cancel()
            await asyncio.wait((work,))
            raise Interrupted
        finally:
            work.cancel()
            stop.cancel()

    def stop(self) -> None:
        """Asks the call to end, and cuts it off when it does not."""
        self._stop.set()

    async def bounded(self, work: Awaitable[T]) -> T:
        """What `work` gives; Interrupted when it had to be cut off."""
        task = asyncio.current_task()
        cutting = asyncio.ensure_future(self._cut(task))
        try:
            return await work
        except asyncio.CancelledError:
            if task is None or not self._is_cut:
                raise
            task.uncancel()
            raise Interrupted from None
        finally:
            cutting.cancel()

    async def _cut(self, task: "asyncio.Task[object] | None") -> None:
        await self._stop.wait()
        await asyncio.sleep(self._grace_s)
        if task is not None:
            self._is_cut = True
            task.cancel()


def _forget(stored: Stored) -> None:
    """Nothing is stored by this call."""


class Calls:
    """The calls that are under way. Stopping ends those, and not the ones that come later."""

    def __init__(self, grace_s: float = GRACE_S) -> None:
        self._grace_s = grace_s
        self._under_way: set[Call] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_over = False

    @contextmanager
    def one(self) -> Iterator[Call]:
        """A call, for as long as it is answered."""
        call = Call(self._grace_s)
        if self._is_over:
            call.stop()
        self._under_way.add(call)
        self._idle.clear()
        try:
            yield call
        finally:
            self._under_way.discard(call)
            if not self._under_way:
                self._idle.set()

    def stop(self) -> None:
        """Asks every call to end."""
        for call in self._under_way:
            call.stop()

    async def end(self) -> None:
        """Asks every call to end, later ones too, and waits for those under way."""
        self._is_over = True
        self.stop()
        await self._idle.wait()

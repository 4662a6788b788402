"""The context of a call to a provider: its diagnostics, the state to save if it fails, and its cancellation."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import msgspec

from setpoint.terraform.cty.values import AttributeValues
from setpoint.terraform.framework.diagnostics import Diagnostic, Interrupted

T = TypeVar("T")

# How long a call that was asked to end may take to do so by itself.
STOP_GRACE_S: Final = 5.0


class InstanceState(msgspec.Struct, frozen=True):
    """What Terraform keeps of a resource: its attributes, and bytes that only the provider reads."""

    state: AttributeValues
    private: bytes = b""


class CallContext:
    """What a method of a provider gets besides its request."""

    def __init__(self, grace_s: float = STOP_GRACE_S) -> None:
        self.told: list[Diagnostic] = []
        self._grace_s = grace_s
        self._keep: Callable[[InstanceState], None] = _ignore_state
        self._stop = asyncio.Event()
        self._is_cut = False

    def tell(self, diagnostic: Diagnostic) -> None:
        """Shows something to the user, whatever comes of the call."""
        self.told.append(diagnostic)

    def keep(self, stored: InstanceState) -> None:
        """From now on the resource is kept like this in the state, even if the rest of `create` or `update` fails.

        What is not known yet is kept as null.
        """
        self._keep(stored)

    def on_partial_state(self, keep: Callable[[InstanceState], None]) -> None:
        """`keep` hears of everything that is to be kept from now on."""
        self._keep = keep

    @property
    def is_stopping(self) -> bool:
        """Whether the call is to end soon."""
        return self._stop.is_set()

    async def sleep(self, seconds: float) -> None:
        """Waits; Interrupted as soon as the call is to end."""
        await self.until_stopped(asyncio.sleep(seconds))

    async def until_stopped(self, waited: Awaitable[T]) -> T:
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

    async def run_with_grace(self, work: Awaitable[T]) -> T:
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


def _ignore_state(stored: InstanceState) -> None:
    """Nothing is stored by this call."""


class ActiveCalls:
    """The calls that are under way. Stopping ends those, and not the ones that come later."""

    def __init__(self, grace_s: float = STOP_GRACE_S) -> None:
        self._grace_s = grace_s
        self._under_way: set[CallContext] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_over = False

    @contextmanager
    def one(self) -> Iterator[CallContext]:
        """A call, for as long as it is answered."""
        call = CallContext(self._grace_s)
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

"""The context of a call to a provider: its diagnostics, the state to save if it fails, and its cancellation."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import msgspec

from setpoint.terraform.cty.values import AttributeValues
from setpoint.terraform.framework.diagnostics import Diagnostic, Interrupted

T = TypeVar("T")

# How long a stopped call may take to end by itself, before it is cancelled.
STOP_GRACE_S: Final = 5.0


class InstanceState(msgspec.Struct, frozen=True):
    """What Terraform stores of a resource: its attributes, and private bytes that only the provider reads."""

    state: AttributeValues
    private: bytes = b""


class CallContext:
    """The call that a method of a provider answers: collects diagnostics, saves partial state, signals a stop."""

    def __init__(self, grace_s: float = STOP_GRACE_S) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._grace_s = grace_s
        self._save: Callable[[InstanceState], None] = _ignore_state
        self._stop = asyncio.Event()
        self._is_cancelled = False

    def add_diagnostic(self, diagnostic: Diagnostic) -> None:
        """Shows a diagnostic to the user, whether the call succeeds or fails."""
        self.diagnostics.append(diagnostic)

    def save_state(self, state: InstanceState) -> None:
        """Stores this state even if the rest of `create` or `update` fails. Unknown values are stored as null."""
        self._save(state)

    def on_partial_state(self, save: Callable[[InstanceState], None]) -> None:
        """`save` is called with each state that is saved from now on."""
        self._save = save

    async def sleep(self, seconds: float) -> None:
        """Waits; raises Interrupted as soon as the call is stopped."""
        await self.until_stopped(asyncio.sleep(seconds))

    async def until_stopped(self, awaitable: Awaitable[T]) -> T:
        """The result of `awaitable`. As soon as the call is stopped it is cancelled, and Interrupted raised."""
        work, stop = asyncio.ensure_future(awaitable), asyncio.ensure_future(self._stop.wait())
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
        """Asks the call to end; `run_with_grace` cancels it after the grace period."""
        self._stop.set()

    async def run_with_grace(self, work: Awaitable[T]) -> T:
        """The result of `work`; Interrupted when it was stopped and cancelled after the grace period."""
        task = asyncio.current_task()
        cancelling = asyncio.ensure_future(self._cancel_after_stop(task))
        try:
            return await work
        except asyncio.CancelledError:
            if task is None or not self._is_cancelled:
                raise
            task.uncancel()
            raise Interrupted from None
        finally:
            cancelling.cancel()

    async def _cancel_after_stop(self, task: "asyncio.Task[object] | None") -> None:
        await self._stop.wait()
        await asyncio.sleep(self._grace_s)
        if task is not None:
            self._is_cancelled = True
            task.cancel()


def _ignore_state(state: InstanceState) -> None:
    """For calls that store nothing."""


class ActiveCalls:
    """The calls in progress. `stop` ends those, and not later ones."""

    def __init__(self, grace_s: float = STOP_GRACE_S) -> None:
        self._grace_s = grace_s
        self._active: set[CallContext] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_draining = False

    @contextmanager
    def begin(self) -> Iterator[CallContext]:
        """A new call, active until it is answered."""
        call = CallContext(self._grace_s)
        if self._is_draining:
            call.stop()
        self._active.add(call)
        self._idle.clear()
        try:
            yield call
        finally:
            self._active.discard(call)
            if not self._active:
                self._idle.set()

    def stop(self) -> None:
        """Stops every active call."""
        for call in self._active:
            call.stop()

    async def drain(self) -> None:
        """Stops every call, later ones as well, and waits for the active ones."""
        self._is_draining = True
        self.stop()
        await self._idle.wait()

"""Operation queues: where a service executes one operation at a time, the steps of this process take turns.

A step enters the scope of its operation before it sends anything, and the resource holds it until the operation ends,
over as many steps as that takes. A step that finds the scope held ends at once, and occupies no worker: the resource is
queued, and reconciled when it is its turn. The deletion of what the scope is named after comes last: those that wait
belong to it, and are deleted before it. Other processes are not known here: against them a service still refuses an
operation, and the resource that holds the scope retries for all that wait.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import field
from typing import NewType, Protocol, runtime_checkable

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.capabilities import CapabilityMeta
from setpoint.engine.kind import Location
from setpoint.engine.ports import Clock
from setpoint.engine.resource import ResourceRef
from setpoint.errors import OperationQueued, OperationRunning, SetpointError, StillWaiting

# What operations exclude each other on, by its location: an instance, for the databases and users in it.
OperationScope = NewType("OperationScope", str)


@runtime_checkable
class SupportsOperationScope(Protocol, metaclass=CapabilityMeta):
    """A kind whose service executes one operation at a time on something that several objects belong to."""

    def operation_scope(self, location: Location) -> OperationScope:
        """The scope of every operation on the object at `location`: its own location, or that of its parent."""
        ...


@dataclass(slots=True)
class _Turns:
    """The holder of one scope, and who waits for it, in order."""

    holder: ResourceRef | None = None
    waiting: deque[ResourceRef] = field(default_factory=deque)


@dataclass(slots=True)
class OperationQueues:
    """The queues of one process. `wake` is called for a resource when it is its turn."""

    wake: Callable[[ResourceRef], None] | None = None
    _scopes: dict[OperationScope, _Turns] = field(default_factory=dict)
    # The scope that each resource holds or waits for.
    _entered: dict[ResourceRef, OperationScope] = field(default_factory=dict)
    # Of resources that a single command waits for.
    _is_due: dict[ResourceRef, asyncio.Event] = field(default_factory=dict)

    def enter(self, ref: ResourceRef, kind: object, location: Location, *, deleting: bool = False) -> None:
        """`ref` holds the scope of its operations from now on; OperationQueued while another resource holds it.

        `deleting`: the operation deletes the object at `location`. If others belong to that, they go first.
        """
        if not isinstance(kind, SupportsOperationScope):
            return
        scope = kind.operation_scope(location)
        if self._entered.get(ref, scope) != scope:
            self.leave(ref)
        turns, is_waiting = self._scopes.setdefault(scope, _Turns()), ref in self._entered
        if turns.holder == ref:
            return
        comes_last = deleting and str(scope) == str(location) and len(turns.waiting) > is_waiting
        if is_waiting and (turns.holder is None or comes_last):
            turns.waiting.remove(ref)
        if turns.holder is None and not comes_last:
            turns.holder, self._entered[ref] = ref, scope
            return
        if not is_waiting or comes_last:
            self._entered[ref] = scope
            turns.waiting.append(ref)
        if turns.holder is None:
            self._wake(turns.waiting[0])
        raise _queued(scope)

    def require_turn(self, ref: ResourceRef) -> None:
        """OperationQueued for a resource that waits in a queue, while another one holds the scope."""
        scope = self._entered.get(ref)
        if scope is not None and self._scopes[scope].holder not in (None, ref):
            raise _queued(scope)

    def resume(self, ref: ResourceRef, kind: object, location: Location) -> None:
        """`ref` has an operation of an earlier process under way: it holds the scope, unless another resource does."""
        if ref not in self._entered and isinstance(kind, SupportsOperationScope):
            turns = self._scopes.setdefault(kind.operation_scope(location), _Turns())
            if turns.holder is None:
                turns.holder, self._entered[ref] = ref, kind.operation_scope(location)

    def step_ended(self, ref: ResourceRef, error: SetpointError | None) -> None:
        """A step of `ref` has ended: with an operation under way or to be retried it stays where it is."""
        scope = self._entered.get(ref)
        if scope is None:
            return
        if not isinstance(error, OperationRunning) or isinstance(error, StillWaiting):
            self.leave(ref)
        elif self._scopes[scope].holder == ref:
            error.is_awaited = bool(self._scopes[scope].waiting)

    def leave(self, ref: ResourceRef) -> None:
        """`ref` neither holds a scope nor waits for one any more; the next resource takes its turn."""
        scope = self._entered.pop(ref, None)
        if scope is None:
            return
        turns = self._scopes[scope]
        if turns.holder == ref:
            turns.holder = None
        else:
            turns.waiting.remove(ref)
        if turns.holder is None and turns.waiting:
            self._wake(turns.waiting[0])
        elif turns.holder is None:
            del self._scopes[scope]

    async def wait_for_turn(self, ref: ResourceRef, seconds: float, clock: Clock) -> None:
        """Returns when it is the turn of `ref`, or after so many seconds."""
        due = self._is_due.setdefault(ref, asyncio.Event())
        timeout, turn = asyncio.ensure_future(clock.sleep(seconds)), asyncio.ensure_future(due.wait())
        try:
            await asyncio.wait((timeout, turn), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timeout.cancel()
            turn.cancel()
            self._is_due.pop(ref, None)

    def _wake(self, ref: ResourceRef) -> None:
        if self.wake is not None:
            self.wake(ref)
        if ref in self._is_due:
            self._is_due[ref].set()


def _queued(scope: OperationScope) -> OperationQueued:
    return OperationQueued(f"another operation on {scope} is under way, and this one waits for its turn")

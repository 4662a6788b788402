"""Operations that exclude each other take turns: one holder of a scope, in order, and no turn is missed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.contention.operation_queue import OperationQueues, OperationScope
from setpoint.engine.kind import Location
from setpoint.engine.requeue import FIRST_AWAITED_POLL, FIRST_POLL, QUEUED_SECONDS, RequeueDelays
from setpoint.engine.resource import ResourceRef
from setpoint.errors import OperationQueued, OperationRunning, RemoteUnavailable, StillWaiting
from tests.engine.gadgets import gadget_ref

NAMES = "abcdef"
SCOPES = "xy"


class InScopes:
    """A kind whose objects `x/a` belong to `x`."""

    def operation_scope(self, location: Location) -> OperationScope:
        return OperationScope(location.partition("/")[0])


KIND = InScopes()


def ref_of(name: str) -> ResourceRef:
    return gadget_ref(name)


def enter(queues: OperationQueues, name: str, scope: str = "x") -> bool:
    """Whether the operation may be sent."""
    try:
        queues.enter(ref_of(name), KIND, Location(f"{scope}/{name}"))
    except OperationQueued:
        return False
    return True


def delete_parent(queues: OperationQueues, name: str, scope: str = "x") -> bool:
    """Whether the object that the scope is named after may be deleted."""
    try:
        queues.enter(ref_of(name), KIND, Location(scope), deleting=True)
    except OperationQueued:
        return False
    return True


def running(queues: OperationQueues, name: str) -> OperationRunning:
    error = OperationRunning("operation o is running")
    queues.step_ended(ref_of(name), error)
    return error


def test_a_second_operation_is_queued_until_the_first_is_done() -> None:
    woken: list[ResourceRef] = []
    queues = OperationQueues(woken.append)

    assert enter(queues, "a")
    assert not enter(queues, "b")
    assert not enter(queues, "c")
    assert enter(queues, "d", "y")
    running(queues, "a")
    assert woken == []
    queues.step_ended(ref_of("a"), None)
    assert woken == [ref_of("b")]
    assert enter(queues, "b")


def test_what_an_object_contains_is_deleted_before_it() -> None:
    woken: list[ResourceRef] = []
    queues = OperationQueues(woken.append)
    assert enter(queues, "a")
    assert not delete_parent(queues, "parent")
    assert not enter(queues, "b")

    queues.step_ended(ref_of("a"), None)
    assert woken == [ref_of("parent")]
    assert not delete_parent(queues, "parent")
    assert woken == [ref_of("parent"), ref_of("b")]
    assert enter(queues, "b")
    queues.step_ended(ref_of("b"), None)

    assert woken[2:] == [ref_of("parent")]
    assert delete_parent(queues, "parent")


def test_an_update_of_the_object_itself_takes_its_turn_like_any_other() -> None:
    queues = OperationQueues()
    assert enter(queues, "a")
    with pytest.raises(OperationQueued):
        queues.enter(ref_of("parent"), KIND, Location("x"))
    assert not enter(queues, "b")
    queues.step_ended(ref_of("a"), None)

    queues.enter(ref_of("parent"), KIND, Location("x"))

    assert not enter(queues, "b")


def test_a_resource_that_waits_is_told_so_until_the_scope_is_free() -> None:
    queues = OperationQueues()
    assert enter(queues, "a")
    assert not enter(queues, "b")
    queues.require_turn(ref_of("a"))
    queues.require_turn(ref_of("c"))

    with pytest.raises(OperationQueued):
        queues.require_turn(ref_of("b"))

    queues.step_ended(ref_of("a"), None)
    queues.require_turn(ref_of("b"))


@pytest.mark.parametrize("error", [None, RemoteUnavailable("down"), StillWaiting("not ready")])
def test_a_step_without_an_operation_left_makes_room(error: Exception | None) -> None:
    queues = OperationQueues()
    assert enter(queues, "a")
    assert not enter(queues, "b")

    queues.step_ended(ref_of("a"), error)  # type: ignore[arg-type] # all of them are ours

    assert enter(queues, "b")


def test_an_operation_of_an_earlier_process_is_waited_for() -> None:
    queues = OperationQueues()

    queues.resume(ref_of("a"), KIND, Location("x/a"))

    assert not enter(queues, "b")


def test_a_kind_without_scopes_is_never_queued() -> None:
    queues = OperationQueues()

    for name in NAMES:
        queues.enter(ref_of(name), object(), Location(f"x/{name}"))


def test_an_operation_that_others_wait_for_is_polled_sooner() -> None:
    queues, delays = OperationQueues(), RequeueDelays()
    assert enter(queues, "a")

    assert delays.after(running(queues, "a")) >= FIRST_POLL / 2
    assert not enter(queues, "b")
    assert RequeueDelays().after(running(queues, "a")) <= FIRST_AWAITED_POLL
    assert delays.after(OperationQueued("its turn comes")) == QUEUED_SECONDS


class Turns:
    """The slow and obvious way: who holds each scope, and who waits for it."""

    def __init__(self) -> None:
        self.woken: set[ResourceRef] = set()
        self.queues = OperationQueues(self.woken.add)
        self.holders: dict[str, str] = {}
        self.waiting = {scope: list[str]() for scope in SCOPES}

    def enter(self, name: str, scope: str) -> None:
        if any(self.has_entered(name, other) for other in SCOPES if other != scope):
            self.leave(name)
        is_allowed = self.holders.get(scope, name) == name
        assert enter(self.queues, name, scope) == is_allowed
        if is_allowed:
            self.holders[scope] = name
            self.waiting[scope] = [one for one in self.waiting[scope] if one != name]
        elif name not in self.waiting[scope]:
            self.waiting[scope].append(name)

    def delete_parent(self, scope: str) -> None:
        """The parent of a scope is named like the scope."""
        others = [one for one in self.waiting[scope] if one != scope]
        is_allowed = self.holders.get(scope) == scope or (scope not in self.holders and not others)
        assert delete_parent(self.queues, scope, scope) == is_allowed
        if is_allowed:
            self.holders[scope], self.waiting[scope] = scope, others
        elif others:
            self.waiting[scope] = [*others, scope]
            assert scope in self.holders or ref_of(others[0]) in self.woken
        elif scope not in self.waiting[scope]:
            self.waiting[scope].append(scope)

    def has_entered(self, name: str, scope: str) -> bool:
        return self.holders.get(scope) == name or name in self.waiting[scope]

    def leave(self, name: str, *, is_step: bool = False) -> None:
        if is_step:
            self.queues.step_ended(ref_of(name), None)
        else:
            self.queues.leave(ref_of(name))
        for scope in [one for one in SCOPES if self.has_entered(name, one)]:
            self.waiting[scope] = [one for one in self.waiting[scope] if one != name]
            if self.holders.get(scope) == name:
                del self.holders[scope]
            if scope not in self.holders and self.waiting[scope]:
                assert ref_of(self.waiting[scope][0]) in self.woken


STEPS = st.tuples(
    st.sampled_from(["enter", "delete parent", "running", "done", "forget"]),
    st.sampled_from([*NAMES, *SCOPES]),
    st.sampled_from(SCOPES),
)


@pytest.mark.laws
@given(st.lists(STEPS, max_size=60))
def test_one_holds_a_scope_and_the_first_of_those_that_wait_is_woken_when_it_is_free(
    steps: list[tuple[str, str, str]],
) -> None:
    turns = Turns()
    for action, name, scope in steps:
        # A parent has operations on itself alone.
        scope = name if name in SCOPES else scope
        turns.woken.discard(ref_of(name))
        if action == "enter":
            turns.enter(name, scope)
        elif action == "delete parent":
            turns.delete_parent(scope)
        elif action == "running":
            running(turns.queues, name)
        else:
            turns.leave(name, is_step=action == "done")

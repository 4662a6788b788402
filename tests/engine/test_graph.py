"""The graph of dependencies: which resource waits for which."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.dependency_graph import deletion_order, predecessors, reconcile_order
from setpoint.engine.kind import Dependency, Reference, SecretKeyReference
from setpoint.engine.resource import ResourceRef
from setpoint.errors import DependencyCycle


def _ref(name: str) -> ResourceRef:
    return ResourceRef("g", "Gadget", "default", name)


A, B, C = _ref("a"), _ref("b"), _ref("c")
numbers = st.integers(0, 9)
pairs = st.lists(st.tuples(numbers, numbers))


def waits_for(*refs: ResourceRef) -> list[Dependency]:
    return [Reference(f"spec.{ref.name}Ref", ref) for ref in refs]


def names(*refs: ResourceRef) -> list[Dependency]:
    return [Reference(f"spec.{ref.name}Ref", ref, must_be_ready=False) for ref in refs]


def _graph(
    waiting: Iterable[tuple[int, int]], naming: Iterable[tuple[int, int]]
) -> dict[ResourceRef, list[Dependency]]:
    found: dict[ResourceRef, list[Dependency]] = {_ref(str(number)): [] for number in range(10)}
    for number, other in waiting:
        found[_ref(str(number))] += waits_for(_ref(str(other)))
    for number, other in naming:
        found[_ref(str(number))] += names(_ref(str(other)))
    return found


def _later(some: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Only those with a higher number are needed: no cycle is possible."""
    return [(a, b) for a, b in some if a < b]


@given(pairs, pairs)
def test_each_resource_comes_after_those_it_waits_for_whatever_else_is_named(
    waiting: list[tuple[int, int]], naming: list[tuple[int, int]]
) -> None:
    dependencies = _graph(_later(waiting), naming)

    order = reconcile_order(dependencies)

    assert sorted(order) == sorted(dependencies)
    assert all(order.index(_ref(str(b))) < order.index(_ref(str(a))) for a, b in _later(waiting))


@given(pairs, pairs)
def test_a_reference_that_need_not_be_ready_orders_too_where_possible(
    waiting: list[tuple[int, int]], naming: list[tuple[int, int]]
) -> None:
    needed = _later([*waiting, *naming])

    order = reconcile_order(_graph(_later(waiting), _later(naming)))

    assert all(order.index(_ref(str(b))) < order.index(_ref(str(a))) for a, b in needed)


def test_the_order_is_the_same_every_time() -> None:
    assert reconcile_order({C: [], B: [], A: []}) == reconcile_order({A: [], B: [], C: []})


def test_a_dependency_outside_the_set_is_left_out() -> None:
    assert reconcile_order({A: [*waits_for(B), *names(C), SecretKeyReference("spec.password", B, "key")]}) == (A,)


def test_a_cycle_is_named_with_all_of_its_members() -> None:
    with pytest.raises(DependencyCycle, match="needs Gadget default/") as caught:
        reconcile_order({A: waits_for(B), B: [*waits_for(C), *names(A)], C: waits_for(A)})

    assert str(caught.value).count(" needs ") == 3
    assert "take one of these references out" in str(caught.value)


def test_two_may_reference_each_other_if_only_one_has_to_be_ready() -> None:
    assert reconcile_order({A: waits_for(B), B: names(A)}) == (B, A)


def test_a_resource_may_name_itself_where_nothing_has_to_wait() -> None:
    assert reconcile_order({A: names(A)}) == (A,)


@given(pairs, pairs)
def test_all_that_have_to_be_ready_come_before_unless_some_wait_for_each_other(
    waiting: list[tuple[int, int]], naming: list[tuple[int, int]]
) -> None:
    before = predecessors(_graph(waiting, naming))

    try:
        reconcile_order(_graph(waiting, []))
    except DependencyCycle:
        assert before == {}
    else:
        wanted = {_ref(str(one)): {_ref(str(other)) for at, other in waiting if at == one} for one in range(10)}
        assert before == wanted


# --- Deletions --------------------------------------------------------------------------------------------------------


@given(pairs, pairs)
def test_each_resource_is_deleted_after_all_of_its_dependants(
    waiting: list[tuple[int, int]], naming: list[tuple[int, int]]
) -> None:
    needed = _later([*waiting, *naming])

    order = deletion_order(_graph(_later(waiting), _later(naming)))

    assert sorted(order) == [_ref(str(number)) for number in range(10)]
    assert order == {_ref(str(one)): {_ref(str(a)) for a, b in needed if b == one} for one in range(10)}
    places = list(order)
    assert all(places.index(one) < places.index(ref) for ref, first in order.items() for one in first)


@given(pairs, pairs)
def test_whatever_refers_to_whatever_every_resource_has_its_turn(
    waiting: list[tuple[int, int]], naming: list[tuple[int, int]]
) -> None:
    gone: set[ResourceRef] = set()
    for ref, first in deletion_order(_graph(waiting, naming)).items():
        assert first <= gone
        gone.add(ref)

    assert len(gone) == 10


def test_a_secret_is_deleted_after_the_resources_that_read_it() -> None:
    assert deletion_order({B: [], A: [SecretKeyReference("spec.password", B, "key")]}) == {A: set(), B: {A}}


def test_resources_that_wait_for_each_other_are_deleted_in_no_order() -> None:
    assert deletion_order({A: waits_for(B), B: waits_for(A)}) == {A: set(), B: set()}

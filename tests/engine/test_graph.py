"""Who waits for whom."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.graph import in_order, waiting_for
from setpoint.engine.resource import ResourceRef
from setpoint.errors import DependencyCycle


def _ref(name: str) -> ResourceRef:
    return ResourceRef("g", "Gadget", "default", name)


A, B, C = _ref("a"), _ref("b"), _ref("c")


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))))
def test_each_resource_comes_after_those_it_needs(pairs: list[tuple[int, int]]) -> None:
    # A resource needs only those with a higher number: no cycle is possible.
    needs = {_ref(str(number)): [_ref(str(b)) for a, b in pairs if a == number and a < b] for number in range(10)}

    order = in_order(needs)

    assert sorted(order) == sorted(needs)
    assert all(order.index(need) < order.index(ref) for ref, needed in needs.items() for need in needed)


def test_the_order_is_the_same_every_time() -> None:
    assert in_order({C: [], B: [], A: []}) == in_order({A: [], B: [], C: []})


def test_what_is_needed_from_elsewhere_is_left_out() -> None:
    assert in_order({A: [B]}) == (A,)


def test_a_cycle_is_named_with_all_who_are_in_it() -> None:
    with pytest.raises(DependencyCycle, match="needs Gadget default/") as caught:
        in_order({A: [B], B: [C], C: [A]})

    assert str(caught.value).count(" needs ") == 3
    assert "take one of these references out" in str(caught.value)


def test_those_who_wait_are_found_through_others() -> None:
    needs = {A: [], B: [A], C: [B]}

    assert waiting_for(A, needs) == (B, C)
    assert waiting_for(C, needs) == ()

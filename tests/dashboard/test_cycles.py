"""Cycles of a graph: an edge is in one exactly when its end leads back to its beginning."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.dashboard.views.cycles import cycles_in
from setpoint.engine.resource import ResourceRef

NODES = [ResourceRef("g", "Kind", "ns", name) for name in "abcdef"]
EDGES = st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=14)


def reaches(start: ResourceRef, end: ResourceRef, edges: list[tuple[ResourceRef, ResourceRef]]) -> bool:
    found, left = {start}, [start]
    while left:
        here = left.pop()
        following = {needed for dependant, needed in edges if dependant == here} - found
        found |= following
        left += following
    return end in found


@pytest.mark.laws
@given(EDGES)
def test_an_edge_is_in_a_cycle_exactly_when_its_end_leads_back(edges: list[tuple[ResourceRef, ResourceRef]]) -> None:
    cycles = cycles_in(edges)

    assert {edge: cycles.has(*edge) for edge in edges} == {edge: reaches(edge[1], edge[0], edges) for edge in edges}


@pytest.mark.laws
@given(EDGES)
def test_the_cycle_that_is_named_is_one(edges: list[tuple[ResourceRef, ResourceRef]]) -> None:
    cycles = cycles_in(edges)
    way = [*cycles.first, *cycles.first[:1]]

    assert all(edge in edges for edge in pairwise(way))
    assert (cycles.words is None) == (not cycles.groups)


def test_a_cycle_in_words() -> None:
    a, b, c, *_ = NODES

    assert cycles_in([(a, b), (b, a), (c, a)]).words == "Kind ns/a → Kind ns/b → Kind ns/a"

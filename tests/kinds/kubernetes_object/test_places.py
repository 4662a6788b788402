"""Where objects are, as one text, and what their keepers are called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.resource import ResourceRef
from setpoint.kinds.kubernetes_object.clusters import ObjectLocation, parse_object_location
from setpoint.kinds.kubernetes_object.managed_fields import field_manager_of

ANYTHING = st.text(min_size=1, max_size=8)
API_VERSIONS = st.sampled_from(("v1", "apps/v1", "example.com/v1alpha1"))


@pytest.mark.laws
@given(st.builds(ObjectLocation, ANYTHING, API_VERSIONS, st.just("Widget"), st.text(max_size=8), st.text(max_size=8)))
def test_a_place_is_found_again_by_its_text(place: ObjectLocation) -> None:
    assert parse_object_location(place.location) == place


@pytest.mark.laws
@given(st.text(max_size=300), st.text(max_size=300))
def test_a_manager_has_a_name_that_servers_take(namespace: str, name: str) -> None:
    assert len(field_manager_of(ResourceRef("", "", namespace, name))) <= 128


def test_long_names_are_told_apart() -> None:
    long = "n" * 200

    assert field_manager_of(ResourceRef("", "", "shop", "web")) == "setpoint/shop/web"
    assert field_manager_of(ResourceRef("", "", long, "a")) != field_manager_of(ResourceRef("", "", long, "b"))


def test_a_place_reads_well() -> None:
    place = ObjectLocation("context:arn:aws:eks:eu/prod", "apps/v1", "Deployment", "shop", "web")

    assert place.location == "apps/v1 Deployment shop/web @ context:arn:aws:eks:eu%2Fprod"
    assert place.title == "Deployment shop/web"

"""The text of a location, and the names of field managers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.resource import ResourceRef
from setpoint.kinds.kubernetes_object.location import ObjectLocation, parse_object_location
from setpoint.kinds.kubernetes_object.managed_fields import field_manager_of

ANYTHING = st.text(min_size=1, max_size=8)
API_VERSIONS = st.sampled_from(("v1", "apps/v1", "example.com/v1alpha1"))


@pytest.mark.laws
@given(st.builds(ObjectLocation, ANYTHING, API_VERSIONS, st.just("Widget"), st.text(max_size=8), st.text(max_size=8)))
def test_a_location_is_parsed_from_its_text(place: ObjectLocation) -> None:
    assert parse_object_location(place.location) == place


@pytest.mark.laws
@given(st.text(max_size=300), st.text(max_size=300))
def test_the_name_of_a_field_manager_is_valid(namespace: str, name: str) -> None:
    assert len(field_manager_of(ResourceRef("", "", namespace, name))) <= 128


def test_long_names_of_field_managers_stay_distinct() -> None:
    long = "n" * 200

    assert field_manager_of(ResourceRef("", "", "shop", "web")) == "setpoint/shop/web"
    assert field_manager_of(ResourceRef("", "", long, "a")) != field_manager_of(ResourceRef("", "", long, "b"))


def test_the_text_of_a_location() -> None:
    place = ObjectLocation("context:arn:aws:eks:eu/prod", "apps/v1", "Deployment", "shop", "web")

    assert place.location == "apps/v1 Deployment shop/web @ context:arn:aws:eks:eu%2Fprod"
    assert place.title == "Deployment shop/web"

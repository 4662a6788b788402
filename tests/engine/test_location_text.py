"""Locations as texts to read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.engine.claims.object_claims import location_text
from setpoint.engine.kind import Location
from setpoint.kinds.kubernetes_object.location import ObjectLocation

names = st.text("ab-./%: \n\u200b", min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("cluster", "text"),
    [
        ("own:checkout/setpoint", "this cluster, as checkout/setpoint"),
        ("own", "this cluster"),
        ("in-cluster", "in-cluster"),
        ("context:prod", "context:prod"),
        ("secret:shop/keys/kubeconfig/eu west", "secret:shop/keys/kubeconfig/eu west"),
    ],
)
def test_the_location_of_an_object_names_its_cluster(cluster: str, text: str) -> None:
    location = ObjectLocation(cluster, "apps/v1", "Deployment", "shop", "web").location

    assert location_text(location) == f"apps/v1 Deployment shop/web @ {text}"


@given(names, names)
def test_a_location_as_a_text_is_one_line_that_can_be_printed(name: str, context: str) -> None:
    location = ObjectLocation(f"context:{context}", "v1", "ConfigMap", "shop", name).location

    assert location_text(location).isprintable()


@given(st.text())
def test_other_locations_stay_as_they_are(text: str) -> None:
    if " @ " not in text:
        assert location_text(Location(text)) == text

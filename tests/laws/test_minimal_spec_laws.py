"""Laws of minimal specs: what is left out means what is there."""

import pytest
from hypothesis import given

from setpoint.core.diff import diff
from setpoint.core.overlay import Declared, overlay
from setpoint.core.schema.shape import ObjectShape
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.importing.minimal_spec import by_documentation, minimal, whole
from tests.laws.declared_specs import SECRET, SHAPE, live_objects, written

pytestmark = pytest.mark.laws


def _spec(tree: JsonObject) -> tuple[JsonObject, ObjectShape]:
    spec, shape = tree.get("spec", {}), SHAPE.fields["spec"].shape
    assert isinstance(spec, dict)
    assert isinstance(shape, ObjectShape)
    return spec, shape


@given(live_objects)
def test_laid_over_what_is_there_it_changes_nothing(live: JsonObject) -> None:
    spec, shape = _spec(live)
    for said in (minimal(spec, shape), whole(spec, shape)):
        wanted = overlay(Declared(said, shape), spec)

        assert diff(spec, wanted, shape.as_field) == ()


@given(live_objects)
def test_it_says_no_more_than_the_whole(live: JsonObject) -> None:
    spec, shape = _spec(live)

    assert minimal(minimal(spec, shape), shape) == minimal(spec, shape)
    assert set(minimal(spec, shape)) <= set(whole(spec, shape))


@given(written)
def test_no_secret_is_in_it(tree: JsonObject) -> None:
    spec, shape = _spec(tree)

    assert SECRET not in str(minimal(spec, shape))
    assert SECRET not in str(whole(spec, shape))


@pytest.mark.parametrize(
    ("spec", "live", "documented", "said"),
    [
        # What says nothing is left out where that is the documented default, with objects that have no other field.
        ({"a": False}, {"a": False}, {"a": False}, {}),
        ({"on": {"quic": "NONE"}, "b": 1}, {"on": {"quic": "NONE"}, "b": 1}, {"on.quic": "NONE"}, {"b": 1}),
        # Where the documented default is another one, it says something, and was left out wrongly.
        ({}, {"shielded": False}, {"shielded": True}, {"shielded": False}),
        # What an author may have chosen stays, default or not; so does what no documentation is about.
        ({"tier": "BASIC"}, {"tier": "BASIC"}, {"tier": "BASIC"}, {"tier": "BASIC"}),
        ({"most": 300}, {"most": 300}, {"most": 300}, {"most": 300}),
        ({"a": "NONE"}, {"a": "NONE"}, {}, {"a": "NONE"}),
        ({}, {}, {"a": False}, {}),
    ],
)
def test_documentation_decides_about_values_that_say_nothing(
    spec: JsonObject, live: JsonObject, documented: dict[str, Json], said: JsonObject
) -> None:
    found = by_documentation(spec, live, {Path.parse(path): value for path, value in documented.items()})

    assert found == said

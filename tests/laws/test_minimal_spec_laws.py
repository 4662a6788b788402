"""Laws of minimal specs: what is left out means what is there."""

import pytest
from hypothesis import given

from setpoint.core.diff import diff
from setpoint.core.overlay import Declared, overlay
from setpoint.core.schema.shape import ObjectShape
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.importing.minimal_spec import minimal, whole
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

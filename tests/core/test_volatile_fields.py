"""Volatile fields are in no output."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.unstructured import volatile_step, without_volatile
from setpoint.core.values.canonical import canonical, same
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.core.wait.judge import ObjectFound
from setpoint.core.wait.outputs import Known, Null, output_of
from setpoint.core.wait.wait_for import FieldWait, parse_wait
from setpoint.errors import ManifestInvalid
from tests.laws.json_values import json_values

VOLATILE = (
    "observedGeneration",
    "resourceVersion",
    "managedFields",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "lastHeartbeatTime",
)
NAMES = (*VOLATILE, "status", "phase", "conditions")
ROOT = Path(())
trees = st.recursive(
    st.sampled_from((None, True, 0, 1, "x")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=15,
)


@given(trees, trees)
def test_objects_that_differ_in_volatile_fields_only_have_the_same_output(status: Json, noise: Json) -> None:
    noisy = _with_noise(status, noise)

    first = output_of(FieldWait(Path(("status",))), ObjectFound({"status": status}), Null(), "t")
    second = output_of(FieldWait(Path(("status",))), ObjectFound({"status": noisy}), Null(), "t")

    assert type(first) is type(second)
    assert not isinstance(first, Known) or first == second


def _with_noise(tree: Json, noise: Json) -> Json:
    """The same with other values in whatever is volatile."""
    if isinstance(tree, dict):
        return {
            **{name: noise if name in VOLATILE else _with_noise(below, noise) for name, below in tree.items()},
            "resourceVersion": noise,
        }
    return [_with_noise(one, noise) for one in tree] if isinstance(tree, list) else tree


@given(trees)
def test_no_volatile_field_is_left(status: Json) -> None:
    text = canonical(without_volatile({"status": status, "metadata": {"resourceVersion": "7"}}, ROOT)).decode()

    assert [name for name in VOLATILE if f'"{name}"' in text] == []


@given(json_values)
def test_authored_fields_are_never_volatile(spec: Json) -> None:
    tree: Json = {"spec": {"resourceVersion": spec}, "data": {"lastUpdateTime": "x"}}

    assert same(without_volatile(tree, ROOT), tree)
    assert same(without_volatile(spec, Path(("spec",))), spec)


@pytest.mark.parametrize("name", VOLATILE)
def test_a_volatile_field_cannot_be_an_output(name: str) -> None:
    with pytest.raises(ManifestInvalid, match=f"{name} changes without a change of state"):
        parse_wait({"field": f"status.conditions[0].{name}"})


def test_a_volatile_field_can_be_waited_for_by_value_and_its_name_is_allowed_elsewhere() -> None:
    parse_wait({"fieldValue": {"status.observedGeneration": 3}})

    assert parse_wait({"field": "data.resourceVersion"}).wait == FieldWait(Path(("data", "resourceVersion")))
    assert volatile_step(Path(("status", "phase"))) is None

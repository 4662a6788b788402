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
def test_an_object_that_differs_in_nothing_else_offers_the_same(status: Json, noise: Json) -> None:
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
def test_none_of_it_is_left(status: Json) -> None:
    text = canonical(without_volatile({"status": status, "metadata": {"resourceVersion": "7"}}, ROOT)).decode()

    assert [name for name in VOLATILE if f'"{name}"' in text] == []


@given(json_values)
def test_what_authors_write_is_theirs(spec: Json) -> None:
    tree: Json = {"spec": {"resourceVersion": spec}, "data": {"lastUpdateTime": "x"}}

    assert same(without_volatile(tree, ROOT), tree)
    assert same(without_volatile(spec, Path(("spec",))), spec)


@pytest.mark.parametrize("name", VOLATILE)
def test_it_cannot_be_waited_for_as_a_value(name: str) -> None:
    with pytest.raises(ManifestInvalid, match=f"{name} changes without a change of state"):
        parse_wait({"field": f"status.conditions[0].{name}"})


def test_it_can_be_waited_for_by_its_value_and_elsewhere_it_is_a_name_like_any_other() -> None:
    parse_wait({"fieldValue": {"status.observedGeneration": 3}})

    assert parse_wait({"field": "data.resourceVersion"}).wait == FieldWait(Path(("data", "resourceVersion")))
    assert volatile_step(Path(("status", "phase"))) is None

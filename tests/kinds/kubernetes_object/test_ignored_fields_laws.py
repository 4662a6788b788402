"""Laws of ignored fields."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path, get_at
from setpoint.kinds.kubernetes_object.managed_fields import NO_FIELDS, project
from setpoint.kinds.kubernetes_object.options import with_ignored_fields
from tests.kinds.kubernetes_object.owned_trees import OBJECTS, Owned

pytestmark = pytest.mark.laws


@given(OBJECTS, OBJECTS, st.data())
def test_ignored_fields_are_sent_with_their_live_value_if_owned_and_left_out_if_not(
    live: Owned, wanted: Owned, data: st.DataObject
) -> None:
    tops = sorted({str(name) for name in (*live.value, *wanted.value)})
    name = data.draw(st.sampled_from(tops))
    path = Path((name,))

    sent = with_ignored_fields(wanted.value, live.value, live.fields, [path])

    fields = live.fields.get(f"f:{name}")
    if fields is None:
        assert get_at(sent, path) is MISSING
    else:
        assert same(
            project(sent, {f"f:{name}": fields}).to_data(), project(live.value, {f"f:{name}": fields}).to_data()
        )


@given(OBJECTS, OBJECTS)
def test_only_named_fields_are_ignored(live: Owned, wanted: Owned) -> None:
    assert with_ignored_fields(wanted.value, live.value, live.fields, []) is wanted.value


@given(OBJECTS, OBJECTS)
def test_an_ignored_field_without_owned_values_is_not_sent(live: Owned, wanted: Owned) -> None:
    paths = [Path((str(name),)) for name in live.value]

    sent = with_ignored_fields(wanted.value, live.value, NO_FIELDS, paths)

    assert all(get_at(sent, path) is MISSING for path in paths)


def test_a_removed_element_is_not_kept_for_an_ignored_field_in_it() -> None:
    live: Any = {"ports": [{"port": 80, "protocol": "TCP", "nodePort": 1}]}
    owned: Any = {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:nodePort": {}}}}

    sent = with_ignored_fields({"ports": []}, live, owned, [Path.parse("ports[port=80].nodePort")])

    assert sent == {"ports": []}

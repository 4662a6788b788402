"""Last generated after a crash, when the write in flight may or may not have happened."""

from typing import Any

import pytest

from setpoint.core.merge.children import (
    Child,
    ChildUpdatePolicy,
    FieldsView,
    last_generated_status,
    resolve_last_generated,
)
from setpoint.core.merge.threeway import (
    EditableFields,
    EntryList,
    EntryMap,
    LastGenerated,
    WholeValue,
    last_generated_to_data,
    recover_last_generated,
    remember,
)
from setpoint.core.values.paths import Path

TABLE: EditableFields = {
    Path.parse("spec.size"): WholeValue(),
    Path.parse("spec.env"): EntryMap(),
    Path.parse("spec.volumes"): EntryList("name"),
}


def seen(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def known(**spec: Any) -> LastGenerated:
    return remember(seen(**spec), TABLE)


OLD, NEW = {"zone": "a", "size": 1, "env": {"x": "1"}}, {"zone": "b", "size": 2, "env": {"x": "2", "y": "1"}}


@pytest.mark.parametrize(
    ("live", "was"),
    [
        pytest.param(OLD, OLD, id="not written"),
        pytest.param(NEW, NEW, id="written"),
        pytest.param({**NEW, "size": 7}, {**NEW, "size": 1}, id="written around an edit"),
        pytest.param({**OLD, "size": 7}, OLD, id="not written around an edit"),
        pytest.param({**NEW, "env": {"x": "7", "y": "1"}}, {**NEW, "env": {"x": "1", "y": "1"}}, id="an entry each"),
        pytest.param({**OLD, "size": 2}, {**OLD, "size": 2}, id="an edit came to the same"),
        pytest.param({}, OLD, id="everything was removed"),
    ],
)
def test_each_field_is_recovered_from_its_live_value(live: dict[str, Any], was: dict[str, Any]) -> None:
    assert recover_last_generated(known(**OLD), known(**NEW), seen(**live), TABLE) == known(**was)


def test_a_field_that_is_no_longer_generated_and_gone_was_removed() -> None:
    assert recover_last_generated(known(size=1), known(), seen(), TABLE) == known()
    assert recover_last_generated(known(size=1), known(), seen(size=1), TABLE) == known(size=1)


def test_a_live_value_of_another_type_leaves_the_stored_one() -> None:
    assert recover_last_generated(known(zone="a"), known(zone="b"), seen(zone={"odd": 1}), TABLE) == known(zone="a")


def test_without_last_generated_only_an_equal_object_counts_as_written() -> None:
    assert recover_last_generated(None, known(**NEW), seen(**NEW), TABLE) == known(**NEW)
    assert recover_last_generated(None, known(**NEW), seen(**{**NEW, "size": 7}), TABLE) is None


# --- Of a child -------------------------------------------------------------------------------------------------------


def child(spec: dict[str, Any]) -> Child:
    made: dict[str, Any] = {"kind": "Thing", "metadata": {"name": "c"}, "spec": spec}
    return Child(made, ChildUpdatePolicy.MERGE, FieldsView((Path(("spec",)),)), TABLE)


def record(spec: dict[str, Any]) -> Any:
    return last_generated_status([child(spec)])


@pytest.mark.parametrize("is_ours", [True, False])
def test_without_a_write_in_flight_the_stored_value_holds(is_ours: bool) -> None:
    live = child(NEW).object

    assert resolve_last_generated(child(NEW), live, record(OLD), None, is_ours=is_ours) == known(**OLD)
    assert (
        resolve_last_generated(child(NEW), live, {}, {"Thing/other": last_generated_to_data(known())}, is_ours=is_ours)
        is None
    )


@pytest.mark.parametrize("is_ours", [True, False])
def test_with_a_write_in_flight_the_live_object_decides(is_ours: bool) -> None:
    assert resolve_last_generated(child(OLD), child(NEW).object, record(OLD), record(NEW), is_ours=is_ours) == known(
        **NEW
    )


def test_an_owned_child_without_a_record_was_created_by_the_write_in_flight() -> None:
    edited = child({**NEW, "env": {}}).object

    assert resolve_last_generated(child(OLD), edited, {}, record(NEW), is_ours=True) == known(**NEW)
    assert resolve_last_generated(child(OLD), edited, {}, record(NEW), is_ours=False) is None

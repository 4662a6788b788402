"""The update of an existing child, under each update policy."""

from typing import Any

import pytest

from setpoint.core.merge.children import (
    Child,
    ChildUpdatePolicy,
    FieldsView,
    child_update,
    last_generated_status,
    read_last_generated,
)
from setpoint.core.merge.merge_report import Resolution
from setpoint.core.merge.threeway import EntryMap, WholeValue
from setpoint.core.values.paths import Path
from setpoint.errors import ImmutableFieldChanged

TEXT = Path(("data", "key.txt"))


def config_map(text: str, **more: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": {"key.txt": text, **more}}


def merged(text: str) -> Child:
    return Child(config_map(text), ChildUpdatePolicy.MERGE, FieldsView((TEXT,)), {TEXT: WholeValue()})


def secret(value: str, contents: ChildUpdatePolicy) -> Child:
    made: dict[str, Any] = {"kind": "Secret", "metadata": {"name": "s", "labels": {"by": "us"}}, "data": {"k": value}}
    return Child(made, contents, FieldsView((Path(("data",)),)), {})


def test_an_unedited_child_follows_its_owner() -> None:
    last = read_last_generated(last_generated_status([merged("old")]), merged("new"))

    update = child_update(merged("new"), config_map("old", other="mine"), last)

    assert update.object == config_map("new", other="mine")
    assert update.resolutions == ()


def test_an_edit_is_kept_and_reported() -> None:
    live = config_map("edited")

    update = child_update(
        merged("new"), live, read_last_generated(last_generated_status([merged("old")]), merged("new"))
    )

    assert update.object is live
    assert [(str(one), one.resolution) for one in update.resolutions] == [
        (
            'ConfigMap n/c data["key.txt"]: a person\'s value is kept, but what is generated has changed, too: '
            "put the generated value there to take it over",
            Resolution.CONFLICTING,
        )
    ]


@pytest.mark.parametrize("gone", [{"data": {}}, {"data": {"key.txt": ""}}, {}])
def test_a_removed_field_comes_back(gone: dict[str, Any]) -> None:
    live = {**config_map(""), **gone}

    assert child_update(merged("new"), live, None).object == config_map("new")


def test_without_last_generated_live_values_are_kept() -> None:
    live = config_map("found")

    assert child_update(merged("new"), live, read_last_generated({}, merged("new"))).object is live


def test_a_field_that_is_no_longer_generated_is_removed() -> None:
    path = Path(("data", "key.txt"))
    none = Child(
        {"kind": "ConfigMap", "metadata": {"name": "c"}},
        ChildUpdatePolicy.MERGE,
        FieldsView((path,)),
        {path: WholeValue()},
    )

    update = child_update(none, config_map("old"), read_last_generated(last_generated_status([merged("old")]), none))

    assert update.object == {**config_map(""), "data": {}}
    assert [one.resolution for one in update.resolutions] == [Resolution.RETIRED]


class UnwritableView(FieldsView):
    """A view whose part cannot be written."""

    def write(self, live: Any, generated: Any, merged: Any) -> Any:
        return dict(live)


def test_a_field_that_could_not_be_reverted_is_not_reported_as_reverted() -> None:
    child = Child(config_map("new"), ChildUpdatePolicy.MERGE, UnwritableView((TEXT,)), {})
    live = config_map("old")

    update = child_update(child, live, None)

    assert update.object is live
    assert update.resolutions == ()


def test_an_overwritten_child_follows_its_owner_and_stores_no_digests() -> None:
    child = secret("new", ChildUpdatePolicy.OVERWRITE)
    live = {**child.object, "data": {"k": "old", "more": "x"}}

    assert child_update(child, live, None).object == child.object
    assert child_update(child, child.object, None).object is child.object
    assert last_generated_status([child]) == {}


def test_a_create_only_child_is_left_alone() -> None:
    child = secret("new", ChildUpdatePolicy.CREATE_ONLY)
    live = {**child.object, "data": {"k": "old"}}

    assert child_update(child, live, None).object is live


@pytest.mark.parametrize("labels", [None, {}, {"by": "them"}])
def test_generated_labels_are_restored_and_other_labels_kept(labels: Any) -> None:
    child = secret("x", ChildUpdatePolicy.CREATE_ONLY)
    live = {**child.object, "metadata": {"name": "s", "labels": {**(labels or {}), "mine": "1"} if labels else labels}}

    update = child_update(child, live, None)

    wanted = {"by": "us", "mine": "1"} if labels else {"by": "us"}
    assert update.object == {**child.object, "metadata": {"name": "s", "labels": wanted}}


@pytest.mark.parametrize("data", [None, [], {"ConfigMap/c": 7}, {"ConfigMap/other": {}}])
def test_unreadable_last_generated_counts_as_none(data: Any) -> None:
    assert read_last_generated(data, merged("x")) is None


def test_a_create_only_child_is_not_adopted() -> None:
    assert [secret("x", one).can_adopt for one in ChildUpdatePolicy] == [True, True, True, False]


SELECTOR = Path(("spec", "selector"))


def workload(replicas: int = 1, **more: Any) -> dict[str, Any]:
    labels = {"labels": {"app": "x"}}
    spec = {"replicas": replicas, "selector": {"app": "x"}, "containers": [{"name": "a", "image": "i"}], **more}
    return {"kind": "Deployment", "metadata": {"name": "d", "namespace": "n", **labels}, "spec": spec}


def covered(replicas: int = 1) -> Child:
    return Child(
        workload(replicas), ChildUpdatePolicy.APPLY_SUBSET, FieldsView((Path(("spec",)),)), {}, immutable=(SELECTOR,)
    )


def test_fields_that_the_api_server_added_cause_no_write() -> None:
    live = workload(default=1, containers=[{"name": "a", "image": "i", "default": 1}])

    assert child_update(covered(), live, None).object is live
    assert last_generated_status([covered()]) == {}


def test_fields_that_the_api_server_added_survive_a_write() -> None:
    live = workload(1, default=1, containers=[{"name": "mine"}, {"name": "a", "image": "i", "default": 1}])
    live["metadata"] |= {"annotations": {"mine": "1"}, "labels": {"mine": "1"}}

    made: Any = child_update(covered(2), live, None).object

    assert made["spec"] == workload(2, default=1, containers=[{"name": "a", "image": "i", "default": 1}])["spec"]
    assert made["metadata"]["annotations"] == {"mine": "1"}
    assert made["metadata"]["labels"] == {"mine": "1", "app": "x"}


@pytest.mark.parametrize("selector", [None, {}, {"app": "y"}])
def test_a_difference_in_an_immutable_field_is_an_error(selector: Any) -> None:
    live = workload(selector=selector)

    with pytest.raises(ImmutableFieldChanged, match=r"Deployment n/d: spec\.selector cannot change any more") as caught:
        child_update(covered(2), live, None)

    assert caught.value.paths == ("spec.selector",)


def test_an_absent_immutable_field_is_an_error() -> None:
    live = {**workload(), "spec": {}}

    with pytest.raises(ImmutableFieldChanged, match="delete the object, and it is made anew"):
        child_update(covered(), live, None)


def test_a_child_with_more_digests_than_a_status_has_room_for_is_left_out() -> None:
    data = Path(("data",))
    many = {f"key{number}": "text" for number in range(1000)}
    large = Child(config_map("new", **many), ChildUpdatePolicy.MERGE, FieldsView((data,)), {data: EntryMap()})

    assert last_generated_status([large]) == {}
    assert read_last_generated(last_generated_status([large]), large) is None

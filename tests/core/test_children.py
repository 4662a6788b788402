"""A child that is there: what is to be written of it."""

from typing import Any

import pytest

from setpoint.core.children import Child, Contents, Fields, memory_of_children, remembered, renewed
from setpoint.core.fates import Fate
from setpoint.core.paths import Path
from setpoint.core.threeway import Whole
from setpoint.errors import ImmutableFieldChanged

TEXT = Path(("data", "key.txt"))


def config_map(text: str, **more: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": {"key.txt": text, **more}}


def merged(text: str) -> Child:
    return Child(config_map(text), Contents.MERGED, Fields((TEXT,)), {TEXT: Whole()})


def secret(value: str, contents: Contents) -> Child:
    made: dict[str, Any] = {"kind": "Secret", "metadata": {"name": "s", "labels": {"by": "us"}}, "data": {"k": value}}
    return Child(made, contents, Fields((Path(("data",)),)), {})


def test_what_nobody_edited_follows() -> None:
    last = remembered(memory_of_children([merged("old")]), merged("new"))

    renewal = renewed(merged("new"), config_map("old", other="mine"), last)

    assert renewal.object == config_map("new", other="mine")
    assert renewal.findings == ()


def test_what_somebody_edited_stays_and_is_told() -> None:
    live = config_map("edited")

    renewal = renewed(merged("new"), live, remembered(memory_of_children([merged("old")]), merged("new")))

    assert renewal.object is live
    assert [(str(one), one.fate) for one in renewal.findings] == [
        (
            'ConfigMap n/c data["key.txt"]: a person\'s value is kept, but what is generated has changed, too: '
            "put the generated value there to take it over",
            Fate.CONFLICTING,
        )
    ]


@pytest.mark.parametrize("gone", [{"data": {}}, {"data": {"key.txt": ""}}, {}])
def test_what_somebody_removed_comes_back(gone: dict[str, Any]) -> None:
    live = {**config_map(""), **gone}

    assert renewed(merged("new"), live, None).object == config_map("new")


def test_a_first_contact_keeps_what_it_finds() -> None:
    live = config_map("found")

    assert renewed(merged("new"), live, remembered({}, merged("new"))).object is live


def test_a_field_that_is_no_longer_made_goes() -> None:
    path = Path(("data", "key.txt"))
    none = Child({"kind": "ConfigMap", "metadata": {"name": "c"}}, Contents.MERGED, Fields((path,)), {path: Whole()})

    renewal = renewed(none, config_map("old"), remembered(memory_of_children([merged("old")]), none))

    assert renewal.object == {**config_map(""), "data": {}}
    assert [one.fate for one in renewal.findings] == [Fate.RETIRED]


class Stubborn(Fields):
    """A view of something that cannot be written."""

    def write(self, live: Any, generated: Any, merged: Any) -> Any:
        return dict(live)


def test_what_could_not_be_put_back_is_not_told_as_put_back() -> None:
    child = Child(config_map("new"), Contents.MERGED, Stubborn((TEXT,)), {})
    live = config_map("old")

    renewal = renewed(child, live, None)

    assert renewal.object is live
    assert renewal.findings == ()


def test_a_copy_follows_and_leaves_no_trace() -> None:
    child = secret("new", Contents.COPIED)
    live = {**child.object, "data": {"k": "old", "more": "x"}}

    assert renewed(child, live, None).object == child.object
    assert renewed(child, child.object, None).object is child.object
    assert memory_of_children([child]) == {}


def test_contents_that_are_made_once_are_left_alone() -> None:
    child = secret("new", Contents.ONCE)
    live = {**child.object, "data": {"k": "old"}}

    assert renewed(child, live, None).object is live


@pytest.mark.parametrize("labels", [None, {}, {"by": "them"}])
def test_labels_are_put_back_and_other_ones_kept(labels: Any) -> None:
    child = secret("x", Contents.ONCE)
    live = {**child.object, "metadata": {"name": "s", "labels": {**(labels or {}), "mine": "1"} if labels else labels}}

    renewal = renewed(child, live, None)

    wanted = {"by": "us", "mine": "1"} if labels else {"by": "us"}
    assert renewal.object == {**child.object, "metadata": {"name": "s", "labels": wanted}}


@pytest.mark.parametrize("data", [None, [], {"ConfigMap/c": 7}, {"ConfigMap/other": {}}])
def test_a_foreign_memory_is_a_first_contact(data: Any) -> None:
    assert remembered(data, merged("x")) is None


def test_what_people_would_keep_anyhow_is_not_adopted() -> None:
    assert [secret("x", one).is_adopted for one in Contents] == [True, True, True, False]


SELECTOR = Path(("spec", "selector"))


def workload(replicas: int = 1, **more: Any) -> dict[str, Any]:
    labels = {"labels": {"app": "x"}}
    spec = {"replicas": replicas, "selector": {"app": "x"}, "containers": [{"name": "a", "image": "i"}], **more}
    return {"kind": "Deployment", "metadata": {"name": "d", "namespace": "n", **labels}, "spec": spec}


def covered(replicas: int = 1) -> Child:
    return Child(workload(replicas), Contents.COVERED, Fields((Path(("spec",)),)), {}, fixed=(SELECTOR,))


def test_what_a_server_added_is_no_reason_to_write() -> None:
    live = workload(default=1, containers=[{"name": "a", "image": "i", "default": 1}])

    assert renewed(covered(), live, None).object is live
    assert memory_of_children([covered()]) == {}


def test_and_survives_a_write() -> None:
    live = workload(1, default=1, containers=[{"name": "mine"}, {"name": "a", "image": "i", "default": 1}])
    live["metadata"] |= {"annotations": {"mine": "1"}, "labels": {"mine": "1"}}

    made: Any = renewed(covered(2), live, None).object

    assert made["spec"] == workload(2, default=1, containers=[{"name": "a", "image": "i", "default": 1}])["spec"]
    assert made["metadata"]["annotations"] == {"mine": "1"}
    assert made["metadata"]["labels"] == {"mine": "1", "app": "x"}


@pytest.mark.parametrize("selector", [None, {}, {"app": "y"}])
def test_what_no_server_changes_is_told_instead_of_written(selector: Any) -> None:
    live = workload(selector=selector)

    with pytest.raises(ImmutableFieldChanged, match=r"Deployment n/d: spec\.selector cannot change any more") as caught:
        renewed(covered(2), live, None)

    assert caught.value.paths == ("spec.selector",)


def test_a_fixed_place_that_is_not_there_is_not_what_is_wanted() -> None:
    live = {**workload(), "spec": {}}

    with pytest.raises(ImmutableFieldChanged, match="delete the object, and it is made anew"):
        renewed(covered(), live, None)

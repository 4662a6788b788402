"""Outputs: three states, one path, and what dependants get."""

import datetime
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import MISSING, Json
from setpoint.core.values.paths import Path, Selector, get_at
from setpoint.core.wait.judge import ObjectFound, ObjectNotFound, ReadFailed, TimedOut, WaitObservation
from setpoint.core.wait.outputs import Known, Null, OutputState, Unknown, from_data, output_of, prune, to_data, value_at
from setpoint.core.wait.wait_for import ConditionWait, FieldValueWait, FieldWait, RolloutWait, WaitCriterion
from setpoint.errors import Blocked, ManifestInvalid
from tests.laws.json_values import json_values, paths, text

T0, T1, T2 = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"
INGRESS = Path(("status", "loadBalancer", "ingress"))
WAIT = FieldWait(INGRESS)
WEB = "Service shop/web"
LIVE: Json = {
    "metadata": {"name": "web", "generation": 3, "resourceVersion": "77"},
    "status": {"observedGeneration": 3, "conditions": [], "loadBalancer": {"ingress": [{"ip": "10.0.0.7"}]}},
}
PRUNED: Json = {"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.7"}]}}}
FOREIGN = "it is none of null, unknown with reason and since, known with value"
NO_INGRESS: Json = {"metadata": {"name": "web"}, "status": {"loadBalancer": {}}}

outputs: st.SearchStrategy[OutputState] = (
    st.just(Null()) | st.builds(Known, json_values) | st.builds(Unknown, text, text, st.just(MISSING) | json_values)
)
observations: st.SearchStrategy[WaitObservation] = (
    st.builds(ObjectFound, st.sampled_from((LIVE, NO_INGRESS)) | json_values)
    | st.builds(ObjectNotFound, text)
    | st.builds(ReadFailed, text)
    | st.builds(TimedOut, text)
)
trees = st.recursive(
    st.sampled_from((None, True, 0, 1, 80, "x")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abx"), inner, max_size=3),
    max_leaves=20,
)
short_selectors = st.builds(
    lambda name, value: Selector(((name, value),)),
    st.sampled_from("ab"),
    st.sampled_from(("x", "80", "true", "null")),
)
short_steps = st.sampled_from("abx") | st.integers(0, 2) | short_selectors
short_paths = st.lists(short_steps, max_size=4).map(lambda steps: Path(tuple(steps)))


# --- Storage ---------------------------------------------------------------------------------------------------------


@given(outputs)
def test_every_output_survives_storage(output: OutputState) -> None:
    assert from_data(json.loads(json.dumps(to_data(output)))) == output


@given(json_values | st.dictionaries(st.sampled_from(("state", "reason", "since", "value")), json_values))
def test_unreadable_stored_data_is_unknown(data: Json) -> None:
    output = from_data(data)

    assert isinstance(output, Unknown)
    assert output.reason.startswith("the stored output cannot be read: ")


@pytest.mark.parametrize(
    ("output", "data"),
    [
        (Null(), {"state": "null"}),
        (Unknown("disappeared", T0), {"state": "unknown", "reason": "disappeared", "since": T0}),
        (Unknown("gone", T0, None), {"state": "unknown", "reason": "gone", "since": T0, "last": None}),
        (Known(None), {"state": "known", "value": None}),
    ],
)
def test_stored_as_plain_data(output: OutputState, data: Json) -> None:
    assert to_data(output) == data
    assert from_data(data) == output


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "it is not a map"),
        ([], "it is not a map"),
        (
            {"state": "knwon", "value": 1},
            FOREIGN,
        ),
        ({"state": "known"}, FOREIGN),
        (
            {"state": "unknown", "reason": "x"},
            FOREIGN,
        ),
        (
            {"state": "unknown", "reason": 1, "since": T0},
            FOREIGN,
        ),
        (
            {"state": "known", "value": datetime.date(2026, 1, 1)},
            "value: a date has no JSON form: use text, a number, a list or a map",
        ),
    ],
)
def test_says_why_stored_data_cannot_be_read(data: object, reason: str) -> None:
    output = from_data(data)

    assert isinstance(output, Unknown)
    assert output.reason == f"the stored output cannot be read: {reason}"
    assert output.since == ""
    assert output.last is MISSING


def test_outputs_are_compared_as_json() -> None:
    assert Known(1) == Known(1.0)
    assert Known(1) != Known(True)
    assert Unknown("r", T0, 1) != Unknown("r", T0, True)
    assert Unknown("r", T0, None) != Unknown("r", T0)
    assert Known(None) != Null()
    assert Unknown("r", T0) != Null()
    assert Unknown("r", T0) != "r"


# --- Pruning ---------------------------------------------------------------------------------------------------------


@given(trees | json_values, short_paths | paths)
def test_a_pruned_tree_has_the_same_value_at_its_path(tree: Json, path: Path) -> None:
    pruned = prune(tree, path)
    there = get_at(tree, path)

    assert (pruned is MISSING) is (there is MISSING)
    if pruned is not MISSING and there is not MISSING:
        found = get_at(pruned, path)
        assert found is not MISSING
        assert same(found, there)


@given(trees, short_paths)
def test_pruning_twice_changes_nothing_more(tree: Json, path: Path) -> None:
    once = prune(tree, path)

    if once is not MISSING:
        twice = prune(once, path)
        assert twice is not MISSING
        assert same(twice, once)


@pytest.mark.parametrize(
    ("path", "pruned"),
    [
        ("", {"a": {"b/c": 1, "d": 2}, "l": [{"k": 80, "v": 1, "w": [2]}, {"k": "x", "v": 3}]}),
        ('a["b/c"]', {"a": {"b/c": 1}}),
        ("l[1].v", {"l": [None, {"v": 3}]}),
        ("l[0]", {"l": [{"k": 80, "v": 1, "w": [2]}]}),
        ("l[k=x].v", {"l": [{"k": "x", "v": 3}]}),
        ("l[k=80].w[0]", {"l": [{"k": 80, "w": [2]}]}),
        ("l[k=80].k", {"l": [{"k": 80}]}),
        ("l[k=x]", {"l": [{"k": "x", "v": 3}]}),
        ("l[k=80,v=1].w", {"l": [{"k": 80, "v": 1, "w": [2]}]}),
        ("l[k=y].v", MISSING),
        ("a.d.e", MISSING),
        ("z.y", MISSING),
    ],
)
def test_pruning_keeps_the_path_and_nothing_else(path: str, pruned: Json) -> None:
    tree: Json = {"a": {"b/c": 1, "d": 2}, "l": [{"k": 80, "v": 1, "w": [2]}, {"k": "x", "v": 3}]}

    assert prune(tree, Path.parse(path)) == pruned


# --- Outputs --------------------------------------------------------------------------------------------------------


@given(observations, outputs)
def test_only_a_field_wait_makes_an_output(observation: WaitObservation, previous: OutputState) -> None:
    other_waits: tuple[WaitCriterion | None, ...] = (
        None,
        RolloutWait(),
        ConditionWait("Ready"),
        FieldValueWait(((INGRESS, "x"),)),
    )

    for wait in other_waits:
        assert output_of(wait, observation, previous, T1) == Null()


@given(observations, outputs)
def test_a_field_wait_is_never_null_and_keeps_since_while_unknown(
    observation: WaitObservation, previous: OutputState
) -> None:
    output = output_of(WAIT, observation, previous, T1)

    assert not isinstance(output, Null)
    if isinstance(output, Unknown):
        assert output.since == ((previous.since or T1) if isinstance(previous, Unknown) else T1)


@given(observations, outputs)
def test_a_repeated_observation_changes_nothing(observation: WaitObservation, previous: OutputState) -> None:
    once = output_of(WAIT, observation, previous, T1)

    assert output_of(WAIT, observation, once, T2) == once


@given(outputs)
def test_a_present_value_is_known_and_pruned_to_its_path(previous: OutputState) -> None:
    assert output_of(WAIT, ObjectFound(LIVE), previous, T1) == Known(PRUNED)


@pytest.mark.parametrize(
    ("observation", "reason"),
    [
        (ObjectFound(NO_INGRESS), "status.loadBalancer.ingress is not there yet"),
        (ObjectFound({}), "status.loadBalancer.ingress is not there yet: the object has no status"),
        (ObjectNotFound(WEB), "Service shop/web does not exist yet"),
        (ReadFailed("503"), "the read failed: 503"),
        (TimedOut("no ingress after 5m"), "the wait timed out: no ingress after 5m"),
        (
            ObjectFound(
                {
                    "metadata": {"generation": 4},
                    "status": {"observedGeneration": 3, "loadBalancer": {"ingress": [1]}},
                }
            ),
            "status.loadBalancer.ingress is out of date: it speaks of generation 3, and the object is at generation 4",
        ),
        (
            ObjectFound(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "status": {"phase": "Failed", "reason": "Evicted", "message": "full"},
                }
            ),
            "Evicted: full",
        ),
        (
            ObjectFound({"status": {"loadBalancer": {"ingress": ["\ud800"]}}}),
            "the value cannot be stored: value.status.loadBalancer.ingress[0]: "
            "text with a lone surrogate at position 0 has no UTF-8 form",
        ),
    ],
)
def test_an_absent_value_is_unknown_with_a_reason(observation: WaitObservation, reason: str) -> None:
    assert output_of(WAIT, observation, Null(), T1) == Unknown(reason, T1)


@pytest.mark.parametrize("observation", [ObjectFound(NO_INGRESS), ObjectFound({}), ObjectNotFound(WEB)])
@pytest.mark.parametrize("previous", [Known(PRUNED), Unknown("the read failed: 503", T1, PRUNED)])
def test_a_known_value_that_vanishes_has_disappeared_and_is_kept_for_display(
    observation: WaitObservation, previous: OutputState
) -> None:
    assert output_of(WAIT, observation, previous, T1) == Unknown("disappeared", T1, PRUNED)


@pytest.mark.parametrize(
    ("observation", "reason"),
    [(ReadFailed("503"), "the read failed: 503"), (TimedOut("slow"), "the wait timed out: slow")],
)
def test_a_known_value_that_cannot_be_read_is_unknown_and_kept_for_display(
    observation: WaitObservation, reason: str
) -> None:
    assert output_of(WAIT, observation, Known(PRUNED), T1) == Unknown(reason, T1, PRUNED)


def test_a_known_value_of_an_older_generation_is_out_of_date_and_not_gone() -> None:
    status: Json = {"observedGeneration": 3, "loadBalancer": {"ingress": [{"ip": "10.0.0.8"}]}}

    assert output_of(
        WAIT, ObjectFound({"metadata": {"generation": 4}, "status": status}), Known(PRUNED), T1
    ) == Unknown(
        "status.loadBalancer.ingress is out of date: it speaks of generation 3, and the object is at generation 4",
        T1,
        PRUNED,
    )


def test_a_value_of_another_wait_is_no_last_value_of_this_one() -> None:
    previous = Known({"status": {"phase": "Running"}})

    assert output_of(WAIT, ObjectFound(NO_INGRESS), previous, T1) == Unknown(
        "status.loadBalancer.ingress is not there yet", T1
    )


def test_a_new_reason_keeps_the_time_it_became_unknown() -> None:
    assert output_of(WAIT, ReadFailed("503"), Unknown("x", T0), T1) == Unknown("the read failed: 503", T0)


def test_a_missing_since_is_set_again() -> None:
    assert output_of(WAIT, ReadFailed("503"), from_data("?"), T1) == Unknown("the read failed: 503", T1)


@pytest.mark.parametrize("observation", [ObjectFound({"metadata": {}}), ReadFailed("503")])
def test_the_last_value_of_a_path_that_is_secret_by_now_is_dropped(observation: WaitObservation) -> None:
    previous = Known({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}})

    output = output_of(FieldWait(Path(("metadata", "annotations"))), observation, previous, T1)

    assert isinstance(output, Unknown)
    assert output.last is MISSING


# --- Dependants ------------------------------------------------------------------------------------------------------


def test_a_dependant_gets_the_value_at_its_path() -> None:
    assert value_at(Known(PRUNED), Path.parse("status.loadBalancer.ingress[0].ip"), WEB) == "10.0.0.7"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (Unknown("the read failed: 503", T0), f"unknown since {T0}: the read failed: 503"),
        (Unknown("disappeared", "", PRUNED), "waiting for status.x of Service shop/web: disappeared"),
        (Known(PRUNED), "it is not in the value that Service shop/web waits for"),
        (Known({"status": {"x": None}}), "it is not in the value that Service shop/web waits for"),
    ],
)
def test_a_dependant_of_an_unknown_value_is_blocked(output: OutputState, message: str) -> None:
    with pytest.raises(Blocked, match=re.escape(message)) as caught:
        value_at(output, Path(("status", "x")), WEB)

    assert str(caught.value).startswith("waiting for status.x of Service shop/web")


def test_the_error_of_a_dependant_of_an_untracked_value_says_to_add_the_wait() -> None:
    message = "status.x of Service shop/web is not tracked: add waitFor.field to Service shop/web"

    with pytest.raises(ManifestInvalid, match=re.escape(message)):
        value_at(Null(), Path(("status", "x")), WEB)


def test_a_value_that_a_status_has_no_room_for_is_unknown() -> None:
    live: Json = {"status": {"loadBalancer": {"ingress": ["x" * 300_000]}}}

    output = output_of(WAIT, ObjectFound(live), Null(), T1)

    assert isinstance(output, Unknown)
    assert output.reason == (
        "the value cannot be stored: it has 300,070 bytes, and a status has room for 262,144: "
        "wait for a field within it"
    )

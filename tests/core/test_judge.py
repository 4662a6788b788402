"""Judging waits: satisfied, unsatisfied, unsatisfiable."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.redaction import LAST_APPLIED_PATH
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, get_at, set_at
from setpoint.core.wait.judge import (
    ObjectFound,
    ObjectNotFound,
    Satisfied,
    Unsatisfiable,
    Unsatisfied,
    is_present,
    judge,
    judge_observation,
)
from setpoint.core.wait.wait_for import ConditionWait, FieldValueWait, FieldWait, RolloutWait, WaitCriterion
from setpoint.errors import ManifestInvalid
from tests.laws.json_values import json_values, small_json

PHASE = Path(("status", "phase"))
NAME = Path(("spec", "name"))
OLD = "it speaks of generation 1, and the object is at generation 2"
READY = ConditionWait("Ready")

WAITS: tuple[WaitCriterion, ...] = (
    FieldWait(PHASE),
    FieldValueWait(((PHASE, "1"), (NAME, 1))),
    READY,
)


def condition(type_: str, status: str, **more: Json) -> Json:
    return {"type": type_, "status": status, **more}


def live(kind: str = "v1/Service", /, **status: Json) -> Json:
    api_version, _, name = kind.rpartition("/")
    named: Json = {"name": "web", "namespace": "shop", "uid": "u-1", "generation": 2}
    return {"apiVersion": api_version, "kind": name, "metadata": named, "status": status}


KINDS = ("v1/Pod", "v1/PersistentVolumeClaim", "v1/Secret", "apps/v1/Deployment", "batch/v1/Job")
PLACES = (
    "status",
    "status.phase",
    "status.conditions",
    "status.observedGeneration",
    "metadata",
    "spec",
    "metadata.uid",
)
misshapen = st.builds(
    lambda kind, place, value: set_at(live(kind), Path.parse(place), value),
    st.sampled_from(KINDS),
    st.sampled_from(PLACES),
    small_json | json_values | st.builds(lambda status: [condition("Failed", status)], json_values),
)


@given(st.sampled_from(WAITS), json_values | misshapen)
def test_every_object_can_be_judged(wait: WaitCriterion, some: Json) -> None:
    assert isinstance(judge(wait, some), Satisfied | Unsatisfied | Unsatisfiable)


@given(json_values | misshapen)
def test_every_object_is_judged_by_its_rollout_or_has_none(some: Json) -> None:
    with suppress(ManifestInvalid):
        assert isinstance(judge(RolloutWait(), some), Satisfied | Unsatisfied | Unsatisfiable)


@given(json_values)
def test_a_field_is_present_exactly_when_it_is_neither_null_nor_empty(value: Json) -> None:
    there = value is not None and value not in ("", [], {})

    assert is_present(value) is there
    assert not is_present(MISSING)
    assert (judge(FieldWait(NAME), {"spec": {"name": value}}) == Satisfied()) is there


@given(json_values)
def test_every_value_matches_itself(value: Json) -> None:
    assert judge(FieldValueWait(((NAME, value),)), {"spec": {"name": value}}) == Satisfied()


@given(small_json.filter(bool), st.integers(0, 1))
def test_no_status_of_an_older_generation_satisfies(value: Json, observed: int) -> None:
    some = live(observedGeneration=observed, phase=value, conditions=[condition("Ready", "True")])

    for wait in (FieldWait(PHASE), FieldValueWait(((PHASE, value),)), READY):
        assert isinstance(judge(wait, some), Unsatisfied)


# --- field -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [False, 0, "x", [None], {"a": None}])
def test_false_and_zero_satisfy_a_field_wait(value: Json) -> None:
    assert judge(FieldWait(PHASE), live(phase=value)) == Satisfied()


def test_a_missing_field_is_named() -> None:
    assert judge(FieldWait(PHASE), live(other=1)) == Unsatisfied("status.phase is not there yet")
    assert judge(FieldWait(NAME), live()) == Unsatisfied("spec.name is not there yet")
    assert judge(FieldWait(PHASE), live()) == Unsatisfied("status.phase is not there yet: the object has no status")


def test_a_field_of_an_old_status_is_out_of_date() -> None:
    result = judge(FieldWait(PHASE), live(phase="Running", observedGeneration=1))

    assert result == Unsatisfied(f"status.phase is out of date: {OLD}")


def test_a_status_of_an_object_without_generations_is_never_out_of_date() -> None:
    some: Json = {"metadata": {"generation": "2"}, "status": {"observedGeneration": 1, "phase": "Running"}}

    assert judge(FieldWait(PHASE), some) == Satisfied()


def test_a_field_outside_the_status_is_never_out_of_date() -> None:
    some = set_at(live(observedGeneration=1), NAME, "web")

    assert judge(FieldWait(NAME), some) == Satisfied()


# --- fieldValue ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "current"),
    [("3", 3), ("true", True), ("0.5", 0.5), (3, 3.0), ({"a": [1]}, {"a": [1.0]}), (None, None)],
)
def test_text_also_matches_the_scalar_that_reads_the_same(wanted: Json, current: Json) -> None:
    assert judge(FieldValueWait(((PHASE, wanted),)), live(phase=current)) == Satisfied()


@pytest.mark.parametrize(
    ("wanted", "current", "text"),
    [
        (3, "3", 'status.phase is "3", wanted 3'),
        (1, True, "status.phase is true, wanted 1"),
        ("null", None, 'status.phase is null, wanted "null"'),
        ("x", ["x"], 'status.phase is ["x"], wanted "x"'),
        ("x", "\ud800", 'status.phase is a value without a JSON form, wanted "x"'),
        ("x", "y" * 78, f'status.phase is "{"y" * 78}", wanted "x"'),
        ("x", "y" * 99, f'status.phase is "{"y" * 78}…, wanted "x"'),
    ],
)
def test_other_values_do_not_match_and_both_are_shown(wanted: Json, current: Json, text: str) -> None:
    assert judge(FieldValueWait(((PHASE, wanted),)), live(phase=current)) == Unsatisfied(text)


def test_a_deeply_nested_value_can_be_judged() -> None:
    nested: Json = "x"
    for _ in range(5000):
        nested = [nested]

    assert judge(FieldValueWait(((PHASE, ["x"]),)), live(phase=nested)) == Unsatisfied(
        'status.phase is a value without a JSON form, wanted ["x"]'
    )


def test_every_entry_has_to_match_and_each_that_does_not_is_named() -> None:
    wait = FieldValueWait(((PHASE, "Running"), (NAME, "web"), (Path(("kind",)), "Service")))

    assert judge(wait, live(phase="Pending")) == Unsatisfied(
        'status.phase is "Pending", wanted "Running"; spec.name is not there, wanted "web"'
    )


def test_a_value_of_an_old_status_is_out_of_date() -> None:
    result = judge(FieldValueWait(((PHASE, "Running"),)), live(phase="Running", observedGeneration=1))

    assert result == Unsatisfied(f"status.phase is out of date: {OLD}")


SECRET: Json = {"apiVersion": "v1", "kind": "Secret", "type": "a", "data": {"a": "aHVudGVyMg=="}}
REFUSAL = "secret values do not become outputs, nor are they compared: a status is not confidential"


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ("data.a", "data"),
        ("data", "data"),
        ("stringData.b", "stringData"),
        ("metadata", str(LAST_APPLIED_PATH)),
    ],
)
def test_a_secret_value_satisfies_no_wait(path: str, secret: str) -> None:
    refused = Unsatisfiable("SecretValue", f"{path} is, or contains, {secret}: {REFUSAL}")

    assert judge(FieldWait(Path.parse(path)), SECRET) == refused
    # The right value and a wrong one give the same answer.
    for wanted in (get_at(SECRET, Path.parse(path)), "another"):
        values = ((Path(("type",)), "a"), (Path.parse(path), None if isinstance(wanted, Missing) else wanted))
        assert judge(FieldValueWait(values), SECRET) == refused


def test_other_values_of_a_secret_are_compared_and_hidden() -> None:
    assert judge(FieldWait(Path(("type",))), SECRET) == Satisfied()
    assert judge(FieldValueWait(((Path(("type",)), "b"), (Path(("metadata", "name")), "c"))), SECRET) == Unsatisfied(
        "type is (hidden), wanted (hidden); metadata.name is not there, wanted (hidden)"
    )


# --- condition -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "result"),
    [
        ({"conditions": [condition("Ready", "True")]}, Satisfied()),
        (
            {"conditions": [condition("Ready", "True", observedGeneration=2)], "observedGeneration": 1},
            Satisfied(),
        ),
        (
            {"conditions": [condition("Ready", "True", observedGeneration=1)], "observedGeneration": 2},
            Unsatisfied(f"condition Ready is out of date: {OLD}"),
        ),
        (
            {"conditions": [condition("Ready", "True")], "observedGeneration": 1},
            Unsatisfied(f"condition Ready is out of date: {OLD}"),
        ),
        ({"conditions": [condition("Ready", "Unknown")]}, Unsatisfied("condition Ready is Unknown, wanted True")),
        (
            {"conditions": [condition("Ready", "False", reason="NoIp", message="none left")]},
            Unsatisfied("condition Ready is False, wanted True (NoIp: none left)"),
        ),
        (
            {"conditions": [condition("ready", "True"), condition("Synced", "True")]},
            Unsatisfied("condition Ready is not there yet (there: ready, Synced)"),
        ),
        ({"conditions": {"Ready": "True"}}, Unsatisfied("condition Ready is not there yet (there: none)")),
    ],
)
def test_a_condition_counts_with_its_status_and_for_its_generation(status: dict[str, Json], result: object) -> None:
    assert judge(READY, live(**status)) == result


def test_a_condition_may_be_waited_for_to_be_false() -> None:
    assert judge(ConditionWait("Ready", "False"), live(conditions=[condition("Ready", "False")])) == Satisfied()


# --- failure ---------------------------------------------------------------------------------------------------------

JOB_FAILED = condition("Failed", "True", reason="BackoffLimitExceeded", message="gave up after 6 pods")
STUCK = condition("Progressing", "False", reason="ProgressDeadlineExceeded", message="no progress in 600 s")


@pytest.mark.parametrize(
    ("some", "reason", "message"),
    [
        (live("batch/v1/Job", conditions=[JOB_FAILED]), "BackoffLimitExceeded", "gave up after 6 pods"),
        (
            live("batch/v1/Job", conditions=[condition("Failed", "True")]),
            "Failed",
            "Job shop/web: Failed is True",
        ),
        (
            live("apps/v1/Deployment", conditions=[STUCK], observedGeneration=2),
            "ProgressDeadlineExceeded",
            "no progress in 600 s",
        ),
        (live("v1/Pod", phase="Failed"), "PodFailed", "Pod shop/web has failed"),
        (live("v1/Pod", phase="Failed", reason="Evicted", message="disk is full"), "Evicted", "disk is full"),
        (
            live("v1/PersistentVolumeClaim", phase="Lost"),
            "ClaimLost",
            "PersistentVolumeClaim shop/web has lost its volume",
        ),
    ],
)
def test_a_failure_ends_every_wait_at_once(some: Json, reason: str, message: str) -> None:
    for wait in (FieldWait(NAME), FieldValueWait(((NAME, "web"),)), READY):
        assert judge(wait, some) == Unsatisfiable(reason, message)


def test_a_failure_ends_a_rollout() -> None:
    assert judge(RolloutWait(), live("batch/v1/Job", conditions=[JOB_FAILED])) == Unsatisfiable(
        "BackoffLimitExceeded", "gave up after 6 pods"
    )


@pytest.mark.parametrize(
    "some",
    [
        live("batch/v1/Job", conditions=[condition("Failed", "False")]),
        live("example.com/v1/Job", conditions=[JOB_FAILED]),
        live("apps/v1/Deployment", conditions=[STUCK], observedGeneration=1),
        live("apps/v1/Deployment", conditions=[condition("Progressing", "False", reason="Paused")]),
        live("apps/v1/Deployment", conditions=[condition("Progressing", "True")]),
        live("v1/Pod", phase="Pending"),
        live("v1/PersistentVolumeClaim", phase="Pending"),
        live("v1/Service", phase="Failed"),
    ],
)
def test_an_object_that_has_not_failed_is_waited_for(some: Json) -> None:
    assert judge(FieldWait(NAME), some) == Unsatisfied("spec.name is not there yet")


def test_a_failure_that_is_waited_for_satisfies() -> None:
    job = live("batch/v1/Job", conditions=[JOB_FAILED])

    assert judge(ConditionWait("Failed"), job) == Satisfied()
    assert judge(FieldValueWait(((PHASE, "Failed"),)), live("v1/Pod", phase="Failed")) == Satisfied()


def test_a_rollout_is_judged_by_its_counts() -> None:
    spec: Json = {"replicas": 0}

    assert judge(RolloutWait(), live("apps/v1/Deployment")) == Unsatisfied("the controller has not reported yet")
    assert (
        judge(RolloutWait(), set_at(live("apps/v1/Deployment", observedGeneration=2), Path(("spec",)), spec))
        == Satisfied()
    )


# --- the object itself -----------------------------------------------------------------------------------------------


@given(st.sampled_from(WAITS), json_values | misshapen)
def test_the_first_observation_is_judged_like_any_other(wait: WaitCriterion, some: Json) -> None:
    assert judge_observation(wait, ObjectFound(some), MISSING) == judge(wait, some)


def test_an_object_that_never_existed_is_waited_for() -> None:
    result = judge_observation(READY, ObjectNotFound("Service shop/web"), MISSING)

    assert result == Unsatisfied("Service shop/web does not exist yet")


def test_an_object_deleted_while_waited_for_fails_the_wait() -> None:
    result = judge_observation(READY, ObjectNotFound("Service shop/web"), "u-1")

    assert result == Unsatisfiable("Deleted", "Service shop/web was deleted while it was waited for")


def test_an_object_recreated_while_waited_for_fails_the_wait() -> None:
    unready = live(conditions=[condition("Ready", "False")])

    assert isinstance(judge_observation(READY, ObjectFound(unready), "u-1"), Unsatisfied)
    assert judge_observation(READY, ObjectFound(unready), "u-0") == Unsatisfiable(
        "Recreated", "Service shop/web was replaced by another while it was waited for"
    )


def test_a_recreated_object_that_satisfies_the_wait_is_accepted() -> None:
    ready = live(conditions=[condition("Ready", "True")])

    assert judge_observation(READY, ObjectFound(ready), "u-0") == Satisfied()


def test_an_object_without_a_uid_does_not_count_as_recreated() -> None:
    assert judge_observation(FieldWait(NAME), ObjectFound({"spec": {"name": "web"}}), "u-1") == Satisfied()

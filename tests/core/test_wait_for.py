"""Waits: their manifest form and the key of their satisfaction."""

import datetime
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.canonical import digest, same
from setpoint.core.values.json_types import MISSING, Json
from setpoint.core.values.paths import Path
from setpoint.core.wait.wait_for import (
    WAIT_CRITERIA,
    ConditionWait,
    FieldValueWait,
    FieldWait,
    RolloutWait,
    SatisfactionKey,
    WaitCriterion,
    WaitFor,
    parse_wait,
    satisfaction_key,
)
from setpoint.errors import ManifestInvalid, NotJson, UnknownField, UserError
from tests.laws.json_values import json_values, paths

INGRESS = Path(("status", "loadBalancer", "ingress"))
PHASE = Path(("status", "phase"))
LIVE: Json = {"metadata": {"uid": "u-1", "generation": 4}}

some_paths = paths.filter(bool)
values = st.dictionaries(some_paths, json_values, min_size=1, max_size=3)
waits: st.SearchStrategy[WaitCriterion] = (
    st.builds(FieldWait, some_paths)
    | values.map(lambda entries: FieldValueWait(tuple(entries.items())))
    | st.builds(
        ConditionWait,
        type=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,8}", fullmatch=True),
        status=st.sampled_from(("True", "False", "Unknown")),
    )
    | st.just(RolloutWait())
)
waits_for = st.builds(WaitFor, wait=waits, timeout_seconds=st.floats(1e-9, 9e9))
member_names = st.sampled_from(("field", "fieldValue", "condition", "rollout", "timeout", "type", "status"))


def manifest_form(wait_for: WaitFor) -> dict[str, Json]:
    """`waitFor` as an author writes it."""
    return {**_criterion_form(wait_for.wait), "timeout": wait_for.timeout_seconds}


def _criterion_form(wait: WaitCriterion) -> dict[str, Json]:
    match wait:
        case FieldWait(path):
            return {"field": str(path)}
        case FieldValueWait(values):
            return {"fieldValue": {str(path): value for path, value in values}}
        case ConditionWait(type_, status):
            return {"condition": {"type": type_, "status": status}}
        case RolloutWait():
            return {"rollout": True}


@given(waits_for)
def test_parsing_undoes_writing(wait_for: WaitFor) -> None:
    again = parse_wait(manifest_form(wait_for))

    assert type(again.wait) is type(wait_for.wait)
    assert same(manifest_form(again), manifest_form(wait_for))


@given(waits)
def test_every_criterion_is_parsed_from_its_own_data(wait: WaitCriterion) -> None:
    again = type(wait).parse(wait.to_data())

    assert {wait.member: wait.to_data()} == _criterion_form(wait)
    assert same({again.member: again.to_data()}, _criterion_form(wait))


def test_the_criteria_are_the_members_of_wait_for() -> None:
    assert [one.member for one in WAIT_CRITERIA] == ["field", "fieldValue", "condition", "rollout"]


@given(json_values | st.dictionaries(member_names, json_values, max_size=2))
def test_any_data_is_a_wait_or_an_error_of_the_author(data: Json) -> None:
    with suppress(UserError):
        assert parse_wait(data).timeout_seconds > 0


@given(waits, waits)
def test_waits_share_a_key_exactly_when_their_manifest_form_is_the_same(a: WaitCriterion, b: WaitCriterion) -> None:
    alike = same(manifest_form(WaitFor(a)), manifest_form(WaitFor(b)))

    assert (satisfaction_key(a, LIVE) == satisfaction_key(b, LIVE)) is alike


@given(waits, json_values)
def test_an_object_without_a_uid_has_no_key(wait: WaitCriterion, live: Json) -> None:
    assert satisfaction_key(wait, live) is MISSING


@pytest.mark.parametrize(
    ("data", "wait_for"),
    [
        ({"field": "status.loadBalancer.ingress", "timeout": "5m"}, WaitFor(FieldWait(INGRESS), 300.0)),
        ({"field": ".status.phase"}, WaitFor(FieldWait(PHASE), 600.0)),
        ({"fieldValue": {"status.phase": "Running"}}, WaitFor(FieldValueWait(((PHASE, "Running"),)))),
        ({"condition": "Ready"}, WaitFor(ConditionWait("Ready", "True"))),
        ({"condition": {"type": "Ready"}, "timeout": 5}, WaitFor(ConditionWait("Ready", "True"), 5.0)),
        ({"condition": {"type": "Ready", "status": "Unknown"}}, WaitFor(ConditionWait("Ready", "Unknown"))),
        ({"condition": {"type": "Ready", "status": False}}, WaitFor(ConditionWait("Ready", "False"))),
        ({"condition": {"type": "Ready", "status": True}}, WaitFor(ConditionWait("Ready", "True"))),
        ({"rollout": True}, WaitFor(RolloutWait())),
    ],
)
def test_reads_each_manifest_form(data: Json, wait_for: WaitFor) -> None:
    assert parse_wait(data) == wait_for


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("rollout", "waitFor is 'rollout': write a map with field, fieldValue, condition, rollout, timeout"),
        ({}, "waitFor: give exactly one of field, fieldValue, condition, rollout; it has none"),
        (
            {"timeout": "5m"},
            "waitFor: give exactly one of field, fieldValue, condition, rollout; it has none",
        ),
        ({"rollout": True, "field": "a"}, "it has field and rollout"),
        ({"rollout": False}, "waitFor.rollout is False: write true, or leave it out"),
        ({"rollout": 1}, "waitFor.rollout is 1: write true, or leave it out"),
        ({"field": ""}, "waitFor.field is '': write a path such as status.loadBalancer.ingress"),
        ({"field": ["a"]}, "waitFor.field is ['a']: write a path such as status.loadBalancer.ingress"),
        ({"field": "a..b"}, "waitFor.field: the path 'a..b' breaks off at character 3"),
        ({"fieldValue": "a=b"}, "waitFor.fieldValue is 'a=b': write a map of paths"),
        ({"fieldValue": {}}, "waitFor.fieldValue is {}: write a map of paths"),
        ({"fieldValue": {"a..b": 1}}, "waitFor.fieldValue: the path 'a..b' breaks off at character 3"),
        ({"fieldValue": {"a": 1, ".a": 2}}, "waitFor.fieldValue names one path twice"),
        ({"condition": 5}, "waitFor.condition is 5: write a map with type, status"),
        ({"condition": {}}, "waitFor.condition.type is None: write a type such as Ready"),
        ({"condition": "Ready=False"}, "waitFor.condition.type is 'Ready=False'"),
        ({"condition": {"type": "Ready", "status": "true"}}, "waitFor.condition.status is 'true'"),
        ({"rollout": True, "timeout": "0s"}, "waitFor.timeout: '0s' is no duration above 0"),
    ],
)
def test_an_invalid_wait_is_refused_with_the_wrong_member(data: Json, message: str) -> None:
    with pytest.raises(ManifestInvalid, match=re.escape(message)):
        parse_wait(data)


@pytest.mark.parametrize(
    ("data", "message", "nearest"),
    [
        ({"feild": "a"}, "waitFor.feild: no such member; did you mean field?", ("field",)),
        (
            {"field_value": {}},
            "waitFor.field_value: no such member; did you mean fieldValue",
            ("fieldValue",),
        ),
        (
            {"condition": {"type": "A", "state": "True"}},
            "waitFor.condition.state: no such member",
            ("status",),
        ),
        (
            {"xyz": 1},
            "waitFor.xyz: no such member; there is field, fieldValue, condition, rollout, timeout",
            (),
        ),
    ],
)
def test_names_the_nearest_member(data: Json, message: str, nearest: tuple[str, ...]) -> None:
    with pytest.raises(UnknownField, match=re.escape(message)) as caught:
        parse_wait(data)

    assert caught.value.nearest == nearest


def test_refuses_a_value_without_a_json_form() -> None:
    with pytest.raises(NotJson):
        parse_wait({"fieldValue": {"a": datetime.date(2026, 1, 1)}})


def test_a_key_names_the_object_its_generation_and_the_wait() -> None:
    key = satisfaction_key(RolloutWait(), LIVE)

    assert key == SatisfactionKey("u-1", 4, digest({"rollout": True}))
    assert str(key) == "u-1/4/" + digest({"rollout": True})


def test_a_new_generation_a_new_object_and_a_new_wait_each_give_a_new_key() -> None:
    key = satisfaction_key(RolloutWait(), LIVE)

    assert satisfaction_key(RolloutWait(), {"metadata": {"uid": "u-1", "generation": 5}}) != key
    assert satisfaction_key(RolloutWait(), {"metadata": {"uid": "u-2", "generation": 4}}) != key
    assert satisfaction_key(ConditionWait("Ready"), LIVE) != key


def test_a_kind_without_generations_has_generation_0() -> None:
    key = satisfaction_key(RolloutWait(), {"metadata": {"uid": "u-1"}})

    assert key == SatisfactionKey("u-1", 0, digest({"rollout": True}))

"""Redaction: the values of Secrets are in no change."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.diff import FieldChange, diff, redact_changes
from setpoint.core.redaction import REDACTED, holds_secret_object, is_secret, redact_record, redact_untyped
from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import Path

SECRET: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
KUBECTL = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.mark.parametrize(
    ("object_", "is_one"),
    [
        (SECRET, True),
        ({**SECRET, "apiVersion": "x/v1"}, False),
        ({**SECRET, "kind": "ConfigMap"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_secret_is_recognised_by_group_and_kind(object_: Any, is_one: bool) -> None:
    assert is_secret(object_) is is_one


@pytest.mark.parametrize(
    "path",
    [
        Path(("data",)),
        Path(("data", "key")),
        Path(("stringData", "key")),
        Path(("metadata", "annotations", KUBECTL)),
        # An object that contains secret values is redacted as a whole.
        Path(("metadata", "annotations")),
        Path(("metadata",)),
        Path(),
    ],
)
def test_secret_values_are_redacted(path: Path) -> None:
    (change,) = redact_changes([FieldChange(path, {"key": "old"}, {"key": "new"})], SECRET)

    assert (change.before, change.after) == (REDACTED, REDACTED)


def test_a_redacted_change_still_shows_whether_a_value_exists() -> None:
    key = Path(("data", "key"))

    changes = redact_changes([FieldChange(key, MISSING, "new"), FieldChange(key, "old", MISSING)], SECRET)

    assert [(one.before, one.after) for one in changes] == [(MISSING, REDACTED), (REDACTED, MISSING)]


def test_other_fields_of_a_secret_are_shown() -> None:
    changes = (FieldChange(Path(("type",)), "a", "b"), FieldChange(Path(("metadata", "labels")), {}, {"a": "b"}))

    assert redact_changes(changes, SECRET) == changes


def test_objects_of_other_kinds_are_not_redacted() -> None:
    changes = (FieldChange(Path(("data", "key")), "old", "new"),)

    assert redact_changes(changes, {**SECRET, "kind": "ConfigMap"}) == changes


values = st.text(alphabet="xyz", min_size=9, max_size=12)
secrets = st.fixed_dictionaries(
    {"apiVersion": st.just("v1"), "kind": st.just("Secret")},
    optional={
        "type": st.sampled_from(("Opaque", "tls")),
        "data": st.dictionaries(st.sampled_from("abc"), values),
        "stringData": st.dictionaries(st.sampled_from("abc"), values),
        "metadata": st.fixed_dictionaries({"annotations": st.fixed_dictionaries({}, optional={KUBECTL: values})}),
    },
)


@pytest.mark.laws
@given(secrets, secrets)
def test_the_changes_between_two_secrets_hold_no_value_of_either(before: Any, after: Any) -> None:
    shown = str(redact_changes(diff(before, after), before))

    for side in (before, after):
        held = [*side.get("data", {}).values(), *side.get("stringData", {}).values()]
        held += side.get("metadata", {}).get("annotations", {}).values()
        assert [value for value in held if value in shown] == []


@pytest.mark.parametrize(
    ("body", "redacted"),
    [
        ({"rootPassword": "hunter2", "tier": "a"}, {"rootPassword": REDACTED, "tier": "a"}),
        ({"clientKey": "-----BEGIN", "clientCertificate": "c"}, {"clientKey": REDACTED, "clientCertificate": "c"}),
        (
            {"settings": [{"api_key": "k"}, {"clientToken": ["t"]}]},
            {"settings": [{"api_key": REDACTED}, {"clientToken": REDACTED}]},
        ),
        # An empty value and a boolean reveal nothing; an object is a reference, or is walked into.
        ({"password": "", "secretRotation": True}, {"password": "", "secretRotation": True}),
        ({"secretRef": {"name": "s", "token": "t"}}, {"secretRef": {"name": "s", "token": REDACTED}}),
        (
            {**SECRET, "metadata": {"name": "s"}, "data": {"a": "b"}, "stringData": {"a": "b"}},
            {**SECRET, "metadata": {"name": "s"}, "data": REDACTED, "stringData": REDACTED},
        ),
        # kubectl's copy of the whole Secret, and no other annotation.
        (
            {**SECRET, "metadata": {"name": "s", "annotations": {KUBECTL: '{"data":{"a":"b"}}', "team": "x"}}},
            {**SECRET, "metadata": {"name": "s", "annotations": {KUBECTL: REDACTED, "team": "x"}}},
        ),
        (
            {"kind": "Secret", "metadata": "none", "data": None},
            {"kind": "Secret", "metadata": "none", "data": REDACTED},
        ),
        (None, None),
        (["a", 1], ["a", 1]),
    ],
)
def test_a_body_without_a_schema_is_redacted_by_the_names_of_its_members(body: Any, redacted: Any) -> None:
    assert redact_untyped(body) == redacted


@pytest.mark.parametrize(
    ("value", "is_held"),
    [
        (SECRET, True),
        ({"spec": {"items": [{"a": 1}, SECRET]}}, True),
        ({"kind": "SecretList", "items": [{}]}, True),
        ({"spec": {"manifest": "kind: Secret"}}, True),
        ({"spec": {"manifest": "kind: ConfigMap"}}, False),
        ({"spec": {"secretRef": "Secret"}}, False),
        (None, False),
    ],
)
def test_a_secret_is_found_at_every_depth(value: Any, is_held: bool) -> None:
    assert holds_secret_object(value) is is_held


def test_a_record_of_a_step_is_redacted_by_the_paths_of_its_changes() -> None:
    record: Any = {
        "at": "now",
        "writes": [{"path": "spec.tier", "before": "a"}, {"path": "spec.password", "after": "b"}],
    }

    assert redact_record(record, whole=False) == {
        "at": "now",
        "writes": [{"path": "spec.tier", "before": "a"}, {"path": "spec.password", "after": REDACTED}],
    }
    assert redact_record(record, whole=True) == {
        "at": "now",
        "writes": [{"path": "spec.tier", "before": REDACTED}, {"path": "spec.password", "after": REDACTED}],
    }

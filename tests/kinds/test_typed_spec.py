"""Errors of invalid specs: the field as the author wrote it, and similar names."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from setpoint.core.values.canonical import canonical
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid
from setpoint.kind.typed_spec import decode_spec
from setpoint.kinds.gcp.storage_bucket import StorageBucketSpec
from tests.kinds.kind_harness import bucket


def in_memory(spec: Mapping[str, Any]) -> Resource:
    """A bucket as a tree."""
    return Resource(bucket(spec))


def in_a_store(spec: Mapping[str, Any]) -> Resource:
    """A bucket as a store has it: the author's part in bytes."""
    document = bucket(spec)
    return Resource(document, canonical({name: one for name, one in document.items() if name != "metadata"}))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"storageclass": "X"}, "there is no field spec.storageclass; did you mean spec.storageClass?"),
        (
            {"versioning": {"enable": True}},
            "there is no field spec.versioning.enable; did you mean spec.versioning.enabled?",
        ),
        (
            {"retentionPeriod": 1},
            "there is no field spec.retentionPeriod; "
            "did you mean spec.retentionPolicy.retentionPeriod or spec.retentionPolicy?",
        ),
        (
            {"lifecycleRule": [{"action": {"typ": "Delete"}, "condition": {}}]},
            "there is no field spec.lifecycleRule[0].action.typ; did you mean spec.lifecycleRule[0].action.type?",
        ),
        ({"zzz": 1}, "there is no field spec.zzz"),
        ({"versioning": {}}, "spec.versioning.enabled is missing: write it"),
        ({"versioning": {"enabled": "yes"}}, "spec.versioning.enabled is text: write true or false, without quotes"),
        ({"cors": {}}, "spec.cors is a map: write a list"),
        ({"ipFilter": {"mode": "On"}}, "spec.ipFilter.mode: invalid enum value 'On'; write Enabled or Disabled"),
    ],
)
@pytest.mark.parametrize("declared", [in_memory, in_a_store])
def test_the_error_names_the_field_and_the_correct_form(
    spec: dict[str, Any], message: str, declared: Callable[[Mapping[str, Any]], Resource]
) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        decode_spec(declared(spec), StorageBucketSpec)

    assert str(caught.value) == f"StorageBucket team/some-bucket: {message}"


def test_every_wrong_field_is_told_in_the_order_of_the_spec() -> None:
    rules = [{"action": {"type": "Delete"}, "condition": {"age": "x"}}, {"action": {"typ": "Delete"}}]
    spec = {"loction": "EU", "lifecycleRule": rules, "cors": [{"origin": [7, "*", 8]}], "versioning": {}, "zzz": 1}
    with pytest.raises(ManifestInvalid) as caught:
        decode_spec(Resource(bucket(spec)), StorageBucketSpec)

    problems = caught.value.problems
    assert str(caught.value) == "\n".join(map(str, problems))
    assert [str(one).removeprefix("StorageBucket team/some-bucket: ") for one in problems] == [
        "there is no field spec.loction; did you mean spec.location?",
        "spec.lifecycleRule[0].condition.age is text: write a whole number, without quotes",
        "there is no field spec.lifecycleRule[1].action.typ; did you mean spec.lifecycleRule[1].action.type?",
        "spec.lifecycleRule[1].condition is missing: write it",
        "spec.cors[0].origin[0] is a number: write text, in quotes",
        "spec.cors[0].origin[2] is a number: write text, in quotes",
        "spec.versioning.enabled is missing: write it",
        "there is no field spec.zzz",
    ]


def test_a_spec_with_thousands_of_mistakes_tells_the_first_fifty() -> None:
    with pytest.raises(ManifestInvalid) as caught:
        decode_spec(Resource(bucket({"cors": [{"origin": [7] * 3000}]})), StorageBucketSpec)

    assert len(caught.value.problems) == 50


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"location": None, "labels": None},
        {"versioning": {"enabled": True}, "retentionPolicy": {"retentionPeriod": 3155760000}},
        {"lifecycleRule": [{"action": {"type": "Delete"}, "condition": {"age": 0, "matchesPrefix": ["ä/"]}}]},
    ],
)
def test_a_spec_in_bytes_is_the_same_as_that_in_a_tree(spec: Mapping[str, Any]) -> None:
    def decoded(resource: Resource) -> object:
        try:
            return decode_spec(resource, StorageBucketSpec)
        except ManifestInvalid as error:
            return str(error)

    assert decoded(in_a_store(spec)) == decoded(in_memory(spec))

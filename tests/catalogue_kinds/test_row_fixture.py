"""Fixtures that are made from rows say what a person would write, and what they leave out."""

import pytest

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import FieldFacts
from setpoint.testing import MovedObject, Part, SpecifiedField
from setpoint.testing.contract import CLAIMS
from tests.catalogue_kinds.contract_run import tried_kinds
from tests.catalogue_kinds.fixtures import fixture_of
from tests.catalogue_kinds.left_out import claims_left_out
from tests.catalogue_kinds.row_fixture import RowFixture
from tests.catalogue_kinds.spec_values import value_of
from tests.catalogue_kinds.varied_fields import NO_FIELD, CannotUpdate, FixedField


def _fixture(kind: str) -> type[RowFixture]:
    return fixture_of(next(name for name in kinds_by_group() if name[1] == kind))


def test_the_fixture_of_a_topic() -> None:
    found = _fixture("PubSubTopic")

    assert found.path == "/pubsub.googleapis.com/v1/projects/some-project/topics/some-object"
    assert found.minimal == {}
    assert found.field == SpecifiedField("spec.messageRetentionDuration", "3600s", "7200s", "10800s")
    assert found.moved == MovedObject({"resourceID": "another-object"}, "another-object")
    assert found.labels_member == "labels"
    assert found.referring.spec == {"kmsKeyRef": {"name": "target"}}
    assert found.without[Part.OPERATIONS] == "the service answers an update when it is done"


def test_the_fixture_of_an_object_in_another_one() -> None:
    found = _fixture("WorkstationConfig")

    cluster = "projects/some-project/locations/global/workstationClusters/some-workstationcluster"
    assert found.minimal["parentRef"] == {"external": cluster}
    assert found.location == f"{cluster}/workstationConfigs/some-object"


def test_the_fixture_of_an_object_whose_id_the_service_makes() -> None:
    found = _fixture("Folder")

    assert found.location == "folders/some-object"
    assert found.minimal == {"displayName": "first"}
    assert found.without[Part.ADOPTION] == "its service makes the ids: no object is found by its name"
    assert not hasattr(found, "moved")


def test_an_object_without_a_field_is_there_or_not() -> None:
    fixture = _fixture("KMSKeyRing")()

    assert fixture.field is NO_FIELD
    assert fixture.spec(NO_FIELD.first) == {"location": "europe-west1"}


def test_a_field_that_no_update_sets_has_one_value() -> None:
    field = _fixture("PubSubSchema").field

    assert isinstance(field, FixedField)
    assert field.first == "first"
    with pytest.raises(CannotUpdate):
        _ = field.then


@pytest.mark.parametrize(
    ("facts", "values"),
    [
        (FieldFacts("string"), ["first", "second", "third"]),
        (FieldFacts("string", enum=["KIND_UNSPECIFIED", "A", "B", "C"]), ["C", "B", "A"]),
        (FieldFacts("integer"), [10, 20, 30]),
        (FieldFacts("list", items="string"), [["first"], ["second"], ["third"]]),
        (
            FieldFacts("object", fields={"a": FieldFacts("string", required=True), "b": FieldFacts()}),
            [{"a": "first"}] * 3,
        ),
    ],
)
def test_three_values_of_a_field(facts: FieldFacts, values: list[object]) -> None:
    assert [value_of(facts, position) for position in range(3)] == values


def test_what_is_left_out_of_the_contract_are_claims_of_it() -> None:
    left_out = {claim for name in tried_kinds() for claim in claims_left_out(fixture_of(name))}

    assert left_out - {one.name for one in CLAIMS} == set()

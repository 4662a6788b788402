"""The generic kind: what holds for every row of the catalogue, and the rules that it compares and sends by."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.app.kinds import catalogue_kinds
from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import FieldFacts, KindFacts, facts_of
from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.core.filled_fields import filled_marks, with_removed
from setpoint.core.overlay import Declared, overlay
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.schema.shape import shape_of
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.kind import Location, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid
from setpoint.kinds.gcp.generic.equivalence import fitted, is_zero, same_link
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.members import from_members, member_path, to_members
from setpoint.kinds.gcp.generic.placement import segments, templates_of, variables_of
from setpoint.kinds.gcp.generic.requests import api_of
from setpoint.kinds.gcp.generic.spec_types import is_choice, tree_type_of

ROWS = [facts_of(name) for name in kinds_by_group()]
PROJECT = {"cnrm.cloud.google.com/project-id": "some-project"}
words = st.text("abcdefg-", min_size=1, max_size=8)


def value_of(facts: FieldFacts) -> st.SearchStrategy[Any]:
    """Values as the compared tree has them; none that an answer may leave out."""
    single = single_of(facts)
    return st.lists(single, min_size=1, max_size=2) if facts.type == "list" else single


def single_of(facts: FieldFacts) -> st.SearchStrategy[Any]:
    if (ref := facts.ref) is not None:
        # With its prefix, as every reference has it by then.
        return words.map(lambda text: {"external": f"{ref.prefix}{text}"})
    if facts.fields:
        return spec_of(facts.fields, some=True)
    kind = facts.items if facts.type == "list" else facts.type
    match kind:
        case "integer":
            return st.integers(1, 2**40)
        case "number":
            return st.floats(1, 100, allow_nan=False)
        case "boolean":
            return st.just(True)
        case "map":
            return st.dictionaries(words, words, min_size=1, max_size=2)
        case _:
            return words


def spec_of(fields: dict[str, FieldFacts] | Any, *, some: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    # Which of several fields a member is read as depends on its value: see test_kind_variants.py.
    uses = Counter(member_path(name, facts) for name, facts in fields.items())
    own = [name for name, facts in fields.items() if is_mapped_by_name(name, facts)]
    known = {name: fields[name] for name in own if uses[member_path(name, fields[name])] == 1}
    if not known:
        return st.just({})
    names = st.lists(st.sampled_from(sorted(known)), unique=True, min_size=1 if some else 0, max_size=4)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: value_of(known[name]) for name in chosen}))


def is_mapped_by_name(name: str, facts: FieldFacts) -> bool:
    """Whether the field has a member of its own, and can be read back."""
    is_own = bool(member_path(name, facts)) and "." not in facts.to and not facts.secret
    is_odd = facts.shape is not None or facts.values or facts.adds or is_choice(facts) or facts.format == "json-text"
    return is_own and not is_odd and not (facts.fields and not any(map_has(facts)))


def map_has(facts: FieldFacts) -> list[bool]:
    return [is_mapped_by_name(name, one) for name, one in facts.fields.items()]


@given(st.data())
def test_what_is_sent_reads_back_as_it_was(data: st.DataObject) -> None:
    row: KindFacts = data.draw(st.sampled_from(ROWS))
    spec = data.draw(spec_of(row.fields))

    assert declared_part(from_members(to_members(spec, row.fields), row.fields), spec) == spec


def declared_part(read: Any, spec: Any) -> Any:
    """What was read, of the fields in the spec: two fields of a row may be read from one member."""
    if isinstance(read, dict) and isinstance(spec, dict):
        return {name: declared_part(read[name], one) for name, one in spec.items() if name in read}
    if isinstance(read, list) and isinstance(spec, list) and len(read) == len(spec):
        return [declared_part(*pair) for pair in zip(read, spec, strict=True)]
    return read


@given(st.data())
def test_an_object_fits_itself_and_what_it_adds_is_no_change(data: st.DataObject) -> None:
    row: KindFacts = data.draw(st.sampled_from(ROWS))
    live = data.draw(spec_of(row.fields))
    declared = {name: one for name, one in live.items() if data.draw(st.booleans())}

    assert fitted(live, live, row.fields) == live
    assert fitted(declared, live, row.fields) == declared


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.kind)
def test_every_row_has_types_and_a_location_has_the_parts_of_its_template(row: KindFacts) -> None:
    assert shape_of(tree_type_of(row)).fields["spec"].entries
    for template in templates_of(row):
        location = template
        for position, name in enumerate(variables_of(template)):
            location = location.replace(f"{{{name}}}", f"v{position}", 1)
        assert "/".join(segments(row, Location(location))) == location


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("n", "projects/p/global/networks/n", True),
        ("projects/p/global/networks/n", "https://www.googleapis.com/compute/v1/projects/p/global/networks/n", True),
        ("projects/123/secrets/s", "projects/p/secrets/s", True),
        ("//certificatemanager.googleapis.com/projects/p/c/x", "projects/p/c/x", True),
        ("projects/p/secrets/s", "projects/q/secrets/s", False),
        ("projects/p/secrets/s", "projects/p/secrets/t", False),
        ("xn", "projects/p/global/networks/n", False),
    ],
)
def test_links_name_the_same_object_in_every_form(one: str, other: str, expected: bool) -> None:
    assert same_link(one, other) is same_link(other, one) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(False, True), (0, True), ("", True), ("MODE_UNSPECIFIED", True), ([], True), ({}, False), ({"a": False}, True)],
)
def test_what_an_answer_may_leave_out(value: Any, expected: bool) -> None:
    assert is_zero(value) is expected


# --- The kinds --------------------------------------------------------------------------------------------------------


def kind_of(name: str) -> GoogleKind:
    google = GoogleClient(HttpClient(), GoogleSettings(auth=GoogleAuth.ANONYMOUS))
    kinds = catalogue_kinds(google, {})
    found = next(one for key, one in kinds.items() if key[1] == name)
    assert isinstance(found, GoogleKind)
    return found


def resource(kind: GoogleKind, spec: dict[str, Any], **annotations: str) -> Resource:
    metadata: dict[str, Any] = {"name": "some-object", "namespace": "team", "annotations": {**PROJECT, **annotations}}
    return Resource(
        {"apiVersion": f"{kind.group}/{kind.version}", "kind": kind.name, "metadata": metadata, "spec": spec}
    )


def location_of(name: str, spec: dict[str, Any]) -> str:
    kind = kind_of(name)
    return kind.locate(resource(kind, spec), ResolvedReferences())


def test_the_place_in_a_spec_chooses_where_the_object_is() -> None:
    assert location_of("ComputeAddress", {"location": "global"}) == "projects/some-project/global/addresses/some-object"
    assert location_of("ComputeAddress", {"location": "europe-west1"}).split("/")[2:4] == ["regions", "europe-west1"]
    assert location_of("ComputeDisk", {"location": "europe-west1-b"}).split("/")[2:4] == ["zones", "europe-west1-b"]
    assert location_of("PubSubTopic", {"resourceID": "other"}) == "projects/some-project/topics/other"
    account = location_of("IAMServiceAccount", {})
    assert account == "projects/some-project/serviceAccounts/some-object@some-project.iam.gserviceaccount.com"


@pytest.mark.parametrize(
    ("kind", "name", "host"),
    [
        ("VertexAIDataset", "projects/p/locations/europe-west1/datasets/1", "europe-west1-aiplatform.googleapis.com"),
        ("VertexAIDataset", "projects/p/locations/eu/operations/1", "eu-aiplatform.googleapis.com"),
        ("VertexAIDataset", "projects/p/locations/global/operations/1", "aiplatform.googleapis.com"),
        ("PubSubLiteTopic", "projects/1/locations/us-central1-a/topics/t", "us-central1-pubsublite.googleapis.com"),
        ("PubSubTopic", "projects/p/topics/t", "pubsub.googleapis.com"),
    ],
)
def test_an_api_with_a_host_for_each_region_is_asked_at_that_of_the_region(kind: str, name: str, host: str) -> None:
    assert api_of(kind_of(kind).row, name).host == host


def test_a_project_in_the_spec_comes_first() -> None:
    spec = {"projectRef": {"external": "projects/other-project"}, "location": "eu", "format": "DOCKER"}

    assert location_of("LoggingLogBucket", spec).startswith("projects/other-project/locations/eu/buckets/")


def test_protection_that_is_taken_out_of_a_spec_stays_and_other_fields_do_not() -> None:
    shape = shape_of(kind_of("AlloyDBCluster").tree_type)
    network = {"networkRef": {"external": "projects/p/global/networks/n"}}
    before: Any = {"spec": {"location": "eu", "automatedBackupPolicy": {"enabled": True}, **network}}

    marks = filled_marks(Declared(before, shape, FieldPolicy()))
    declared = with_removed(Declared({"spec": {"location": "eu"}}, shape, FieldPolicy()), marks)
    found = overlay(declared, before)

    assert found == {"spec": {"location": "eu", "automatedBackupPolicy": {"enabled": True}}}
    given_up = Declared({"spec": {"automatedBackupPolicy": {"enabled": False}}}, shape, FieldPolicy())
    assert get_at(overlay(given_up, before), Path.parse("spec.automatedBackupPolicy.enabled")) is False


@pytest.mark.parametrize(
    ("name", "spec", "message"),
    [
        ("PubSubTopic", {"messageRetention": "1s"}, "there is no field spec.messageRetention"),
        ("PubSubTopic", {"kmsKeyRef": {}}, "spec.kmsKeyRef needs name or external"),
        ("ComputeNetwork", {"resourceID": "Net_1"}, "spec.resourceID is 'Net_1': write a name that matches"),
        ("PubSubTopic", {"resourceID": "1st"}, "spec.resourceID is '1st': write a name that matches"),
        ("ComputeNetwork", {"routingMode": 7}, "spec.routingMode is a number"),
        ("BigQueryTable", {"datasetRef": {"external": "d"}, "schema": "[{]"}, "spec.schema is no JSON: "),
        (
            "ComputeSSLCertificate",
            {"location": "global", "privateKey": {}, "certificate": {"value": "c"}},
            "privateKey",
        ),
    ],
)
def test_a_wrong_spec_is_refused_with_the_field(name: str, spec: dict[str, Any], message: str) -> None:
    kind = kind_of(name)

    with pytest.raises(ManifestInvalid, match=message.replace(".", r"\.")):
        kind.check(resource(kind, spec))


def test_a_field_without_a_member_can_be_switched_off_and_not_on() -> None:
    kind = kind_of("ComputeInstanceTemplate")
    spec = {"disk": [{"boot": True}], "machineType": "e2-micro"}

    kind.check(resource(kind, {**spec, "enableDisplay": False}))
    with pytest.raises(ManifestInvalid, match="enableDisplay cannot be set"):
        kind.check(resource(kind, {**spec, "enableDisplay": True}))


@pytest.mark.parametrize(("word", "expected"), [("false", True), ("true", False)])
def test_a_service_stays_enabled_where_its_annotation_says_so(word: str, expected: bool) -> None:
    kind = kind_of("Service")

    assert kind.abandons(resource(kind, {}, **{"cnrm.cloud.google.com/disable-on-destroy": word})) is expected
    assert kind.abandons(resource(kind, {})) is False

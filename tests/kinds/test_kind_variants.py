"""Kinds whose ids the service makes, parts of other objects, and members of several fields."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.catalogue.rows import FieldFacts, ReferenceFacts, facts_of
from setpoint.engine.capabilities import ListScope
from setpoint.engine.kind import Location
from setpoint.engine.resource import Resource
from setpoint.errors import DependencyNotReady
from setpoint.kinds.gcp.generic.lists import listed_id
from setpoint.kinds.gcp.generic.members import from_members, to_members
from setpoint.kinds.gcp.generic.part_requests import value_at
from setpoint.kinds.gcp.generic.placement import id_of, listed_at
from setpoint.kinds.gcp.generic.shared_members import with_texts
from setpoint.kinds.gcp.generic.variants.choice import kind_class
from setpoint.kinds.gcp.generic.variants.connections import ConnectionKind
from setpoint.kinds.gcp.generic.variants.databases import DatabaseKind
from setpoint.kinds.gcp.generic.variants.identities import IdentityKind
from setpoint.kinds.gcp.generic.variants.made_ids import MadeIdKind, made_id, made_object
from setpoint.kinds.gcp.generic.variants.parts import PartKind
from setpoint.kinds.gcp.generic.variants.projects import ProjectKind
from setpoint.kinds.gcp.generic.variants.searches import ObjectSearch, key_digest

_NAMES = st.text("abcdefghij0123456789-", min_size=1, max_size=12)
_COLLECTIONS = st.lists(_NAMES, min_size=1, max_size=4).map("/".join)
_SEARCHES = st.one_of(
    st.builds(ObjectSearch, _COLLECTIONS, _NAMES),
    st.builds(
        ObjectSearch,
        _COLLECTIONS,
        _NAMES,
        _NAMES,
        st.one_of(st.just(""), _COLLECTIONS),
        st.one_of(st.none(), st.lists(_NAMES, max_size=3).map(tuple)),
    ),
)


@given(_SEARCHES)
def test_a_search_is_read_back_from_its_location(search: ObjectSearch) -> None:
    assert ObjectSearch.parse(search.location) == search


@given(_COLLECTIONS, _NAMES)
def test_the_location_of_an_object_is_no_search(collection: str, own_id: str) -> None:
    assert ObjectSearch.parse(Location(f"{collection}/{own_id}")) is None


@given(_SEARCHES, st.lists(_NAMES, max_size=3).map(tuple))
def test_what_is_known_is_added_at_the_end_of_a_search(search: ObjectSearch, known: tuple[str, ...]) -> None:
    first = ObjectSearch(search.collection, search.uid, "key", search.parent)

    assert first.among(known).location.startswith(first.location)


@given(_NAMES, _NAMES, _NAMES)
def test_the_same_key_of_two_resources_has_two_digests(uid: str, other: str, name: str) -> None:
    assert (key_digest(uid, [name]) == key_digest(other, [name])) == (uid == other)


def test_an_author_who_changes_the_key_searches_for_the_same_object() -> None:
    one, other = ObjectSearch("folders", "u", "a", "organizations/1"), ObjectSearch("folders", "u", "b", "folders/2")

    assert one.is_same(other)
    assert not one.is_same(ObjectSearch("folders", "v", "a", "organizations/1"))


@pytest.mark.parametrize(
    ("answer", "own_id"),
    [
        ({"name": "projects/1/secrets/s/versions/4"}, "4"),
        ({"name": "operations/x", "done": True, "response": {"name": "folders/5"}}, "5"),
        ({"name": "operations/x", "done": False}, ""),
        ({"id": "7", "topic": "t"}, "7"),
    ],
)
def test_the_answer_to_a_creation_says_which_id_was_made(answer: dict[str, Any], own_id: str) -> None:
    assert made_id(made_object(answer)) == own_id


@pytest.mark.parametrize(
    ("group", "name", "expected"),
    [
        ("resourcemanager", "Folder", MadeIdKind),
        ("secretmanager", "SecretManagerSecretVersion", MadeIdKind),
        ("compute", "ComputeRouterNAT", PartKind),
        ("serviceusage", "ServiceIdentity", IdentityKind),
        ("servicenetworking", "ServiceNetworkingConnection", ConnectionKind),
        ("resourcemanager", "Project", ProjectKind),
        ("spanner", "SpannerDatabase", DatabaseKind),
    ],
)
def test_the_row_decides_the_class_of_a_kind(group: str, name: str, expected: type) -> None:
    assert kind_class(facts_of((f"{group}.cnrm.cloud.google.com", name))) is expected


# --- Members of several fields ----------------------------------------------------------------------------------------


def test_a_parent_is_shown_by_the_reference_of_its_kind() -> None:
    fields = facts_of(("resourcemanager.cnrm.cloud.google.com", "Folder")).fields

    assert from_members({"parent": "folders/1"}, fields) == {"folderRef": {"external": "folders/1"}}
    assert from_members({"parent": "organizations/2"}, fields) == {"organizationRef": {"external": "organizations/2"}}


def test_the_parent_of_a_project_says_what_it_is() -> None:
    fields = facts_of(("resourcemanager.cnrm.cloud.google.com", "Project")).fields
    body = {"parent": {"type": "organization", "id": "2"}}

    assert from_members(body, fields) == {"organizationRef": {"external": "2"}}
    assert to_members({"organizationRef": {"external": "2"}}, fields) == body


def test_addresses_of_resources_are_records_like_any_other() -> None:
    fields = facts_of(("dns.cnrm.cloud.google.com", "DNSRecordSet")).fields
    declared = {"rrdatas": ["10.0.0.1"], "rrdatasRefs": [{"external": "10.0.0.2"}]}

    assert with_texts(declared, fields) == {"rrdatas": ["10.0.0.1", "10.0.0.2"]}
    assert from_members({"rrdatas": ["10.0.0.1"]}, fields) == {"rrdatas": ["10.0.0.1"]}


def test_a_reference_beside_a_text_is_another_way_to_write_it() -> None:
    fields = {
        "networkIp": FieldFacts(to="networkIP"),
        "networkIpRef": FieldFacts("object", to="networkIP", ref=ReferenceFacts(("ComputeAddress",), "address")),
    }

    assert with_texts({"networkIpRef": {"external": "10.0.0.2"}}, fields) == {"networkIp": "10.0.0.2"}
    assert from_members({"networkIP": "10.0.0.2"}, fields) == {"networkIp": "10.0.0.2"}


def test_sensitive_labels_are_none_of_the_labels() -> None:
    fields = facts_of(("monitoring.cnrm.cloud.google.com", "MonitoringNotificationChannel")).fields
    body = {"labels": {"channel_name": "#ops", "auth_token": "****"}, "type": "slack"}

    assert from_members(body, fields)["labels"] == {"channel_name": "#ops"}


# --- References to objects whose ids the service makes ----------------------------------------------------------------


def _folder(location: str) -> Resource:
    document: dict[str, Any] = {
        "apiVersion": "resourcemanager.cnrm.cloud.google.com/v1beta1",
        "kind": "Folder",
        "metadata": {"name": "team", "namespace": "n"},
        "spec": {"displayName": "Team"},
        "status": {"setpoint": {"location": location}},
    }
    return Resource(document)


def test_the_id_of_a_folder_is_the_one_that_the_service_made() -> None:
    assert id_of(_folder("folders/123")) == "123"


def test_a_folder_that_is_still_searched_for_is_not_ready() -> None:
    with pytest.raises(DependencyNotReady, match="it has no object yet"):
        id_of(_folder("folders/~u~key~organizations/1~"))


# --- Ids that are fields ----------------------------------------------------------------------------------------------


def test_a_record_set_is_listed_with_its_zone_and_named_by_its_fields() -> None:
    row = facts_of(("dns.cnrm.cloud.google.com", "DNSRecordSet"))
    records = "projects/acme/managedZones/z/rrsets"
    item = b'{"name": "www.a.example.", "type": "A", "ttl": 300}'

    assert listed_at(row, Location(f"{records}/www.a.example./A")) == records
    assert listed_id(row, item, ListScope(records)) == "www.a.example./A"


# --- Members in lists as keys -----------------------------------------------------------------------------------------


def test_a_key_may_be_a_member_of_an_element() -> None:
    fields = [{"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "__name__"}]

    assert value_at({"fields": fields}, "fields.0.fieldPath") == "a"
    assert value_at({"fields": fields}, "fields.2.fieldPath") is None

"""The rules that correct facts, on schemas as discovery documents have them."""

from copy import deepcopy
from typing import Any

import pytest

from tools.catalogue.discovery import Document
from tools.catalogue.entries import FieldEntry, RowEntry
from tools.catalogue.fields import absent_members, correct_fields
from tools.catalogue.holds import hold_back
from tools.catalogue.matching import words_of
from tools.catalogue.methods import correct_methods, read_collection
from tools.catalogue.references import Targets

TEXT: Any = {"type": "string"}
UNKNOWN: Any = {"type": "string", "to": "?"}
REFERENCE: Any = {"type": "object", "to": "?", "ref": {"kinds": ["ComputeDisk"], "form": "name"}}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("kmsKeyRef", ("kms", "key", "ref")),
        ("KMSCryptoKey", ("kms", "crypto", "key")),
        ("targetHttpsProxies", ("target", "https", "proxy")),
        ("addresses", ("address",)),
        ("ipv6Address", ("ipv", "6", "address")),
    ],
)
def test_a_name_is_its_words_in_the_singular(name: str, words: tuple[str, ...]) -> None:
    assert words_of(name) == words


@pytest.mark.parametrize(
    ("field", "facts", "member"),
    [
        ("privateKeyPem", UNKNOWN, "pemPrivateKey"),
        ("size", UNKNOWN, "sizeGb"),
        ("numNodes", UNKNOWN, "nodeCount"),
        ("allow", UNKNOWN, "allowed"),
        ("routingMode", UNKNOWN, "routingConfig.routingMode"),
        ("diskRef", REFERENCE, "sourceDisk"),
        ("backendServiceRef", REFERENCE, "service"),
        ("kmsKeyRef", REFERENCE, "cryptoKeyName"),
        ("enabled", UNKNOWN, "?"),
        ("state", UNKNOWN, "?"),
    ],
)
def test_a_member_is_found_by_words_and_type(field: str, facts: FieldEntry, member: str) -> None:
    members = {
        "pemPrivateKey": TEXT,
        "sizeGb": TEXT,
        "nodeCount": TEXT,
        "allowed": TEXT,
        "sourceDisk": TEXT,
        "service": TEXT,
        "cryptoKeyName": TEXT,
        "lifecycleState": {"type": "string", "description": "Output only. The state."},
        "routingConfig": {"type": "object", "properties": {"routingMode": TEXT, "enabled": TEXT}},
    }

    assert corrected({field: facts}, members)[field].get("to", field) == member


def test_a_member_that_two_fields_seem_to_be_is_neither() -> None:
    disk: Any = {"type": "list", "to": "?", "fields": {"mode": TEXT}}
    members = {"disks": {"type": "array", "items": {"type": "object", "properties": {"mode": TEXT}}}}

    fields = corrected({"bootDisk": dict(disk), "scratchDisk": dict(disk)}, members)

    assert [field["to"] for field in fields.values()] == ["?", "?"]


@pytest.mark.parametrize(
    ("facts", "schema", "shape"),
    [
        ({"type": "object", "fields": {"a": TEXT}}, {"type": "array", "items": TEXT}, "object-to-list-of-one"),
        (
            {"type": "list", "fields": {"a": TEXT}},
            {"type": "object", "properties": {"a": TEXT}},
            "list-of-one-to-object",
        ),
        ({"type": "list"}, {"type": "object", "additionalProperties": TEXT}, "key-value-list-to-map"),
        ({"type": "boolean"}, {"type": "object", "properties": {}}, "true-to-object"),
        ({"type": "object", "fields": {"aRef": REFERENCE, "b": TEXT}}, TEXT, "one-of-to-text"),
    ],
)
def test_the_shape_is_what_the_two_types_say(facts: FieldEntry, schema: Any, shape: str) -> None:
    assert corrected({"it": facts}, {"it": schema})["it"]["shape"] == shape


def test_a_list_of_objects_is_a_map_by_its_key() -> None:
    rule = {"type": "object", "properties": {"action": TEXT, "id": TEXT}}
    facts: Any = {"type": "list", "fields": {"action": UNKNOWN, "id": UNKNOWN}}

    field = corrected({"rules": facts}, {"rules": {"type": "object", "additionalProperties": rule}})["rules"]

    assert (field["shape"], field["keys"]) == ("keyed-list-to-map", ["id"])
    assert field["fields"] == {"action": TEXT, "id": TEXT}


def test_marks_formats_and_values_come_from_the_document() -> None:
    members = {
        "made": {"type": "string", "readOnly": True, "format": "google-datetime"},
        "fixed": {"type": "string", "description": "Immutable. Where it is.", "enum": ["A", "B"]},
        "big": {"type": "string", "format": "int64"},
        "network": {"type": "string", "description": "This field can be set only at resource creation time."},
        "both": {"type": "string", "description": "Can be set at resource creation time and updated using patch."},
    }
    facts: Any = {name: {"type": "integer" if name == "big" else "string"} for name in members}

    assert corrected(facts, members) == {
        "made": {"type": "string", "output_only": True, "format": "google-datetime"},
        "fixed": {"type": "string", "immutable": True, "enum": ["A", "B"]},
        "big": {"type": "integer", "int64_text": True},
        "network": {"type": "string", "immutable": True},
        "both": {"type": "string"},
    }


@pytest.mark.parametrize(
    ("facts", "kept"),
    [
        ({"type": "integer", "default": 3, "default_from": "api"}, True),
        ({"type": "integer", "default": "3", "default_from": "api"}, False),
        ({"type": "boolean", "default": 1, "default_from": "api"}, False),
        ({"type": "string", "format": "google-duration", "default": "7", "default_from": "both"}, False),
        ({"type": "string", "default": "MODE_UNSPECIFIED", "default_from": "both"}, False),
    ],
)
def test_only_a_default_that_an_author_could_write_stays(facts: FieldEntry, kept: bool) -> None:
    assert ("default" in corrected({"it": facts}, {"it": {"type": facts["type"]}})["it"]) is kept


def test_a_reference_to_what_the_object_is_in_is_part_of_the_address() -> None:
    ref: Any = {"type": "object", "to": "?", "ref": {"kinds": ["KMSKeyRing"], "form": "name"}}

    fields = corrected({"kmsKeyRingRef": ref}, {}, name="projects/{project}/keyRings/{keyRing}/keys/{key}")

    assert fields["kmsKeyRingRef"]["to"] == "url"


def test_a_field_that_is_a_parameter_of_the_creation_goes_into_its_query() -> None:
    row = row_of({"skipFirst": {"type": "boolean", "to": "?"}})
    row["methods"] = {"create": {"verb": "POST", "path": "v1/things", "query": ["skipFirst"]}}

    correct_fields(row, document({}))

    assert row["fields"]["skipFirst"] == {"type": "boolean", "to": "skipFirst", "query": True}


def test_projects_come_first_where_the_collection_is_in_several_places() -> None:
    row = row_of({"projectRef": TEXT, "folderRef": TEXT}, name="folders/{folder}/sinks/{sink}")
    row["collection"] = "logging.folders.sinks"
    row["methods"] = {"get": {"verb": "GET", "path": "v2/folders/{foldersId}/sinks/{sinksId}"}}
    sinks: Any = {"resources": {"sinks": {"methods": {"get": {}}}}}

    correct_methods(row, document({}, {"projects": sinks, "folders": sinks, "organizations": sinks}))

    assert row["name"] == "projects/{project}/sinks/{sink}"
    assert row["places"] == ["projects/{project}/sinks/{sink}", "folders/{folder}/sinks/{sink}"]
    assert row["methods"]["get"]["path"] == "v2/projects/{projectsId}/sinks/{sinksId}"


def test_a_scope_that_the_document_leaves_open_is_a_project() -> None:
    row = row_of({"projectRef": TEXT}, name="v1/{v1Id}/{v1Id1}/services/{service}")
    row["methods"] = {"get": {"verb": "GET", "path": "v1/{v1Id}/{v1Id1}/services/{servicesId}"}}

    correct_methods(row, document({}))

    assert (row["prefix"], row["name"]) == ("v1/", "projects/{project}/services/{service}")
    assert row["methods"]["get"]["path"] == "v1/projects/{projectsId}/services/{servicesId}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Output only. The name.", {"in": "service"}),
        ("The name, `projects/p/queues/q`.", {"in": "body", "name": "name", "form": "name"}),
        ("The client-assigned name, as in `projects/p/metrics/m`.", {"in": "body", "name": "name"}),
        ("The name.", {"in": "body", "name": "name"}),
    ],
)
def test_the_text_of_the_name_says_whose_id_it_is(text: str, expected: dict[str, str]) -> None:
    row = row_of({})
    row["id"] = {"in": "body", "name": "name"}

    correct_methods(row, document({"name": {"type": "string", "description": text}}))

    assert row["id"] == expected


def test_a_method_for_some_fields_is_left_out_where_an_update_sets_them_as_well() -> None:
    row = row_of({})
    row["update_style"] = "merge-patch"
    row["per_field_methods"] = ["setMap", "setPolicy", "setLabels", "enable"]
    row["other_methods"] = {
        "setMap": {"path": "x", "request": "MapRequest"},
        "setPolicy": {"path": "x", "request": "PolicyRequest"},
        "setLabels": {"path": "x", "request": "LabelsRequest"},
        "enable": {"path": "x"},
    }
    schemas: Any = {
        "Thing": {"properties": {"map": TEXT, "policy": {"type": "string", "readOnly": True}, "labels": TEXT}},
        "MapRequest": {"properties": {"map": TEXT}},
        "PolicyRequest": {"properties": {"policy": TEXT}},
        "LabelsRequest": {"properties": {"labels": TEXT}},
    }

    correct_methods(row, Document(schemas, {}, ""))

    assert row["per_field_methods"] == ["setPolicy", "setLabels", "enable"]


def test_another_collection_brings_its_name_and_methods() -> None:
    get: Any = {"httpMethod": "GET", "path": "v1/projects/{projectsId}/things/{thingsId}"}
    patch: Any = {**get, "httpMethod": "PATCH", "parameters": {"updateMask": {"location": "query"}}}
    row = row_of({})
    row["collection"] = "api.projects.things"
    things: Any = {"resources": {"things": {"methods": {"get": get, "patch": patch, "setLabels": get}}}}

    read_collection(row, document({}, {"projects": things}))

    assert (row["name"], row["update_style"]) == ("projects/{project}/things/{thing}", "patch-mask-query")
    assert (set(row["methods"]), row["per_field_methods"]) == ({"get", "patch"}, ["setLabels"])


def test_a_reference_without_a_kind_gets_the_one_that_its_name_ends_with() -> None:
    row = row_of(
        {"sourceDiskRef": {"type": "object"}, "natIpRef": {"type": "object"}, "organizationRef": {"type": "object"}}
    )

    Targets(["ComputeDisk", "ComputeAddress", "ApigeeOrganization"]).complete(row)

    assert [field["ref"] for field in row["fields"].values()] == [
        {"form": "name", "kinds": ["ComputeDisk"]},
        {"form": "address", "kinds": ["ComputeAddress"]},
        {"form": "name"},
    ]


def test_a_row_with_a_required_field_that_is_no_member_is_held_back() -> None:
    row = row_of({"path": {"type": "string", "to": "?", "required": True}})
    row["methods"] = {"create": {}, "get": {}}
    row["id"] = {"in": "service"}

    hold_back(row)

    assert row["hold"] == "spec.path is required, and is no member of the API that is known"


def test_a_member_that_the_document_does_not_have_is_named() -> None:
    row = row_of({"mode": {"type": "string", "to": "config.mode"}, "size": TEXT})

    assert list(absent_members(row, document({"size": TEXT, "config": {"type": "object", "properties": {}}}))) == [
        "mode"
    ]


def corrected(fields: Any, members: Any, *, name: str = "projects/{project}/things/{thing}") -> dict[str, FieldEntry]:
    row = row_of(fields, name=name)
    correct_fields(row, document(members))
    return row["fields"]


def row_of(fields: Any, *, name: str = "projects/{project}/things/{thing}") -> RowEntry:
    return {
        "kind": "ComputeThing",
        "api": "things",
        "collection": "api.things",
        "schema": "Thing",
        "prefix": "v1/" if name.startswith("projects") else "",
        "name": name,
        "update_style": "none",
        "methods": {},
        "fields": deepcopy(fields),
    }


def document(members: Any, resources: Any = None) -> Document:
    return Document({"Thing": {"type": "object", "properties": members}}, resources or {}, "")

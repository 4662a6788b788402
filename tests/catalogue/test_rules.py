"""The rules that correct facts, on schemas as discovery documents have them."""

from copy import deepcopy
from typing import Any

import pytest

from tools.catalogue.discovery import Document
from tools.catalogue.entries import FieldEntry, RowEntry
from tools.catalogue.fields import absent_members, correct_fields
from tools.catalogue.matching import words_of
from tools.catalogue.methods import correct_methods, mark_set_later, read_collection
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
        ({"type": "object", "fields": {"value": {"type": "integer"}}}, {"type": "integer"}, "one-of-to-text"),
        ({"type": "list", "fields": {"aRef": REFERENCE}}, {"type": "array", "items": TEXT}, "refs-to-texts"),
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


def test_a_member_that_only_a_method_sets_is_sent_later_as_the_method_names_it() -> None:
    row = row_of(
        {"edgePolicy": {"type": "string"}, "abac": {"type": "object", "fields": {"enabled": {"type": "boolean"}}}}
    )
    row["update_style"] = "merge-patch"
    row["per_field_methods"] = ["setEdgePolicy", "setAbac"]
    row["other_methods"] = {
        "setEdgePolicy": {"path": "x", "request": "PolicyRequest"},
        "setAbac": {"path": "x", "request": "AbacRequest"},
    }
    abac: Any = {"type": "object", "properties": {"enabled": {"type": "boolean"}}}
    schemas: Any = {
        "Thing": {"properties": {"edgePolicy": {"type": "string", "readOnly": True}, "abac": abac}},
        "PolicyRequest": {"properties": {"policy": TEXT}},
        "AbacRequest": {"properties": {"enabled": {"type": "boolean"}, "name": TEXT}},
    }
    known = Document(schemas, {}, "")

    correct_methods(row, known)
    correct_fields(row, known)
    mark_set_later(row, known)

    sent = {name: method.get("sends_as") for name, method in row["other_methods"].items()}
    assert sent == {"setEdgePolicy": {"edgePolicy": "policy"}, "setAbac": {"abac.enabled": "enabled"}}
    assert row["fields"]["edgePolicy"] == {"type": "string", "later": True}
    assert "later" not in row["fields"]["abac"]


def test_an_update_names_the_members_of_the_object_in_its_own_way() -> None:
    row = row_of({})
    row["update_style"] = "put"
    row["methods"]["update"] = {"verb": "PUT", "path": "x", "request": "UpdateRequest"}
    row["methods"].pop("patch", None)
    scaling: Any = {"$ref": "Scaling"}
    schemas: Any = {
        "Thing": {
            "properties": {
                "locations": {"type": "array", "items": TEXT},
                "labels": {"type": "object", "additionalProperties": TEXT},
                "scaling": scaling,
                "networkConfig": {"$ref": "Network"},
            }
        },
        "Network": {"properties": {"enableFlow": {"type": "boolean"}}},
        "Scaling": {"properties": {"most": TEXT}},
        "Labels": {"properties": {"labels": {"type": "object"}}},
        "Flow": {"properties": {"enabled": {"type": "boolean"}}},
        "Update": {
            "properties": {
                "desiredLocations": {"type": "array", "items": TEXT},
                "desiredLabels": {"$ref": "Labels"},
                "desiredThingScaling": scaling,
                "desiredFlowConfig": {"$ref": "Flow"},
            }
        },
        "UpdateRequest": {"properties": {"update": {"$ref": "Update"}}},
    }

    correct_methods(row, Document(schemas, {}, ""))

    assert (row["update_style"], row["methods"]["update"]["wrap"]) == ("put-request", "update")
    assert row["methods"]["update"]["sends_as"] == {
        "networkConfig.enableFlow": "desiredFlowConfig.enabled",
        "locations": "desiredLocations",
        "labels": "desiredLabels.labels",
        "scaling": "desiredThingScaling",
    }


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


def test_a_member_that_the_document_does_not_have_is_named() -> None:
    row = row_of({"mode": {"type": "string", "to": "config.mode"}, "size": TEXT})

    assert list(absent_members(row, document({"size": TEXT, "config": {"type": "object", "properties": {}}}))) == [
        "mode"
    ]


@pytest.mark.parametrize(
    ("kind", "form", "text", "expected"),
    [
        ("StorageBucket", "name", "The bucket.", {"form": "id"}),
        ("ApigeeEnvironment", "name", "Required. ID of the attached environment.", {"form": "id"}),
        ("BigQueryTable", "name", "Of the form {projectId}.{datasetId}.{tableId}", {"form": "dotted"}),
        ("Project", "id", "Of the form `projects/{project}`.", {"form": "id", "prefix": "projects/"}),
        ("Project", "id", "The project ID.", {"form": "id"}),
        (
            "PubSubTopic",
            "link",
            "//pubsub.googleapis.com/projects/p",
            {"form": "name", "prefix": "//pubsub.googleapis.com/"},
        ),
        ("ComputeDisk", "name", "Or //pubsub.googleapis.com/projects/p/topics/t", {"form": "name"}),
    ],
)
def test_the_text_of_a_member_says_what_is_sent_for_a_reference(
    kind: str, form: str, text: str, expected: dict[str, str]
) -> None:
    reference = {"type": "object", "ref": {"kinds": [kind], "form": form}}

    found = corrected({"target": reference}, {"target": {"type": "string", "description": text}})

    assert found["target"]["ref"] == {"kinds": [kind], **expected}


def test_a_reference_with_the_name_of_a_variable_is_part_of_the_address() -> None:
    reference = {"type": "object", "to": "boxLevel", "ref": {"kinds": ["ComputeBox"], "form": "name"}}

    found = corrected({"boxRef": reference}, {"boxLevel": TEXT}, name="projects/{project}/boxes/{box}/things/{thing}")

    assert found["boxRef"]["to"] == "url"


@pytest.mark.parametrize(
    ("fields", "member", "expected"),
    [
        ({}, {"type": "object", "additionalProperties": TEXT}, "labels"),
        ({"labels": {"type": "map"}}, {"type": "object", "additionalProperties": TEXT}, None),
        ({}, {"type": "array", "items": TEXT}, None),
    ],
)
def test_labels_of_the_metadata_are_for_a_map_that_the_spec_does_not_have(
    fields: Any, member: Any, expected: str | None
) -> None:
    row = row_of(fields)
    row["labels"] = "labels"

    correct_methods(row, document({"labels": member}))

    assert row.get("labels") == expected


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

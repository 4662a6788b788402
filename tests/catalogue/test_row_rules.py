"""The rules for references, parents, ids, labels and lists, on rows and schemas made here."""

from copy import deepcopy
from typing import Any

import pytest

from tools.catalogue.discovery import Document
from tools.catalogue.entries import FieldEntry, RowEntry
from tools.catalogue.fields import correct_fields
from tools.catalogue.holds import hold_back
from tools.catalogue.methods import correct_methods
from tools.catalogue.references import Targets

TEXT: Any = {"type": "string"}
REFERENCE: Any = {"type": "object", "to": "?", "ref": {"kinds": ["ComputeDisk"], "form": "name"}}


def test_in_an_object_the_one_reference_left_is_the_one_text_left() -> None:
    inner: Any = {"networkRef": REFERENCE, "subnet": TEXT}
    schema: Any = {"type": "object", "properties": {"vpc": TEXT, "subnet": TEXT, "mode": {**TEXT, "enum": ["A"]}}}
    two: Any = {"type": "object", "properties": {**schema["properties"], "zone": TEXT}}
    fields: Any = {name: {"type": "object", "fields": deepcopy(inner)} for name in ("peering", "other")}

    found = corrected(fields, {"peering": schema, "other": two})

    assert [found[name]["fields"]["networkRef"]["to"] for name in fields] == ["vpc", "?"]
    assert corrected({"networkRef": REFERENCE}, {"vpc": TEXT})["networkRef"]["to"] == "?"


@pytest.mark.parametrize(
    ("form", "members", "within"),
    [("email", ("email", "scopes"), "email"), ("name", ("policy",), "policy"), ("name", ("one", "other"), None)],
)
def test_a_reference_whose_member_is_an_object_is_a_text_in_it(
    form: str, members: tuple[str, ...], within: str | None
) -> None:
    facts: Any = {"type": "object", "ref": {"kinds": ["ComputeDisk"], "form": form}}

    found = corrected({"it": facts}, {"it": {"type": "object", "properties": dict.fromkeys(members, TEXT)}})

    assert found["it"].get("within") == within


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("Projects of the form `projects/{project}`.", "projects/"),
        ('In the format: "projects/abc" or "projects/123".', "projects/"),
        ("The format is `projects/{project}/networks/{network}`.", None),
        ("Other projects.", None),
    ],
)
def test_a_project_is_named_in_the_format_that_the_text_says(text: str, prefix: str | None) -> None:
    facts: Any = {"type": "object", "ref": {"kinds": ["Project"], "form": "id"}}

    found = corrected({"it": facts}, {"it": {**TEXT, "description": text}})

    assert found["it"]["ref"].get("prefix") == prefix


def test_the_fields_of_an_inner_object_are_members_of_the_outer_one() -> None:
    inner: Any = {"type": "object", "to": "?", "fields": {"datasetRef": REFERENCE}}
    facts: Any = {"type": "object", "to": "dataset", "shape": "inner-object", "fields": {"datasetSource": inner}}
    schema: Any = {"type": "object", "properties": {"dataset": TEXT}}

    found = corrected({"source": facts}, {"dataset": schema})["source"]

    assert found["shape"] == "inner-object"
    assert found["fields"]["datasetSource"]["fields"]["datasetRef"]["to"] == "dataset"


def test_numbers_in_texts_and_maps_of_objects_are_marked() -> None:
    members: Any = {
        "cpu": {"type": "number"},
        "versions": {"type": "object", "additionalProperties": {"type": "object", "properties": {"uri": TEXT}}},
        "notes": {"type": "object", "additionalProperties": TEXT},
    }

    fields = corrected({"cpu": dict(TEXT), "versions": {"type": "map"}, "notes": {"type": "map"}}, members)

    assert fields == {
        "cpu": {"type": "string", "format": "number-text"},
        "versions": {"type": "map", "items": "object"},
        "notes": {"type": "map"},
    }


def test_what_the_object_is_in_is_no_member_of_a_similar_name() -> None:
    ref: Any = {"type": "object", "to": "serviceRevision", "ref": {"kinds": ["MetastoreService"], "form": "name"}}

    fields = corrected({"serviceRef": ref}, {"serviceRevision": TEXT}, name="services/{service}/backups/{backup}")

    assert fields["serviceRef"]["to"] == "url"


def test_a_required_name_of_the_object_is_its_id() -> None:
    row = row_of({}, name="projects/{project}/clusters/{cluster}")
    row["id"] = {"in": "service"}

    correct_methods(row, document({"clusterName": {"type": "string", "description": "Required. The name."}}))

    assert row["id"] == {"in": "body", "name": "clusterName"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [({"type": "object", "additionalProperties": TEXT}, "labels"), ({"type": "array", "items": TEXT}, None)],
)
def test_labels_are_a_map(schema: Any, expected: str | None) -> None:
    row = row_of({})
    row["labels"] = "labels"

    correct_methods(row, document({"labels": schema}))

    assert row.get("labels") == expected


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("parent", "Required. The customer.", False),
        ("pageSize", "Required. How many.", True),
        ("filter", "Optional.", True),
    ],
)
def test_a_list_that_needs_to_be_told_what_to_list_is_left_out(name: str, text: str, kept: bool) -> None:
    row = row_of({})
    row["methods"] = {"list": {"verb": "GET", "path": "v1/things", "query": [name]}}
    method: Any = {"parameters": {name: {"location": "query", "description": text}}}

    correct_methods(row, document({}, {"things": {"methods": {"list": method}}}))

    assert ("list" in row["methods"]) is kept


def test_a_reference_to_what_several_services_have() -> None:
    both: Any = {"type": "object", "ref": {"kinds": ["Project", "ComputeSubnetwork"], "form": "name"}}
    bucket: Any = {"type": "object", "ref": {"kinds": ["StorageBucket"], "form": "name"}}
    names = ("clusterRef", "dataprocMetastoreServiceRef", "parentDatabaseRef")
    row = row_of({**{name: {"type": "object"} for name in names}, "subnetworkRef": both, "bucketRef": bucket})
    kinds = (
        "ContainerCluster",
        "AlloyDBCluster",
        "MetastoreService",
        "RunService",
        "ComputeDatabase",
        "SpannerDatabase",
    )

    Targets(kinds).complete(row)

    assert [field["ref"] for field in row["fields"].values()] == [
        {"form": "name", "kinds": ["ContainerCluster"]},
        {"form": "name", "kinds": ["MetastoreService"]},
        {"form": "name", "kinds": ["ComputeDatabase"]},
        {"form": "name", "kinds": ["ComputeSubnetwork"]},
        {"form": "id", "kinds": ["StorageBucket"]},
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
        "prefix": "v1/",
        "name": name,
        "update_style": "none",
        "methods": {},
        "fields": deepcopy(fields),
    }


def document(members: Any, resources: Any = None) -> Document:
    return Document({"Thing": {"type": "object", "properties": members}}, resources or {}, "")


def test_what_keeps_an_object_from_being_lost_is_protected() -> None:
    names = ("deletionProtection", "enableDropProtection", "pointInTimeRecoveryEnablement", "automatedBackupPolicy")
    members: Any = {name: dict(TEXT) for name in (*names, "protectionLevel", "retentionDays")}
    fixed = {**TEXT, "description": "Immutable. So many days."}

    fields = corrected(members, {**members, "retentionDays": fixed})

    assert [name for name, field in fields.items() if field.get("protected")] == list(names)


def test_a_row_with_a_required_field_that_is_no_member_is_held_back() -> None:
    row = row_of({"path": {"type": "string", "to": "?", "required": True}})
    row["methods"] = {"create": {}, "get": {}}
    row["id"] = {"in": "service"}

    hold_back(row)

    assert row["hold"] == "spec.path is required, and is no member of the API that is known"


@pytest.mark.parametrize(
    ("methods", "key", "reason"),
    [
        (("create", "get", "list"), ["displayName"], None),
        (
            ("create", "get"),
            ["displayName"],
            "the service makes its id, and has no list in which it could be found again",
        ),
        (
            ("create", "get", "list"),
            [],
            "the service makes its id, and neither a label nor a member that is known finds it again",
        ),
    ],
)
def test_a_row_whose_object_nothing_would_find_again_is_held_back(
    methods: tuple[str, ...], key: list[str], reason: str | None
) -> None:
    row = row_of({"displayName": {"type": "string"}})
    row["methods"] = {name: {} for name in methods}
    row["id"] = {"in": "service", "key": key}

    hold_back(row)

    assert row.get("hold") == reason

"""The rules for an object as a whole, for switches and for requests that replace it, on rows made here."""

from dataclasses import replace
from typing import Any

import pytest

from tests.catalogue.test_row_rules import TEXT, corrected, document, row_of
from tools.catalogue.methods import correct_methods
from tools.catalogue.object_rules import correct_object, find_methods


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("Replaces an existing thing with a new definition. It needs a permission.", "patch-whole"),
        ("Updates a thing with the data included in the request. The update method replaces the thing.", "merge-patch"),
    ],
)
def test_a_patch_that_replaces_the_object_has_the_whole_of_it(text: str, style: str) -> None:
    row = row_of({})
    row["update_style"] = "merge-patch"

    correct_methods(row, document({}, {"things": {"methods": {"patch": {"description": text}}}}))

    assert row["update_style"] == style


@pytest.mark.parametrize(
    ("own", "member", "adds"),
    [
        ({}, {"type": "boolean"}, {"enabled": True}),
        ({"enabled": {"type": "boolean"}}, {"type": "boolean"}, None),
        ({}, {"type": "boolean", "description": "Output only. Whether it is on."}, None),
        ({}, TEXT, None),
    ],
)
def test_an_object_with_a_switch_that_has_no_field_switches_it_on(own: Any, member: Any, adds: Any) -> None:
    schema: Any = {"type": "object", "properties": {"size": TEXT, "enabled": member}}

    found = corrected({"it": {"type": "object", "fields": {"size": TEXT, **own}}}, {"it": schema})

    assert found["it"].get("adds") == adds


def test_a_scope_of_a_service_account_may_be_an_alias() -> None:
    members: Any = {name: {"type": "array", "items": TEXT} for name in ("scopes", "oauthScopes", "tags")}

    found = corrected({name: {"type": "list", "items": "string"} for name in members}, members)

    assert [name for name, field in found.items() if field.get("format") == "oauth-scope"] == ["scopes", "oauthScopes"]


@pytest.mark.parametrize(
    ("text", "outputs"), [("Read-only. When.", ["when"]), ("When. Read-only.", ["when"]), ("When it is.", [])]
)
def test_a_member_that_is_read_only_by_its_text_is_an_output(text: str, outputs: list[str]) -> None:
    row = row_of({"name": TEXT})

    correct_object(row, document({"when": {**TEXT, "description": text}, "name": {**TEXT, "description": text}}))

    assert row["output_only"] == outputs


@pytest.mark.parametrize("method", ["undelete", "move"])
def test_an_object_whose_deletion_can_be_undone_counts_as_absent_meanwhile(method: str) -> None:
    row = row_of({})
    states: Any = {**TEXT, "enum": ["ACTIVE", "DELETE_REQUESTED"]}

    correct_object(row, document({"lifecycleState": states}, {"things": {"methods": {method: {}}}}))

    assert row.get("absent") == ({"lifecycleState": ["DELETE_REQUESTED"]} if method == "undelete" else None)


@pytest.mark.parametrize(("response", "expected"), [("Operation", "compute"), ("Thing", None)])
def test_a_change_that_answers_with_an_operation_is_waited_for(response: str, expected: str | None) -> None:
    row = row_of({})
    row["operations"] = {"create": "compute"}
    row["per_field_methods"] = ["setLabels"]
    row["other_methods"] = {"setLabels": {"verb": "POST", "path": "v1/things", "response": response}}

    correct_object(row, document({}))

    assert row["operations"].get("update") == expected


@pytest.mark.parametrize(
    ("member", "methods"),
    [("size", ["upgrade"]), ("other", []), ("etag", [])],
    ids=["its own", "unknown", "of any request"],
)
def test_a_method_that_upgrades_the_object_sets_a_member_of_it(member: str, methods: list[str]) -> None:
    row = row_of({})
    row["other_methods"] = {"upgrade": {"verb": "POST", "path": "v1/things:upgrade", "request": "UpgradeRequest"}}
    found = document({"size": TEXT, "etag": TEXT})
    requests: Any = {**found.schemas, "UpgradeRequest": {"type": "object", "properties": {member: TEXT}}}

    find_methods(row, replace(found, schemas=requests))

    assert row.get("per_field_methods", []) == methods


def test_a_method_that_creates_the_object_of_another_one_wraps_it() -> None:
    row = row_of({})
    row["create_methods"] = {"source": "restore"}
    row["other_methods"] = {"restore": {"verb": "POST", "path": "v1/things:restore", "request": "RestoreRequest"}}
    found = document({"size": TEXT})
    sent: Any = {"thing": {"$ref": row["schema"]}, "source": TEXT, "thingId": TEXT, "parent": TEXT}

    find_methods(
        row, replace(found, schemas={**found.schemas, "RestoreRequest": {"type": "object", "properties": sent}})
    )

    assert (row["other_methods"]["restore"]["wrap"], row["other_methods"]["restore"]["sends"]) == (
        "thing",
        ["source", "thingId"],
    )


def test_the_one_field_of_an_object_with_one_member_is_that_member() -> None:
    row = row_of({"box": {"type": "object", "fields": {"secretRef": {"to": "?"}}}})

    correct_object(row, document({"box": {"type": "object", "properties": {"secretUri": TEXT}}}))

    assert row["fields"]["box"]["fields"]["secretRef"]["to"] == "secretUri"


@pytest.mark.parametrize(("items", "expected"), [({"type": "string"}, "?"), ({"type": "object"}, "values")])
def test_a_map_is_no_list_of_texts(items: Any, expected: str) -> None:
    row = row_of({"value": {"type": "map", "to": "values"}})

    correct_object(row, document({"values": {"type": "array", "items": items}}))

    assert row["fields"]["value"]["to"] == expected

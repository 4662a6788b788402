"""Rules for an object as a whole: what the service sets, which of its states mean that it was deleted, whether a change
of it is an operation, and what methods of its own create and upgrade it."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from tools.catalogue.discovery import Document, Schema
from tools.catalogue.entries import FieldEntry, Json, RowEntry
from tools.catalogue.matching import UNKNOWN

# Older documents say so at the beginning of the text, or at its end.
_READ_ONLY: Final = re.compile(r"\W*read-only\b|.*\bread-only\W*$", re.IGNORECASE | re.DOTALL)
_STATES: Final = ("state", "lifecycleState")
_DELETED: Final = ("DELETED", "DELETE_REQUESTED", "DELETE_IN_PROGRESS")


# Members of any request.
_OF_REQUESTS: Final = frozenset({"etag", "requestId", "validateOnly"})


def find_methods(row: RowEntry, document: Document) -> None:
    """Methods of an object's own: one that upgrades it, and others than the standard one that create it."""
    members = document.members(document.schema(row["schema"]))
    others = row.get("other_methods", {})
    upgrade = others.get("upgrade")
    if upgrade is not None:
        sent = document.members(document.schema(upgrade.get("request", ""))).keys() - _OF_REQUESTS
        if sent & members.keys() or "sends_as" in upgrade:
            row.setdefault("per_field_methods", []).append("upgrade")
    for name in set(row.get("create_methods", {}).values()):
        method = others.get(name, {})
        sent_members = document.members(document.schema(method.get("request", "")))
        wrap = [one for one, schema in sent_members.items() if schema.get("$ref") == row["schema"]]
        if wrap:
            method["wrap"], method["sends"] = wrap[0], [one for one in sent_members if one not in (wrap[0], "parent")]


def name_in_url(row: RowEntry, document: Document) -> None:
    """An id in the URL of the creation: whether the body has the name as well."""
    found = row.get("id", {})
    request = document.members(document.schema(row["methods"].get("create", {}).get("request", "")))
    if found.get("in") == "url" and "name" in request:
        found["form"] = "name"


def correct_object(row: RowEntry, document: Document) -> None:
    """Corrects what a row says about its object."""
    _name_outputs(row, document)
    _name_deleted_states(row, document)
    _wait_for_updates(row)
    for fields, members in _objects(row["fields"], document.members(document.schema(row["schema"])), document):
        _match_only_member(fields, members)
        _unmatch_maps(fields, members)


def _objects(
    fields: dict[str, FieldEntry], members: Mapping[str, Schema], document: Document
) -> Iterator[tuple[dict[str, FieldEntry], Mapping[str, Schema]]]:
    """The objects of a spec, each with the members of the API's object that it is; those of another shape left out."""
    yield fields, members
    for name, field in fields.items():
        if field.get("fields") and "shape" not in field:
            below = members
            for step in field.get("to", name).split("."):
                below = document.members(below[step]) if step in below else {}
            yield from _objects(field["fields"], below, document)


def _match_only_member(fields: dict[str, FieldEntry], members: Mapping[str, Schema]) -> None:
    """The one field of an object with one member is that one, whatever they are called."""
    if len(fields) == len(members) == 1:
        (field,), (member,) = fields.values(), members
        if field.get("to") == UNKNOWN:
            field["to"] = member


def _unmatch_maps(fields: dict[str, FieldEntry], members: Mapping[str, Schema]) -> None:
    """A map cannot be sent as a list of texts, though they are called alike."""
    for name, field in fields.items():
        items = members.get(field.get("to", name), {}).get("items", {})
        if field.get("type") == "map" and "shape" not in field and items.get("type") == "string":
            field["to"], field["reason"] = UNKNOWN, "it is an object in a manifest, and a list of texts in the API"


def _wait_for_updates(row: RowEntry) -> None:
    """Methods that change an object and answer with an operation: it is of the sort that a creation is."""
    names, others = row.get("per_field_methods", ()), row.get("other_methods", {})
    methods = [
        *(row["methods"].get(name, {}) for name in ("patch", "update")),
        *(others.get(name, {}) for name in names),
    ]
    operations = row.get("operations", {})
    if "create" in operations and any(method.get("response", "").endswith("Operation") for method in methods):
        operations.setdefault("update", operations["create"])


def _name_outputs(row: RowEntry, document: Document) -> None:
    """Members that are read-only by their text, and that no field is."""
    own = {field.get("to") or name for name, field in row["fields"].items()}
    known = row.setdefault("output_only", [])
    for name, schema in document.members(document.schema(row["schema"])).items():
        if name not in {*own, *known} and _READ_ONLY.match(schema.get("description", "")):
            known.append(name)


def _name_deleted_states(row: RowEntry, document: Document) -> None:
    """Where a deletion can be undone, the object stays for a while, in a state that says so: it counts as absent."""
    if "undelete" not in document.collection(row["collection"]):
        return
    members = document.members(document.schema(row["schema"]))
    for name in _STATES:
        found: list[Json] = [word for word in members.get(name, {}).get("enum", ()) if word in _DELETED]
        if found:
            row.setdefault("absent", {}).setdefault(name, found)

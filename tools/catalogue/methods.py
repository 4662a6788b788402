"""Holds the names, ids and methods of a row against the discovery document, and corrects them by rule."""

import re
from collections.abc import Mapping
from typing import Final

from tools.catalogue.discovery import Document, Schema
from tools.catalogue.entries import MethodEntry, RowEntry

# What an object can be in, in the order of the places of a row; and the field that says so.
_SCOPES: Final = {
    "projects": "projectRef",
    "folders": "folderRef",
    "organizations": "organizationRef",
    "billingAccounts": "billingAccountRef",
}
_VERSION: Final = re.compile(r"(?:[a-z]+/)?v[0-9][0-9a-z]*/")
# `v1/{v1Id}/{v1Id1}/services/{service}`: the document leaves open what the object is in.
_OPEN: Final = re.compile(r"(v[0-9][0-9a-z]*/)\{v\w+\}/\{v\w+\}/")
_MADE_BY_SERVICE: Final = re.compile(
    r"output only|assigned by the (?:server|service)|server-assigned|generated numeric|`tagValues/", re.IGNORECASE
)
_FULL_NAME: Final = re.compile(r"projects/|organizations/")
_CALLER: Final = re.compile(r"caller-specified|user-defined|client-assigned", re.IGNORECASE)


def correct_methods(row: RowEntry, document: Document) -> None:
    """Corrects what a row says beside its fields."""
    _close_open_scope(row)
    _move_version(row)
    _order_scopes(row, document)
    _correct_id(row, document)
    _name_items(row, document)
    _name_members_of_methods(row, document)


# --- Names ------------------------------------------------------------------------------------------------------------


def _close_open_scope(row: RowEntry) -> None:
    found = _OPEN.match(row["name"])
    if found is None:
        return
    rest = row["name"][found.end() :]
    row["prefix"] = found[1]
    row["name"] = f"projects/{{project}}/{rest}"
    row["places"] = [_scoped(scope, rest) for scope, ref in _SCOPES.items() if ref in row["fields"]]
    for method in _every_method(row):
        method["path"] = _OPEN.sub(r"\g<1>projects/{projectsId}/", method["path"])
    _drop_single_place(row)


def _move_version(row: RowEntry) -> None:
    found = _VERSION.match(row["name"])
    if found is not None and not row.get("prefix"):
        row["prefix"] = found[0]
        row["name"] = row["name"][found.end() :]


def _order_scopes(row: RowEntry, document: Document) -> None:
    """Projects first, where the collection is in projects as well; the other places that the spec can name follow."""
    api, scope, *rest = row["collection"].split(".")
    if scope not in _SCOPES or not rest:
        return
    known = [one for one in _SCOPES if document.collection(".".join((api, one, *rest)))]
    named = [one for one in known if _SCOPES[one] in row["fields"] or one == "projects"]
    if len(known) < 2 or not named:
        return
    first, template = named[0], row["name"].split("/", 2)[2]
    row["places"] = [_scoped(one, template) for one in named]
    row["name"] = row["places"][0]
    row["collection"] = ".".join((api, first, *rest))
    for method in _every_method(row):
        method["path"] = method["path"].replace(f"{scope}/{{{scope}Id}}/", f"{first}/{{{first}Id}}/", 1)
    _drop_single_place(row)


def _scoped(scope: str, rest: str) -> str:
    return f"{scope}/{{{scope.removesuffix('s')}}}/{rest}"


def _drop_single_place(row: RowEntry) -> None:
    if len(row.get("places", ())) == 1:
        del row["places"]


def _every_method(row: RowEntry) -> list[MethodEntry]:
    return [*row["methods"].values(), *row.get("other_methods", {}).values()]


# --- Ids --------------------------------------------------------------------------------------------------------------


def _correct_id(row: RowEntry, document: Document) -> None:
    """Whether the service makes the id, whether it is the whole name that is sent, and beside what."""
    found = row.get("id")
    if found is None or found.get("in") != "body":
        return
    members = document.members(document.schema(row["schema"]))
    create = row["methods"].get("create", {})
    request = document.members(document.schema(create.get("request", "")))
    if create.get("wrap") and found["name"] in request and found["name"] != "name":
        found["beside"] = "wrap"
    if found["name"] != "name" or row["api"] == "compute":
        return
    name = members.get("name", {})
    text = name.get("description", "")
    if "id" in members and "Required" in members["id"].get("description", ""):
        found["name"] = "id"
    elif not _CALLER.search(text) and (name.get("readOnly") or _MADE_BY_SERVICE.search(text)):
        row["id"] = {"in": "service"}
    elif _FULL_NAME.search(text) and "client-assigned" not in text:
        found["form"] = "name"


# --- Methods ----------------------------------------------------------------------------------------------------------


def _name_items(row: RowEntry, document: Document) -> None:
    method = row["methods"].get("list")
    if method is None:
        return
    members = document.members(document.schema(method.get("response", "")))
    of_schema = [name for name, schema in members.items() if schema.get("items", {}).get("$ref") == row["schema"]]
    lists = [name for name, schema in members.items() if "$ref" in schema.get("items", {})]
    if found := of_schema or lists:
        method["items"] = found[0]


def _name_members_of_methods(row: RowEntry, document: Document) -> None:
    """What the request of a method for some fields holds: members of the object, or the value of one member."""
    members, unused = document.members(document.schema(row["schema"])), list[str]()
    for name in row.get("per_field_methods", ()):
        method = row.get("other_methods", {}).get(name)
        request = method.get("request", "") if method is not None else ""
        if method is None or not request:
            continue
        field = _member_of_schema(request, members)
        sends = list(document.members(document.schema(request)))
        if field:
            method["field"] = field
        elif name.startswith(("add", "remove")) or set(sends) & members.keys() - {"name", "description"}:
            method["sends"] = sends
        else:
            unused.append(name)
    if unused:
        row["per_field_methods"] = [name for name in row["per_field_methods"] if name not in unused]


def _member_of_schema(schema: str, members: Mapping[str, Schema]) -> str:
    found = [name for name, member in members.items() if member.get("$ref") == schema]
    return found[0] if len(found) == 1 else ""

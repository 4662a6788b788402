"""Holds the names, ids and methods of a row against the discovery document, and corrects them by rule."""

import re
from collections.abc import Mapping
from typing import Final

from tools.catalogue.discovery import Document, Method, Schema
from tools.catalogue.entries import MethodEntry, RowEntry
from tools.catalogue.matching import is_output, words_of

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
_VARIABLE: Final = re.compile(r"\{(\w+)\}")
_STANDARD: Final = {name: name for name in ("create", "get", "list", "patch", "update", "delete")} | {
    "insert": "create"
}
_FOR_FIELDS: Final = re.compile("(?:set|add|remove)[A-Z]|enable$|disable$|resize$")
_PAGES: Final = frozenset({"pageSize", "maxResults"})
_FOR_STOPPED: Final = re.compile(r"\bstopped (?:VM )?instance")
# Members of requests that name the object, or the state that a write is based on.
_OF_REQUESTS: Final = frozenset(
    {"clusterId", "fingerprint", "labelFingerprint", "name", "nodePoolId", "projectId", "zone"}
)
# Objects whose members are members of an update request.
_OPENED: Final = ("config", "networkConfig")
_MADE_BY_SERVICE: Final = re.compile(
    r"output only|assigned by the (?:server|service)|server-assigned|generated numeric|`tagValues/", re.IGNORECASE
)
_FULL_NAME: Final = re.compile(r"projects/|organizations/")
# Members that tell objects of one collection from each other, the best first.
_KEYS: Final = ("shortName", "displayName", "email", "entity", "environment")
_REPLACES: Final = re.compile(r"\breplaces (?:an|the|it|existing)\b", re.IGNORECASE)
_CALLER: Final = re.compile(r"caller-specified|user-defined|client-assigned", re.IGNORECASE)


# APIs that know the objects of a region under a host of that region alone.
_REGIONAL: Final = frozenset({"aiplatform", "contactcenterinsights", "dialogflow", "documentai", "pubsublite"})


def correct_methods(row: RowEntry, document: Document) -> None:
    """Corrects what a row says beside its fields."""
    if row["api"] in _REGIONAL:
        row["regional_host"] = f"{{region}}-{row['api']}.googleapis.com"
    _close_open_scope(row)
    _move_version(row)
    _order_scopes(row, document)
    _correct_id(row, document)
    named = document.members(document.schema(row["schema"])).get("name")
    if named is not None and "pattern" in named:
        row["id_pattern"] = named["pattern"]
    _correct_labels(row, document)
    _drop_list_of_another_scope(row, document)
    _name_key(row)
    _mark_replacement(row, document)
    _read_update_request(row, document)
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


# --- Another collection -----------------------------------------------------------------------------------------------


def read_collection(row: RowEntry, document: Document) -> None:
    """The name and the methods of the collection of a row, anew from the document."""
    methods = document.collection(row["collection"])
    found = {_STANDARD.get(name, name): _entry(method, document) for name, method in methods.items()}
    row["methods"] = {name: method for name, method in found.items() if name in _STANDARD.values()}
    row["other_methods"] = {name: method for name, method in found.items() if name not in _STANDARD.values()}
    row["per_field_methods"] = [name for name in row["other_methods"] if _FOR_FIELDS.match(name)]
    row["name"] = _VARIABLE.sub(_variable, found["get"]["path"].removeprefix(row["prefix"]))
    row["update_style"] = _update_style(row["methods"])
    row.pop("places", None)


def _entry(method: Method, document: Document) -> MethodEntry:
    path = method.get("flatPath", method["path"])
    query = [name for name, parameter in method.get("parameters", {}).items() if parameter.get("location") == "query"]
    return {
        "verb": method["httpMethod"],
        "path": f"{document.service_path}{path.removeprefix(document.service_path)}",
        "query": query,
        "request": method.get("request", {}).get("$ref", ""),
        "response": method.get("response", {}).get("$ref", ""),
    }


def _variable(found: re.Match[str]) -> str:
    """`{projectsId}` is `{project}`."""
    name = found[1].removesuffix("Id")
    return f"{{{name.removesuffix('s') if name != found[1] else name}}}"


def _update_style(methods: Mapping[str, MethodEntry]) -> str:
    if "patch" in methods:
        return "patch-mask-query" if "updateMask" in methods["patch"].get("query", ()) else "merge-patch"
    return "put" if "update" in methods else "none"


# --- Labels -----------------------------------------------------------------------------------------------------------


# --- Ids --------------------------------------------------------------------------------------------------------------


def _correct_id(row: RowEntry, document: Document) -> None:
    """Whether the service makes the id, whether it is the whole name that is sent, and beside what."""
    found, members = row.get("id"), document.members(document.schema(row["schema"]))
    own_name = f"{_VARIABLE.findall(row['name'])[-1]}Name"
    if found == {"in": "service"} and members.get(own_name, {}).get("description", "").startswith("Required"):
        # `clusterName` of a cluster.
        row["id"] = {"in": "body", "name": own_name}
        return
    if found is None or found.get("in") != "body":
        return
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


# --- Labels -----------------------------------------------------------------------------------------------------------


def _correct_labels(row: RowEntry, document: Document) -> None:
    """The member for the labels of the metadata: a map, and no field of the spec, which then decides about it alone."""
    members = document.members(document.schema(row["schema"]))
    if "userLabels" in members:
        row["labels"] = "userLabels"
    name = row.get("labels", "")
    own = row["fields"].get(name, {})
    is_map = "additionalProperties" in document.resolved(members.get(name, {}))
    if name and (not is_map or (own.get("to", name) == name and own)):
        del row["labels"]


def _name_key(row: RowEntry) -> None:
    """The member by which an object is found again whose id the service makes, and that can have no mark in labels."""
    found = row.get("id", {})
    if found.get("in") == "service" and not row.get("labels") and "key" not in found:
        members = [str(field.get("to") or name) for name, field in row["fields"].items()]
        keys = list[str](name for name in _KEYS if name in members)
        if keys:
            found["key"] = keys[:1]


# --- Methods ----------------------------------------------------------------------------------------------------------


def _mark_replacement(row: RowEntry, document: Document) -> None:
    """A PATCH without a mask that replaces the object, by its text: a part of the object would be all that is left."""
    text = document.collection(row["collection"]).get("patch", {}).get("description", "").partition(".")[0]
    if row["update_style"] == "merge-patch" and _REPLACES.search(text):
        row["update_style"] = "patch-whole"


def _read_update_request(row: RowEntry, document: Document) -> None:
    """A PUT whose request is not the object: which member of the request stands for which of the object."""
    method = row["methods"].get("update", {})
    request = method.get("request", "")
    if row["update_style"] != "put" or request == row["schema"]:
        return
    sent, wrap = document.members(document.schema(request)), ""
    if "update" in sent and document.members(sent["update"]):
        sent, wrap = document.members(sent["update"]), "update"
    members = document.members(document.schema(row["schema"]))
    found = {
        path: _request_path(name, sent, _schema_at(path, members, document), document)
        for path in _paths(row, document)
        for name in _spellings(path)
        if name.partition(".")[0] in sent
    }
    found |= _of_same_schema(found, sent, members)
    if found:
        row["update_style"] = "put-request"
        method["sends_as"] = found
        method["wrap"] = wrap


def _request_path(name: str, sent: Mapping[str, Schema], member: Schema, document: Document) -> str:
    """The path in the request; a list or a map may be in an object of its own there: `labels.labels`."""
    inside = document.members(sent[name]) if name in sent and "$ref" in sent[name] else {}
    is_plain = "items" in member or "additionalProperties" in member
    return f"{name}.{next(iter(inside))}" if is_plain and len(inside) == 1 else name


def _of_same_schema(
    found: Mapping[str, str], sent: Mapping[str, Schema], members: Mapping[str, Schema]
) -> dict[str, str]:
    """Members that are named otherwise in the request, and have a schema that no other one has."""
    named: dict[str, str] = {}
    for name, schema in sent.items():
        same = [one for one, member in members.items() if member.get("$ref") == schema.get("$ref", "")]
        if name not in found.values() and len(same) == 1 and same[0] not in found:
            named.setdefault(same[0], name)
    return named


def _schema_at(path: str, members: Mapping[str, Schema], document: Document) -> Schema:
    outer, _, inner = path.partition(".")
    return document.resolved(document.members(members[outer])[inner] if inner else members[outer])


def _paths(row: RowEntry, document: Document) -> list[str]:
    """The members of the object and those of its objects, outer ones last: they are found where both are."""
    members = document.members(document.schema(row["schema"]))
    inner = [
        f"{name}.{below}"
        for name, schema in members.items()
        if "items" not in document.resolved(schema)
        for below in document.members(schema)
    ]
    return [*(path for path in inner if path.split(".")[0] in _OPENED), *members]


def _spellings(path: str) -> tuple[str, ...]:
    """The names that a member may have in a request; the last one that it has counts."""
    name = path.rpartition(".")[2]
    switch = (f"desired{name.removeprefix('enable')}Config.enabled",) if name.startswith("enable") else ()
    return (name, *switch, f"desired{name[0].upper()}{name[1:]}")


def _drop_list_of_another_scope(row: RowEntry, document: Document) -> None:
    """A list that needs more than the path to say what is listed serves no collection of ours.

    An object whose id the service makes is looked for in the list of its parent.
    """
    if row.get("id", {}).get("in") == "service":
        return
    parameters = document.collection(row["collection"]).get("list", {}).get("parameters", {})
    needed = [
        name
        for name, one in parameters.items()
        if one.get("location") == "query" and one.get("description", "").startswith("Required") and name not in _PAGES
    ]
    if needed:
        row["methods"].pop("list", None)


def _name_items(row: RowEntry, document: Document) -> None:
    method = row["methods"].get("list")
    if method is None:
        return
    members = document.members(document.schema(method.get("response", "")))
    of_schema = [name for name, schema in members.items() if schema.get("items", {}).get("$ref") == row["schema"]]
    lists = [name for name, schema in members.items() if schema.get("items", {}).keys() & {"$ref", "properties"}]
    if found := of_schema or lists:
        method["items"] = found[0]


def _name_members_of_methods(row: RowEntry, document: Document) -> None:
    """What the request of a method for some fields holds: members of the object, or the value of one member."""
    members, unused = document.members(document.schema(row["schema"])), list[str]()
    documented = document.collection(row["collection"])
    for name in row.get("per_field_methods", ()):
        method = row.get("other_methods", {}).get(name)
        if method is not None and _FOR_STOPPED.search(documented.get(name, {}).get("description", "")):
            method["stopped"] = True
        request = method.get("request", "") if method is not None else ""
        if method is None or not request:
            continue
        field = _member_of_schema(request, members)
        sends = list(document.members(document.schema(request)))
        if field:
            method["field"] = field
            continue
        method["sends"] = sends
        renamed = _renamed_members(name, sends, members, document)
        if renamed and "sends_as" not in method:
            method["sends_as"] = renamed
        if "sends_as" not in method and not _is_needed(name, sends, members, row):
            unused.append(name)
    if unused:
        row["per_field_methods"] = [name for name in row["per_field_methods"] if name not in unused]


def _renamed_members(
    method: str, sends: list[str], members: Mapping[str, Schema], document: Document
) -> dict[str, str]:
    """`setEdgeSecurityPolicy` takes `edgeSecurityPolicy` as `securityPolicy`; `setLegacyAbac` what is in it."""
    part = method.removeprefix("set")
    part = part[:1].lower() + part[1:]
    if not method.startswith("set") or part not in members or part in sends:
        return {}
    sent = [name for name in sends if name not in _OF_REQUESTS]
    inside = document.members(members[part])
    if "items" not in document.resolved(members[part]) and inside:
        return {f"{part}.{name}": name for name in sent if name in inside}
    return {part: sent[0]} if len(sent) == 1 else {}


def _is_needed(name: str, sends: list[str], members: Mapping[str, Schema], row: RowEntry) -> bool:
    """Whether the method sets members of the object that no update sets."""
    if not sends or _of_elements(name, members):
        return True
    sent = set(sends) & members.keys() - {*_OF_REQUESTS, "description"}
    if row["update_style"] in ("none", "per-field") or name in ("setLabels", "setResourceLabels", "resize", "upgrade"):
        return bool(sent)
    if row["update_style"] == "put-request":
        return not sent <= row["methods"]["update"]["sends_as"].keys()
    return any(is_output(members[one]) for one in sent)


def mark_set_later(row: RowEntry, document: Document) -> None:
    """A member that the document calls output, and that a method sets: no part of a creation, and not of an update."""
    members = document.members(document.schema(row["schema"]))
    for name in row.get("per_field_methods", ()):
        method = row.get("other_methods", {}).get(name, {})
        parts = [*method.get("sends_as", {}), *method.get("sends", ())] if name.startswith("set") else []
        for field, facts in row["fields"].items():
            member = facts.get("to", field)
            if member in parts and member in members and is_output(members[member]) and member != row.get("labels"):
                facts.pop("output_only", None)
                facts["later"] = True


def _of_elements(method: str, members: Mapping[str, Schema]) -> bool:
    """Whether a method adds or removes elements of a member: `addRule` of `rules`."""
    words = words_of(method)
    return words[0] in ("add", "remove") and words[1:] in {words_of(name) for name in members}


def _member_of_schema(schema: str, members: Mapping[str, Schema]) -> str:
    found = [name for name, member in members.items() if member.get("$ref") == schema]
    return found[0] if len(found) == 1 else ""

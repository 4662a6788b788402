"""Holds the fields of a row against the schema of the API's object, and corrects them by rule."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from tools.catalogue.discovery import Document, Schema
from tools.catalogue.entries import FieldEntry, Json, RowEntry, fields_below
from tools.catalogue.matching import (
    BESIDE,
    LOCAL,
    UNKNOWN,
    is_output,
    is_plain_text,
    mark_unmatched,
    matched,
    matched_in,
    schema_at,
    stem_of,
    words_of,
)
from tools.catalogue.references import correct_form

ADDRESS: Final = ("url", "id")
# So many fields in one object are no accident.
_MANY: Final = 3
_OUTPUT: Final = re.compile(r"\W*output[ -]only\b", re.IGNORECASE)
_INPUT: Final = re.compile(r"\W*(?:optional\. |required\. )?input[ -]only\b", re.IGNORECASE)
_IMMUTABLE: Final = re.compile(
    r"(?:^|\. )\[?immutable\b|cannot be (?:changed|updated|modified) after"
    r"|(?:(?:set|specified) only|only be (?:set|specified)) (?:at|during|when)\b[^.]*\bcreat",
    re.IGNORECASE,
)
_PROTECTED: Final = re.compile(
    r"(?:enable)?(?:deletion|delete|drop)Protection\w*|pointInTimeRecovery\w*|(?:automated|continuous)Backups?\w*"
    r"|versionRetentionPeriod|retentionDays|locked|softDeletePolicy|retentionPolicy|\w*EnforcedRetentionDuration",
    re.IGNORECASE,
)
# The format of a project's name, and not of what is in a project.
_PROJECT_NAME: Final = re.compile(r"\bform(?:at)?\b[^.]*\bprojects/[\w{}*-]+(?![\w{}*/-])")
_FORMATS: Final = frozenset({"google-duration", "google-datetime", "byte"})
_INT64: Final = frozenset({"int64", "uint64"})
# Lists of texts that a service returns in another order than it was sent.
_WITHOUT_ORDER: Final = ("tag", "scope", "range")
_TYPE_LINK: Final = re.compile(r"\bURL of the (\w+) type\b")
_SWITCHES: Final = ("enable", "enabled")
_DURATION: Final = re.compile(r"-?[0-9]+(?:\.[0-9]{1,9})?s")
_VARIABLE: Final = re.compile(r"\{(\w+)\}")
_PYTHON_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "number": (int, float),
}


# What a field of each type is in a document, where it is the only member of an object.
_PLAIN: Final[Mapping[str, tuple[str, ...]]] = {
    "map": ("map",),
    "integer": ("integer", "int32", "int64"),
    "boolean": ("boolean",),
}


def correct_fields(row: RowEntry, document: Document) -> None:
    """Corrects every field of a row."""
    _mark_parents(row)
    _correct_level(row["fields"], document.members(document.schema(row["schema"])), document)
    _mark_parameters(row)
    _mark_protected(row)
    if row["schema"].endswith("Template"):
        # A template is for many places: it takes names alone.
        for _, field in fields_below(row["fields"]):
            field.pop("prefix", None)


def _mark_protected(row: RowEntry) -> None:
    """A field of the spec itself that keeps the object or its data from being lost."""
    for name, field in row["fields"].items():
        if _PROTECTED.fullmatch(name) and not field.get("immutable") and "ref" not in field:
            field["protected"] = True


def _mark_parents(row: RowEntry) -> None:
    """A reference to what the object is in: its kind or name ends with the words of a variable of the name."""
    variables = [
        words_of(name) for template in (row["name"], *row.get("places", ())) for name in _VARIABLE.findall(template)
    ]
    for name, field in row["fields"].items():
        if "ref" in field and _names_parent(name, field, variables[:-1]):
            field["to"] = "url"
            field.pop("output_only", None)
            field.pop("within", None)
        if field.get("to") == "url":
            _forget_members(field)


def _names_parent(name: str, field: FieldEntry, variables: list[tuple[str, ...]]) -> bool:
    if field.get("to") != UNKNOWN:
        # It was taken for a member of a similar name.
        return field["type"] == "object" and field.get("to") != "id" and stem_of(name, field) in variables
    stems = [stem_of(name, field), *(words_of(kind) for kind in field["ref"].get("kinds", ()))]
    return any(words and stem[-len(words) :] == words for stem in stems for words in variables)


def _mark_parameters(row: RowEntry) -> None:
    """A field that is no member of the object, but a parameter of the query of a write."""
    writes = [row["methods"][name] for name in ("create", "patch", "update", "delete") if name in row["methods"]]
    parameters = {words_of(name): name for method in writes for name in method.get("query", ())}
    for name, field in row["fields"].items():
        if field.get("to") == UNKNOWN and stem_of(name, field) in parameters:
            field["to"] = parameters[stem_of(name, field)]
            field["query"] = True


def _correct_level(
    fields: dict[str, FieldEntry], members: Mapping[str, Schema], document: Document, *, is_inner: bool = False
) -> None:
    sent = {name: field for name, field in fields.items() if field.get("to") not in (*ADDRESS, LOCAL)}
    _match_level(sent, members, document)
    if is_inner:
        _match_last(sent, members, document)
    for name, field in sent.items():
        schema = _schema_of(name, field, members, document)
        if schema is None:
            mark_unmatched(field, {_path(other, its) for other, its in sent.items()}, members)
        else:
            if "ref" in field:
                correct_form(field["ref"], _path(name, field).rpartition(".")[2], schema.get("description", ""))
            if field.get("to") == name:
                del field["to"]
            if field["type"] == "list" and not field.get("fields") and words_of(name)[-1] in _WITHOUT_ORDER:
                field["set"] = True
            _correct(field, schema, document)
            if field.get("set") and field.get("items") == "string" and words_of(name)[-1] == "scope":
                field["format"] = "oauth-scope"


def _schema_of(name: str, field: FieldEntry, members: Mapping[str, Schema], document: Document) -> Schema | None:
    """The schema of the member that a field is; of an object that holds nothing else, that of what it holds."""
    schema = schema_at(members, _path(name, field), document)
    only = None if schema is None else _only_member(field, schema, document)
    if only is None:
        return schema
    field["to"] = f"{_path(name, field)}.{only}"
    return schema_at(members, _path(name, field), document)


def _only_member(field: FieldEntry, schema: Schema, document: Document) -> str | None:
    """The one member of an object that a field without fields is: `tags` of `{tags: {KEY: VALUE}}`."""
    members = document.resolved(schema).get("properties", {})
    if (
        len(members) != 1
        or field.get("fields")
        or field["type"] not in _PLAIN
        or {"ref", "shape", "secret"} & field.keys()
    ):
        return None
    name, inner = next(iter(members.items()))
    resolved = document.resolved(inner)
    found = "map" if "additionalProperties" in resolved else resolved.get("format", resolved.get("type", ""))
    return name if found in _PLAIN[field["type"]] else None


def _match_level(fields: Mapping[str, FieldEntry], members: Mapping[str, Schema], document: Document) -> None:
    for name, field in fields.items():
        if field.get("to") == UNKNOWN and name in members:
            del field["to"]
    known = {name for name, field in fields.items() if schema_at(members, _path(name, field), document) is not None}
    claimed = {_path(name, fields[name]) for name in known}
    unknown = {name: field for name, field in fields.items() if name not in known}
    found = {name: matched(name, field, members, document, claimed) for name, field in unknown.items()}
    for name, path in found.items():
        # A member that two fields seem to be is neither, as far as rules can tell.
        fields[name]["to"] = path if list(found.values()).count(path) == 1 else UNKNOWN
    _match_in_majority(found, fields, members, document)


def _match_last(fields: Mapping[str, FieldEntry], members: Mapping[str, Schema], document: Document) -> None:
    """In an object, the one reference without a member is the one text that no other field is."""
    unknown = [name for name, field in fields.items() if field.get("to") == UNKNOWN]
    claimed = {_path(name, field).split(".")[0] for name, field in fields.items()}
    free = [name for name, schema in members.items() if name not in claimed and is_plain_text(schema, document)]
    if len(unknown) == len(free) == 1 and ("ref" in fields[unknown[0]] or unknown[0].endswith("Ref")):
        is_list = fields[unknown[0]]["type"] == "list"
        if is_list == ("items" in document.resolved(members[free[0]])):
            fields[unknown[0]]["to"] = free[0]


def _match_in_majority(
    found: Mapping[str, str], fields: Mapping[str, FieldEntry], members: Mapping[str, Schema], document: Document
) -> None:
    """Where many fields are members of one object of the API's object, the others may be as well."""
    outer = Counter(path.split(".")[0] for path in found.values() if "." in path).most_common(1)
    if outer and outer[0][1] >= _MANY:
        for name in found:
            if fields[name]["to"] == UNKNOWN:
                fields[name]["to"] = matched_in(outer[0][0], name, members, document)


def _path(name: str, field: FieldEntry) -> str:
    return field.get("to") or name


def absent_members(row: RowEntry, document: Document) -> Iterator[str]:
    """The fields whose member is none of the API's object: of the request that creates it, or wrong."""
    yield from _absent(row["fields"], document.members(document.schema(row["schema"])), document, "")


def _absent(
    fields: Mapping[str, FieldEntry], members: Mapping[str, Schema], document: Document, above: str
) -> Iterator[str]:
    for name, field in fields.items():
        if field.get("to") in (*ADDRESS, UNKNOWN, BESIDE, LOCAL) or field.get("query"):
            continue
        schema = schema_at(members, _path(name, field), document)
        if schema is None:
            yield f"{above}{name}"
        elif field.get("shape") != "one-of-to-text":
            inside = _members_below(field, schema, document)
            yield from _absent(field.get("fields", {}), inside, document, f"{above}{name}.")


# --- One field --------------------------------------------------------------------------------------------------------


def _correct(field: FieldEntry, schema: Schema, document: Document) -> None:
    resolved = document.resolved(schema)
    _correct_shape(field, resolved, document)
    _correct_reference(field, document.element(schema), schema.get("description", ""))
    _correct_marks(field, schema, resolved)
    _correct_values(field, document.element(schema))
    _correct_items(field, document.resolved(resolved.get("additionalProperties", {})))
    _complete_types(field, schema)
    _check_default(field)
    below = _members_below(field, schema, document)
    if "fields" in field and "one_of_refs" not in field and field.get("shape") != "one-of-to-text":
        for inner in field["fields"].values():
            # Only fields of the spec itself are parts of the address.
            if inner.get("to") in ADDRESS:
                inner["to"] = UNKNOWN
        _correct_level(field["fields"], below, document, is_inner=True)
        _switch_on(field, below)


def _switch_on(field: FieldEntry, members: Mapping[str, Schema]) -> None:
    """An object with a switch that the spec has no field for: to have it in the spec is to switch it on."""
    if field["type"] != "object" or "ref" in field or "shape" in field:
        return
    known = {_path(name, below).split(".")[0] for name, below in field["fields"].items()}
    for name in _SWITCHES:
        schema = members.get(name, {})
        if schema.get("type") == "boolean" and name not in known and not is_output(schema):
            field.setdefault("adds", {})[name] = True


def _members_below(field: FieldEntry, schema: Schema, document: Document) -> Mapping[str, Schema]:
    found = document.members(schema)
    values = document.resolved(schema).get("additionalProperties")
    if field.get("shape") == "keyed-list-to-map" and values is not None:
        key = field["keys"][0]
        return {key: {"type": "string"}, **document.members(values)}
    if field.get("shape") == "key-value-list-to-map":
        return {name: {"type": "string"} for name in field.get("fields", {})}
    if field.get("shape") == "inner-object":
        return dict.fromkeys(field.get("fields", {}), schema)
    if values is not None and not found and field["type"] == "object":
        # A map of anything, of which the spec names the keys.
        return dict.fromkeys(field.get("fields", {}), values)
    return found


def _correct_shape(field: FieldEntry, resolved: Schema, document: Document) -> None:
    """The shape is what the two types say; lists of keys and values, and of texts, are told by their fields."""
    if (
        field.get("shape") in ("refs-to-texts", "inner-object")
        or "ref" in field
        or "secret" in field
        or "one_of_refs" in field
    ):
        return
    field.pop("shape", None)
    is_list = "items" in resolved
    if field["type"] == "object" and is_list:
        field["shape"] = "object-to-list-of-one"
    elif field.get("fields") and document.element(resolved).get("type") in _PYTHON_TYPES:
        field["shape"] = "refs-to-texts" if is_list else "one-of-to-text"
        _forget_members(field)
    elif field["type"] == "list" and not is_list and "additionalProperties" in resolved:
        _correct_map_shape(field, resolved["additionalProperties"], document)
    elif field["type"] == "list" and resolved.get("type", "object") == "object" and "fields" in field:
        field["shape"] = "list-of-one-to-object"
    elif field["type"] == "string" and (resolved.get("type") == "object" or is_list):
        field["format"] = "json-text"
    elif field["type"] == "boolean" and resolved.get("type") == "object":
        field["shape"] = "true-to-object"


def _correct_reference(field: FieldEntry, element: Schema, text: str) -> None:
    """A reference whose member is an object: the member of it that has the value; what stands before a project."""
    texts = [name for name, member in element.get("properties", {}).items() if member.get("type") == "string"]
    if "ref" not in field:
        return
    form = field["ref"].get("form", "name")
    if field["ref"].get("kinds") == ["Project"] and form == "id" and _PROJECT_NAME.search(text):
        field["ref"]["prefix"] = "projects/"
    if "within" in field or not texts:
        return
    if form in texts or len(texts) == 1:
        field["within"] = form if form in texts else texts[0]


def _forget_members(field: FieldEntry) -> None:
    """What is in a part of an address, or in a text, is no member of the API."""
    for below in field.get("fields", {}).values():
        below.pop("to", None)
        _forget_members(below)


def _correct_map_shape(field: FieldEntry, values: Schema, document: Document) -> None:
    fields = field.setdefault("fields", {"key": {"type": "string"}, "value": {"type": "string"}})
    if document.members(values):
        field["shape"] = "keyed-list-to-map"
        named = [name for name, below in fields.items() if stem_of(name, below)[-1] in ("name", "id", "key")]
        field["keys"] = [named[0] if named else next(iter(fields))]
    else:
        field["shape"] = "key-value-list-to-map"
        for below in fields.values():
            below.pop("to", None)


def _correct_marks(field: FieldEntry, schema: Schema, resolved: Schema) -> None:
    text = schema.get("description", "")
    if schema.get("readOnly") or resolved.get("readOnly") or _OUTPUT.match(text):
        field["output_only"] = True
        field.pop("required", None)
    if _INPUT.match(text):
        field["input_only"] = True
    if _IMMUTABLE.search(text):
        field["immutable"] = True


def _correct_values(field: FieldEntry, element: Schema) -> None:
    """What the texts and numbers may be; of a list, its elements."""
    kind = field.get("items", "string") if field["type"] == "list" else field["type"]
    if kind == "integer" and element.get("type") == "string" and element.get("format") in _INT64:
        field["int64_text"] = True
    else:
        field.pop("int64_text", None)
    if kind == "string" and element.get("format") in _FORMATS and "ref" not in field and "fields" not in field:
        field["format"] = element["format"]
    if kind == "string" and "enum" in element and "fields" not in field:
        field["enum"] = element["enum"]
    if kind == "string" and element.get("type") in ("integer", "number") and "ref" not in field:
        field["format"] = "number-text"


def _correct_items(field: FieldEntry, values: Schema) -> None:
    """What the values of a map are, where they are no texts."""
    if (
        field["type"] == "map"
        and "fields" not in field
        and (values.get("properties") or values.get("type") == "object")
    ):
        field["items"] = "object"
    elif field["type"] == "map" and values.get("type") in ("array", "any"):
        field["items"] = "any"


def _complete_types(field: FieldEntry, schema: Schema) -> None:
    """A type of machine, disk or accelerator is a link in the API, and a name in the spec."""
    found = _TYPE_LINK.search(schema.get("description", ""))
    if found is not None and field["type"] == "string":
        field["prefix"] = f"projects/{{project}}/{{place}}/{found[1]}Types/"


def _check_default(field: FieldEntry) -> None:
    """A default that no author could write is none."""
    if "default" in field and not _is_value(field["default"], field):
        del field["default"]
        field.pop("default_from", None)


def _is_value(value: Json, field: FieldEntry) -> bool:
    types = _PYTHON_TYPES.get(field["type"])
    if field.get("output_only") or str(value).endswith("_UNSPECIFIED"):
        return False
    if types is None or not isinstance(value, types) or (isinstance(value, bool) and field["type"] != "boolean"):
        return False
    if field.get("format") == "google-duration":
        return isinstance(value, str) and _DURATION.fullmatch(value) is not None
    return "enum" not in field or value in field["enum"]

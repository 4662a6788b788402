"""The types of facts, before they are written: plain JSON objects, with the keys that the rules know."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias, TypedDict, cast

ROOT: Final = Path(__file__).parents[2]
FACTS: Final = Path(__file__).parent / "facts"
EXCEPTIONS: Final = Path(__file__).parent / "exceptions"

Json: TypeAlias = "str | int | float | bool | None | list[Json] | dict[str, Json]"
# What the product reads; what else the facts say is for the rules alone.
ROW_KEYS: Final = (
    "kind",
    "group",
    "version",
    "host",
    "regional_host",
    "api",
    "api_version",
    "prefix",
    "name",
    "places",
    "id",
    "id_pattern",
    "update_style",
    "per_field_methods",
    "operations",
    "labels",
    "concurrency",
    "own_id",
    "title",
    "methods",
    "other_methods",
    "output_only",
    "inside",
    "constants",
    "chosen",
    "alternatives",
    "derived",
    "updates_singly",
    "retirement",
    "creation_defaults",
    "place_query",
    "create_methods",
    "delete_methods",
    "emptied_first",
    "absent",
    "fields",
)
FIELD_KEYS: Final = (
    "type",
    "to",
    "required",
    "immutable",
    "output_only",
    "input_only",
    "ref",
    "within",
    "one_of_refs",
    "secret",
    "int64_text",
    "format",
    "enum",
    "default",
    "default_from",
    "keys",
    "set",
    "shape",
    "pruned",
    "protected",
    "kept",
    "items",
    "query",
    "prefix",
    "values",
    "toggle",
    "later",
    "grows",
    "with_zone",
    "adds",
    "known_by",
    "encoded_by",
    "reason",
    "fields",
)


class RefEntry(TypedDict, total=False):
    """The kinds that a field may refer to, and the form of the value."""

    kinds: list[str]
    form: str
    prefix: str
    kinded: bool


class FieldEntry(TypedDict, total=False):
    """A field of a spec."""

    type: str
    to: str
    required: bool
    immutable: bool
    output_only: bool
    input_only: bool
    ref: RefEntry
    within: str
    one_of_refs: dict[str, RefEntry]
    secret: bool
    int64_text: bool
    format: str
    enum: list[str]
    default: Json
    default_from: str
    keys: list[str]
    set: bool
    shape: str
    pruned: bool
    protected: bool
    kept: bool
    items: str
    query: bool
    prefix: str
    values: dict[str, Json]
    toggle: dict[str, str]
    later: bool
    grows: bool
    with_zone: bool
    adds: dict[str, Json]
    known_by: dict[str, Json]
    encoded_by: str
    reason: str
    fields: "dict[str, FieldEntry]"


class MethodEntry(TypedDict, total=False):
    """A method of an API."""

    verb: str
    path: str
    query: list[str]
    request: str
    response: str
    wrap: str
    mask: str
    # Of a list: the member of the response that holds the objects.
    items: str
    # Of a method for some fields: the members of the request, or the one field whose value is the request.
    sends: list[str]
    field: str
    # Of a request whose members are not named as the object's: the member of it, by the path in the object.
    sends_as: dict[str, str]
    # The object has to be stopped before.
    stopped: bool


class RowEntry(TypedDict, total=False):
    """A kind."""

    kind: str
    group: str
    version: str
    host: str
    regional_host: str
    api: str
    api_version: str
    prefix: str
    name: str
    places: list[str]
    id: dict[str, str | list[str]]
    id_pattern: str
    update_style: str
    per_field_methods: list[str]
    operations: dict[str, str]
    labels: str
    concurrency: list[str]
    own_id: str
    title: str
    methods: dict[str, MethodEntry]
    other_methods: dict[str, MethodEntry]
    output_only: list[str]
    inside: dict[str, str]
    constants: dict[str, Json]
    chosen: dict[str, dict[str, str]]
    alternatives: list[list[str]]
    derived: dict[str, list[str]]
    updates_singly: bool
    retirement: dict[str, Json]
    creation_defaults: list[dict[str, Json]]
    place_query: dict[str, dict[str, str]]
    create_methods: dict[str, str]
    delete_methods: dict[str, str]
    emptied_first: list[str]
    absent: dict[str, list[Json]]
    fields: dict[str, FieldEntry]
    # Read by the rules, and not written.
    discovery: str
    collection: str
    schema: str
    hold: str


Rows: TypeAlias = dict[str, RowEntry]


def facts_by_service() -> dict[str, Rows]:
    """The facts as they came, by service and kind."""
    return {file.stem: cast(Rows, json.loads(file.read_text("utf-8"))) for file in sorted(FACTS.glob("*.json"))}


def fields_below(fields: Mapping[str, FieldEntry], path: str = "") -> Iterator[tuple[str, FieldEntry]]:
    """Every field with its dotted path, outer ones first."""
    for name, field in fields.items():
        here = f"{path}.{name}" if path else name
        yield here, field
        yield from fields_below(field.get("fields", {}), here)

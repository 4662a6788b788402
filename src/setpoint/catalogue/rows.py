"""The rows of the catalogue: one for each kind, with its methods and its fields, read when it is first asked for.

`index.json` names the kinds of each service, so that the kinds are known without reading their rows.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct

from setpoint.core.unstructured import GroupKind

_FOLDER: Final = Path(__file__).parent / "google"
FieldKind: TypeAlias = Literal["string", "integer", "boolean", "number", "object", "list", "map", "any"]
ReferenceForm: TypeAlias = Literal["id", "name", "link", "email", "address", "version", "connectionName"]
UpdateStyle: TypeAlias = Literal[
    "patch-mask-query", "patch-mask-body", "put-mask-query", "merge-patch", "put", "put-request", "per-field", "none"
]
FieldShape: TypeAlias = Literal[
    "object-to-list-of-one",
    "list-of-one-to-object",
    # Fields key and value; the values are scalars.
    "key-value-list-to-map",
    # A list of objects, by `keys[0]`; that field is the key in the map, and no member of the value unless it has `to`.
    "keyed-list-to-map",
    "refs-to-texts",
    # An object with one of its fields, a reference or text, whose value is sent.
    "one-of-to-text",
    # Elements of a list that several fields share: those that have the members of `adds`.
    "part-of-list",
    # `true` is an empty object, `false` none.
    "true-to-object",
]


class ReferenceFacts(Struct, frozen=True):
    """A field that refers to another object: the kinds that it may name, and the form of the value that is sent."""

    kinds: Sequence[str] = ()
    form: ReferenceForm = "name"
    # What stands before the value: `//certificatemanager.googleapis.com/`.
    prefix: str = ""


class FieldFacts(Struct, frozen=True):
    """A field of a spec. `to`: the member of the API's object; `url` and `id` are parts of its address.

    A list of objects has the fields of its items; a list of anything else, or a map, the type of them in `items`.
    """

    type: FieldKind = "string"
    to: str = ""
    required: bool = False
    immutable: bool = False
    output_only: bool = False
    input_only: bool = False
    ref: ReferenceFacts | None = None
    within: str = ""
    one_of_refs: Mapping[str, ReferenceFacts] = {}
    secret: bool = False
    int64_text: bool = False
    format: str = ""
    enum: Sequence[str] = ()
    default: Any = UNSET
    # Whose default it is: of the service (`api`, `both`), or of Config Connector (`crd`); `sent`: Config Connector
    # sends it at creation when the spec leaves the field out.
    default_from: str = ""
    keys: Sequence[str] = ()
    set: bool = False
    shape: FieldShape | None = None
    # Whether it is unset when the spec leaves it out, though the service may have filled it in.
    pruned: bool = False
    items: str = ""
    # It is a parameter of the query of each write that has one of that name, and no member of the object.
    query: bool = False
    # What stands before a text without a slash: `projects/{project}/instanceConfigs/`. Variables: those of the name,
    # and `{place}`, which is `zones/ZONE`, `regions/REGION` or `global`.
    prefix: str = ""
    # What a value of the spec is in the API, where the two have different words: `{"true": "ENABLED"}`.
    values: Mapping[str, Any] = {}
    # The method that sets each value, of a field that no update sets: `{"true": "disable", "false": "enable"}`.
    toggle: Mapping[str, str] = {}
    # Members that are sent with the object of a field, whatever the spec says: `{"enable": true}`.
    adds: Mapping[str, Any] = {}
    fields: Mapping[str, "FieldFacts"] = {}


class MethodFacts(Struct, frozen=True):
    """A method: its verb and path. `wrap`: the member that the object stands under; `mask`: that of the field mask."""

    verb: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    query: Sequence[str] = ()
    request: str = ""
    response: str = ""
    wrap: str = ""
    mask: str = ""
    # Of a list: the member of the response that holds the objects.
    items: str = ""
    # Of a method for some fields: the members of its request, or the one member of the object that is the request.
    sends: Sequence[str] = ()
    field: str = ""
    # Of an update by a request of its own (`put-request`): the member of the request for each member of the object.
    sends_as: Mapping[str, str] = {}


class IdFacts(Struct, frozen=True, rename={"where": "in"}):
    """Where the id of an object goes when it is created: `query`, `body` or `url`; or `service`, which makes it.

    `fields`: there is none but the fields of the spec that the name has as variables.
    """

    where: Literal["query", "body", "url", "service", "fields"]
    name: str = ""
    # Of one in the body: `name` when it is the whole relative name that is sent.
    form: Literal["id", "name"] = "id"
    # `wrap`: it stands beside the member that the object is wrapped in, not in the object.
    beside: Literal["", "wrap"] = ""
    # What is sent, where it is not the id alone.
    value: str = ""


class InsideFacts(Struct, frozen=True):
    """The list in the object of the parent that an object is an element of, and the member that is its id there.

    The name of such an object is that of the parent, the list and the id; methods are those of the parent.
    """

    list: str
    key: str = "name"


class KindFacts(Struct, frozen=True):
    """A row: a kind of Config Connector's, and the collection of Google's API that its objects are in."""

    kind: str
    group: str
    version: str
    host: str
    api: str
    api_version: str
    # URL = https:// host / prefix name.
    prefix: str
    name: str
    fields: Mapping[str, FieldFacts]
    methods: Mapping[str, MethodFacts]
    places: Sequence[str] = ()
    other_methods: Mapping[str, MethodFacts] = {}
    id: IdFacts = IdFacts("service")
    update_style: UpdateStyle = "none"
    per_field_methods: Sequence[str] = ()
    # The sort of operation that create, update and delete return; absent: the method is synchronous.
    operations: Mapping[str, str] = {}
    labels: str = ""
    concurrency: Sequence[str] = ()
    # The last part of the name, where it is not the id itself: `{id}@{project}.iam.gserviceaccount.com`.
    own_id: str = ""
    output_only: Sequence[str] = ()
    inside: InsideFacts | None = None
    # Members that are sent at creation whatever the spec says.
    constants: Mapping[str, Any] = {}
    # By a member: its value by which of other members is there, `{"type": {"tcpHealthCheck": "TCP"}}`.
    chosen: Mapping[str, Mapping[str, str]] = {}


# The verb of a method that has none in the file; and whether its path is that of the collection or of the object.
_STANDARD: Final = {
    "create": ("POST", True),
    "list": ("GET", True),
    "get": ("GET", False),
    "patch": ("PATCH", False),
    "update": ("PUT", False),
    "delete": ("DELETE", False),
}
_index: Final = msgspec.json.Decoder(dict[str, dict[str, str]])
_held: Final = msgspec.json.Decoder(dict[str, str])


@cache
def kinds_by_group() -> Mapping[GroupKind, str]:
    """The service of each kind, by group and name; no row is read."""
    index = _index.decode((_FOLDER / "index.json").read_bytes())
    return {(group, kind): service for service, kinds in index.items() for kind, group in kinds.items()}


@cache
def rows_of(service: str) -> Mapping[str, KindFacts]:
    """The rows of a service, by kind."""
    rows = msgspec.json.decode((_FOLDER / f"{service}.json").read_bytes())
    for row in rows.values():
        expand(row)
    return msgspec.convert(rows, dict[str, KindFacts])


def expand(row: dict[str, Any]) -> None:
    """Puts back what a file leaves out: the fields that several objects of a row share, verbs and paths of methods."""
    shared: list[dict[str, Any]] = row.pop("shared", [])
    for fields in (*shared, row["fields"]):
        _put_shared(fields, shared)
    path = f"{row['prefix']}{row['name']}"
    for name, method in row["methods"].items():
        verb, is_collection = _STANDARD[name]
        method.setdefault("verb", verb)
        method.setdefault("path", path.rpartition("/")[0] if is_collection else path)
    for name, method in row.get("other_methods", {}).items():
        method.setdefault("verb", "POST")
        method.setdefault("path", f"{path}{'/' if row['api'] == 'compute' else ':'}{name}")


def _put_shared(fields: dict[str, Any], shared: list[dict[str, Any]]) -> None:
    for field in fields.values():
        below = field.get("fields")
        if isinstance(below, int):
            field["fields"] = shared[below]
        elif below is not None:
            _put_shared(below, shared)


def facts_of(name: GroupKind) -> KindFacts:
    """The row of a kind."""
    return rows_of(kinds_by_group()[name])[name[1]]


def held_kinds() -> Mapping[str, str]:
    """The kinds of Config Connector's that are known but have no row, and why."""
    return _held.decode((_FOLDER / "held.json").read_bytes())

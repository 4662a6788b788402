"""The rows of the catalogue: one for each kind, with its methods and its fields, read when it is first asked for."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct

from setpoint.catalogue.index import FOLDER, kinds_by_group
from setpoint.core.unstructured import GroupKind

FieldKind: TypeAlias = Literal["string", "integer", "boolean", "number", "object", "list", "map", "any"]
ReferenceForm: TypeAlias = Literal[
    # That of an object of another project or service is its whole name.
    "id",
    # The id alone, wherever the object is.
    "bare",
    "name",
    "link",
    # The ids of the name, with dots between them: `project.dataset.table`.
    "dotted",
    # Others are what the status of the target has by this name.
    "email",
    "address",
    "version",
    "connectionName",
    "clusterType",
]
UpdateStyle: TypeAlias = Literal[
    "patch-mask-query",
    # As before, with the path of each member that changes, not the member of the object that it is in.
    "patch-paths-query",
    "patch-mask-body",
    "put-mask-query",
    "merge-patch",
    # A PATCH without a mask that replaces the object.
    "patch-whole",
    "put",
    "put-request",
    "per-field",
    "none",
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
    # A text that is the value of one element of such a list: that which has the members of `adds`.
    "value-of-element",
    # `true` is an object with the members of `adds`, `false` none.
    "true-to-object",
    # An object with one field, which is an object: that one is sent.
    "inner-object",
    # A map of texts; the elements of the list have the key and the value as the two `keys`.
    "map-to-key-value-list",
    # A map of objects with the one field `within`, whose value is sent.
    "map-of-objects-to-map",
]


class ReferenceFacts(Struct, frozen=True):
    """A field that refers to another object: the kinds that it may name, and the form of the value that is sent."""

    kinds: Sequence[str] = ()
    form: ReferenceForm = "name"
    # What stands before the value: `//certificatemanager.googleapis.com/`.
    prefix: str = ""
    # Whether it names the kind, though there is only one.
    kinded: bool = False


class FieldFacts(Struct, frozen=True):
    """A field of a spec. `to`: the member of the API's object; `url` and `id` are parts of its address.

    `.` is an object whose members stand in the object that it is in; `?` has no member, for the `reason` given; `-` is
    not sent, and says how something else is done.
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
    # Whether only an explicit value gives it up: backups, protection against deletion, how long data is kept.
    protected: bool = False
    # Whether it keeps its live value when the author takes it out: the service cannot do without one.
    kept: bool = False
    items: str = ""
    # It is a parameter of the query of each write that has one of that name, and no member of the object.
    query: bool = False
    # What stands before a text without a slash: `projects/{project}/instanceConfigs/`. Variables: those of the name,
    # and `{place}`, which is `zones/ZONE`, `regions/REGION` or `global`.
    prefix: str = ""
    # A list of zones that the zone of the object itself belongs to, where it is in one; authors write the others.
    with_zone: bool = False
    # What a value of the spec is in the API, where the two have different words: `{"true": "ENABLED"}`.
    values: Mapping[str, Any] = {}
    # The method that sets each value, of a field that no update sets: `{"true": "disable", "false": "enable"}`. It is
    # sent once the object is there.
    toggle: Mapping[str, str] = {}
    # It is no member of a creation: a method sets it once the object is there.
    later: bool = False
    # It can only grow, and others may let it: it is compared when the author has changed something, and not otherwise.
    grows: bool = False
    # Members that are sent with the object of a field, whatever the spec says: `{"enable": true}`.
    adds: Mapping[str, Any] = {}
    # Of elements of a shared list that are not known by `adds`: members that they have no other value of.
    known_by: Mapping[str, Any] = {}
    # Of a secret: the field that says whether its text is in base64 already.
    encoded_by: str = ""
    # Why a field has no member of the API.
    reason: str = ""
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
    # Of a request whose members are not named as the object's: the member of it, by the path in the object.
    sends_as: Mapping[str, str] = {}
    # The object has to be stopped before.
    stopped: bool = False


class IdFacts(Struct, frozen=True, rename={"where": "in"}):
    """Where the id of an object goes when it is created: `query`, `body` or `url`; or `service`, which makes it.

    `fields`: there is none but the fields of the spec that the name has as variables.
    """

    where: Literal["query", "body", "url", "service", "fields"]
    name: str = ""
    # Of one in the body: `name` when it is the whole relative name that is sent; of one in the URL, when it is in the
    # body as well.
    form: Literal["id", "name"] = "id"
    # `wrap`: it stands beside the member that the object is wrapped in, not in the object.
    beside: Literal["", "wrap"] = ""
    # What is sent, where it is not the id alone.
    value: str = ""
    # Of one that the service makes, in a collection without labels: the members by which an object that was created is
    # found again, among those that were not there before.
    key: Sequence[str] = ()
    # The method that reads them, where the object itself does not have them. The ids are numbers that count up then.
    key_method: str = ""


class InsideFacts(Struct, frozen=True):
    """The list in the object of the parent that an object is an element of, and the member that is its id there.

    The name of such an object is that of the parent, the list and the id; methods are those of the parent.
    """

    list: str
    key: str = "name"


class RetirementFacts(Struct, frozen=True):
    """What is done to an object that no method deletes: each object in it is destroyed, and members are cleared."""

    # The collection in the object, the method that destroys an object of it, and the states in which that is done.
    collection: str
    method: str
    done: Sequence[str] = ()
    clears: Sequence[str] = ()


# Any value of a member that is there.
ANY_VALUE: Final = "*"


class CreationDefaults(Struct, frozen=True):
    """Members that Config Connector sends at creation when the spec leaves them out, in some places or cases alone.

    `at`: the sort of place, `global`, `regions` or `zones`; anywhere without it. `given`: values of other members, null
    for one that is not there, `*` for one that is, a list for any of several. `each`: the list whose elements have
    those members; `given` is of the element then, `beside` of the object. Texts there may have variables of the name.
    """

    members: Mapping[str, Any]
    at: str = ""
    given: Mapping[str, Any] = {}
    each: str = ""
    beside: Mapping[str, Any] = {}


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
    # The host for an object in a region, where that of all regions has none of them: `{region}-HOST`.
    regional_host: str = ""
    places: Sequence[str] = ()
    other_methods: Mapping[str, MethodFacts] = {}
    id: IdFacts = IdFacts("service")
    # What an id that the author chooses has to match as a whole; empty where it is not known.
    id_pattern: str = ""
    update_style: UpdateStyle = "none"
    per_field_methods: Sequence[str] = ()
    # The sort of operation that create, update and delete return; absent: the method is synchronous.
    operations: Mapping[str, str] = {}
    labels: str = ""
    concurrency: Sequence[str] = ()
    # The member that is the name of the resource at creation: the spec has no field for it.
    title: str = ""
    # The last part of the name, where it is not the id itself: `{id}@{project}.iam.gserviceaccount.com`.
    own_id: str = ""
    # Members that the service sets; dotted inside of an object.
    output_only: Sequence[str] = ()
    inside: InsideFacts | None = None
    # Members that are sent at creation whatever the spec says.
    constants: Mapping[str, Any] = {}
    # By a member: its value by which of other members is there, `{"type": {"tcpHealthCheck": "TCP"}}`.
    chosen: Mapping[str, Mapping[str, str]] = {}
    # Groups of members of which an object has one: with another of the group, a constant is not sent.
    alternatives: Sequence[Sequence[str]] = ()
    # By a member: with one of which others the service makes it of them, and an update leaves it out.
    derived: Mapping[str, Sequence[str]] = {}
    # By what the object is in (`folders`): parameters of its writes.
    place_query: Mapping[str, Mapping[str, str]] = {}
    # By a member, or `member=value`: the method of the collection that creates an object with it. One whose request is
    # not the object is among `other_methods`, with `wrap` and what it `sends` beside that.
    create_methods: Mapping[str, str] = {}
    # By `field=value`: the method of the object that is called in place of a deletion; empty, it is left in place.
    delete_methods: Mapping[str, str] = {}
    # Members that are emptied before the object is deleted: the service refuses that as long as they are not.
    emptied_first: Sequence[str] = ()
    retirement: RetirementFacts | None = None
    # Whether an update may change one member only: each goes in a write of its own.
    updates_singly: bool = False
    creation_defaults: Sequence[CreationDefaults] = ()
    # By a member: the values with which an object counts as absent, `{"state": ["DELETE_REQUESTED"]}`.
    absent: Mapping[str, Sequence[Any]] = {}


# The verb of a method that has none in the file; and whether its path is that of the collection or of the object.
_STANDARD: Final = {
    "create": ("POST", True),
    "list": ("GET", True),
    "get": ("GET", False),
    "patch": ("PATCH", False),
    "update": ("PUT", False),
    "delete": ("DELETE", False),
}


@cache
def rows_of(service: str) -> Mapping[str, KindFacts]:
    """The rows of a service, by kind."""
    rows = msgspec.json.decode((FOLDER / f"{service}.json").read_bytes())
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

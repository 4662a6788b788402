"""The reference of a kind, read off its types: a row for each field, and the page that is made of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final, NamedTuple

import msgspec
from msgspec import inspect

from setpoint.app.broken_types import BrokenKind, BrokenOwner
from setpoint.app.kinds import catalogue_types, described_types, plugin_types
from setpoint.app.plugins import Distribution, Plugins, clash_error
from setpoint.core.schema.annotations import ANNOTATIONS
from setpoint.core.schema.schema_nodes import SchemaNode, item_node, member_nodes, root_node
from setpoint.core.schema.shape import KeyedList, Mark
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.engine.capabilities import keeps_cookie
from setpoint.engine.kind import ResourceType
from setpoint.engine.owner import Owner, annotation_target
from setpoint.kind.spec_references import ResourceReference, reference_target
from setpoint.kinds.field_docs import field_docs

FIELDS_HEAD: Final = "| field | what it is | type | default | notes |\n|---|---|---|---|---|\n"
STATUS_HEAD: Final = "| field | what it is |\n|---|---|\n"
ANNOTATIONS_HEAD: Final = "| annotation | what it does |\n|---|---|\n"
# In the order of the table.
MARK_WORDS: Final = {
    Mark.IMMUTABLE: "immutable",
    Mark.PROTECTED: "protected",
    Mark.CHOSEN: "chosen by the service",
    Mark.FILLED: "filled in by the service",
    Mark.WRITE_ONLY: "write-only",
    Mark.ASKED: "sent once",
    Mark.OUTPUT_ONLY: "output",
    Mark.JSON_TEXT: "JSON",
}
_SCALARS: Final = {
    **{inspect.StrType: "text", inspect.IntType: "integer", inspect.BoolType: "true or false"},
    **{inspect.FloatType: "number", inspect.AnyType: "anything", inspect.NoneType: "null", inspect.BytesType: "text"},
}


# --- Fields -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FieldReference:
    """A field of a kind: what it is, its type in words, its default, its notes, and the kind that it refers to."""

    path: str
    description: str
    type: str = ""
    default: Json | Missing = MISSING
    notes: tuple[str, ...] = ()
    refers_to: str = ""

    def to_data(self) -> dict[str, Json]:
        """The field as JSON; what it does not have is left out."""
        data: dict[str, Json] = {"path": self.path, "description": self.description, "type": self.type}
        if not isinstance(self.default, Missing):
            data["default"] = self.default
        if self.refers_to:
            data["refersTo"] = self.refers_to
        return {**data, "notes": list(self.notes)}

    @property
    def default_text(self) -> str:
        """The default as JSON; empty without one."""
        return "" if isinstance(self.default, Missing) else msgspec.json.encode(self.default).decode()

    @property
    def row(self) -> str:
        """The row of a table in Markdown."""
        default = f"`{self.default_text}`" if self.default_text else ""
        type_ = f"{self.type} to {self.refers_to}" if self.refers_to else self.type
        cells = (f"`{self.path}`", self.description, type_, default, ", ".join(self.notes))
        return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def fields_of(tree_type: type[msgspec.Struct]) -> list[FieldReference]:
    """Each field that an author may write, in the order of the types."""
    parts = [part for part in member_nodes(root_node(tree_type)) if part.path in ("spec", "metadata")]
    return [_field(place) for part in parts for place in _all_below(part)]


def outputs_of(type_: type[msgspec.Struct] | None) -> list[FieldReference]:
    """Each member of the status that the kind adds."""
    if type_ is None:
        return []
    return [FieldReference(f"status.{one.path}", _described(one), _type(one)) for one in member_nodes(root_node(type_))]


def _all_below(holder: SchemaNode) -> Iterator[SchemaNode]:
    for place in _below(holder):
        yield place
        yield from _all_below(place)


def _below(holder: SchemaNode) -> Iterator[SchemaNode]:
    """The fields in an object, or in the elements of a list of objects. A reference is one row."""
    match holder.type:
        case inspect.StructType(cls=cls) if _is_plain_reference(cls):
            return
        case inspect.ListType() if (element := item_node(holder)) is not None:
            yield from _below(element)
        case _:
            yield from member_nodes(holder)


def _is_plain_reference(cls: type) -> bool:
    """Whether it is a reference that says of its members what every reference says."""
    return issubclass(cls, ResourceReference) and field_docs(cls) == field_docs(ResourceReference)


def _field(place: SchemaNode) -> FieldReference:
    notes = ["required"] * place.is_required + [word for mark, word in MARK_WORDS.items() if mark in place.field.marks]
    assert place.struct is not None
    target = reference_target(place.struct, place.attribute)
    to = "" if target is None else f"{target.kind}.{target.group}"
    return FieldReference(place.path, _described(place), _type(place), place.field.default, tuple(notes), to)


def _described(place: SchemaNode) -> str:
    assert place.struct is not None
    return place.description or field_docs(place.struct).get(place.attribute, "")


def _type(place: SchemaNode) -> str:
    match place.field.shape:
        case KeyedList(keys=keys):
            return f"list of objects, told apart by {' and '.join(f'`{key}`' for key in keys)}"
        case _:
            return _type_name(place.type)


def _type_name(type_: inspect.Type) -> str:
    match type_:
        case inspect.StructType(cls=cls):
            return "reference" if _is_plain_reference(cls) else "object"
        case inspect.ListType(item_type=item):
            return f"list of {'objects' if isinstance(item, inspect.StructType) else _type_name(item)}"
        case inspect.DictType(value_type=value):
            return f"{_type_name(value)} by key"
        case inspect.UnionType(types=types):
            return " or ".join(map(_type_name, types))
        case inspect.LiteralType(values=values):
            return " or ".join(f"`{msgspec.json.encode(value).decode()}`" for value in values)
        case inspect.EnumType(cls=cls):
            return " or ".join(f"`{msgspec.json.encode(one.value).decode()}`" for one in cls)
        case inspect.Metadata(type=plain):
            return _type_name(plain)
        case plain:
            return _SCALARS.get(type(plain), type(plain).__name__.removesuffix("Type").lower())


# --- Kinds ------------------------------------------------------------------------------------------------------------


class KnownKind(NamedTuple):
    """A kind that is installed: where it comes from, and its code, or why it cannot be used."""

    name: GroupKind
    version: str
    # None for our own.
    distribution: Distribution | None
    code: ResourceType | None
    error: str = ""

    @property
    def api_version(self) -> str:
        """As a manifest has it."""
        return f"{self.name[0]}/{self.version}"

    @property
    def source(self) -> str:
        """Where it comes from, in words; and whether it is a preview, which no recording shows to be right."""
        found = "built in" if self.distribution is None else str(self.distribution)
        return f"{found}, preview" if self.is_preview else found

    @property
    def is_preview(self) -> bool:
        """Whether no recording of the service shows it to be right yet."""
        return self.code is not None and self.code.definition.is_preview

    @property
    def role(self) -> str:
        """How it is reconciled: stateful or stateless, or as an owner."""
        if self.code is None:
            return "broken"
        return "owner" if isinstance(self.code, Owner) else "stateful" if keeps_cookie(self.code) else "stateless"

    def to_data(self) -> dict[str, Json]:
        """The kind as JSON, without its fields."""
        found = self.distribution
        source: Json = None if found is None else {"distribution": found.name, "version": found.version}
        data: dict[str, Json] = {"kind": self.name[1], "apiVersion": self.api_version, "source": source}
        if self.code is None:
            return {**data, "error": self.error}
        description = self.code.definition.description
        cookie: dict[str, Json] = {"reconciliation": self.role, "keepsCookie": keeps_cookie(self.code)}
        kept: dict[str, Json] = {"revision": self.code.revision, "preview": self.is_preview}
        return {**data, "description": description, **cookie, **kept}


@dataclass(frozen=True, slots=True)
class KnownKinds:
    """Every kind that is installed, and the entry points that no kind can be made of."""

    kinds: Mapping[GroupKind, KnownKind]
    refused: Sequence[tuple[Distribution, str, str]] = field(default_factory=tuple)


def known_kinds(plugins: Plugins, only: Sequence[GroupKind] | None = None) -> KnownKinds:
    """Our kinds and those of plug-ins, in the order of their names; `only` these are loaded, if it names any."""
    ours = {name: KnownKind(name, one.version, None, one) for name, one in described_types().items()}
    catalogued = catalogue_types()
    for name in catalogued:
        if only is None or name in only:
            ours[name] = KnownKind(name, catalogued[name].version, None, catalogued[name])
    types, offered = plugin_types(plugins), {**plugins.offered}
    for name, some in plugins.clashes.items():
        offered[name] = next(one for one in some if one.name == name)
    for name, one in offered.items():
        if only is not None and name not in only:
            continue
        if name in plugins.clashes:
            ours[name] = KnownKind(name, one.version, one.distribution, None, str(clash_error(plugins.clashes[name])))
            continue
        code = types[name]
        is_broken = isinstance(code, BrokenKind | BrokenOwner)
        error = str(code.error) if isinstance(code, BrokenKind | BrokenOwner) else ""
        ours[name] = KnownKind(name, one.version, one.distribution, None if is_broken else code, error)
    refused = [(one.distribution, one.entry, one.why) for one in plugins.refused]
    return KnownKinds(dict(sorted(ours.items(), key=lambda one: (one[0][1], one[0][0]))), refused)


def annotations_of(code: ResourceType) -> list[tuple[str, str]]:
    """The annotations that have an effect on resources of the kind, each with what it does."""
    target = annotation_target(code)
    known = [(one.key, one.meaning) for one in ANNOTATIONS if target.is_affected_by(one)]
    return [*known, *((key, "Read by the kind itself.") for key in code.annotations if key not in dict(known))]


def page_of(known: KnownKind) -> str:
    """The page of a kind in Markdown: what it is, a manifest to begin with, its fields, annotations and outputs."""
    code = known.code
    assert code is not None
    fields, outputs = fields_of(code.tree_type), outputs_of(code.definition.outputs)
    required = [one for one in fields if "required" in one.notes and one.path.count(".") == 1]
    manifest = [f"apiVersion: {known.api_version}", f"kind: {known.name[1]}", "metadata:", "  name: example", "spec:"]
    manifest += [f"  {one.path.partition('.')[2]}: …  # {one.type}" for one in required] or ["  {}"]
    parts = [
        f"# {known.name[1]}\n\n{code.definition.description}\n",
        "```yaml\n" + "\n".join(manifest) + "\n```\n",
        "## Fields\n\n" + FIELDS_HEAD + "".join(f"{one.row}\n" for one in fields),
        "## Annotations\n\n"
        + ANNOTATIONS_HEAD
        + "".join(f"| `{key}` | {one} |\n" for key, one in annotations_of(code)),
    ]
    if outputs:
        rows = "".join(f"| `{one.path}` | {one.description} |\n" for one in outputs)
        parts.append("## Status\n\n" + STATUS_HEAD + rows)
    return "\n".join(parts)

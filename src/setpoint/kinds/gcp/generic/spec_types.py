"""The types of a row: the spec, the compared tree and the status, made when the kind is first used."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from setpoint.catalogue.rows import FieldFacts, KindFacts, ReferenceFacts, kinds_by_group
from setpoint.core.schema.constraints import OneOf
from setpoint.core.schema.shape import Default, Keyed, Mark
from setpoint.core.values.json_types import Int64
from setpoint.kind.spec_references import RefersTo, SecretSource
from setpoint.kind.typed_spec import Maybe, SpecStruct
from setpoint.kinds.gcp.shared.config_connector import (
    ANY_NAME,
    GOOGLE_DURATION,
    RESOURCE_ID_CHECK,
    TIMESTAMP,
    SpecReference,
    name_check,
)

# Parts of the address of the object: not members of it.
ADDRESS: Final = ("url", "id")
# A field that the catalogue knows no member of the API for.
UNKNOWN: Final = "?"
_SCALARS: Final[Mapping[str, object]] = {
    "string": str,
    "integer": Int64,
    "boolean": bool,
    "number": float,
    "any": Any,
    "object": dict[str, Any],
}
_FORMATS: Final = {"google-duration": GOOGLE_DURATION, "google-datetime": TIMESTAMP, "date-time": TIMESTAMP}
# The groups of the kinds that are written by hand.
_HAND_WRITTEN: Final = {
    "StorageBucket": "storage.cnrm.cloud.google.com",
    "SQLInstance": "sql.cnrm.cloud.google.com",
    "SQLDatabase": "sql.cnrm.cloud.google.com",
    "SQLUser": "sql.cnrm.cloud.google.com",
}

# The project of an object may be named elsewhere: by an annotation, by the namespace.
_NEVER_REQUIRED: Final = ("projectRef",)
_OPTIONS: Final[Mapping[str, Any]] = {"module": __name__, "frozen": True, "kw_only": True}


class KindedReference(SpecReference, frozen=True):
    """A reference to a resource of one of several kinds."""

    kind: Maybe[str] = UNSET
    """The kind of the resource."""


class ObjectMetadata(SpecStruct, frozen=True):
    """The metadata that is compared: the labels."""

    labels: Maybe[dict[str, str]] = UNSET
    """The labels of the object."""


class GoogleStatus(Struct, frozen=True):
    """The status: what the service reports beside the spec."""

    externalRef: str | UnsetType = UNSET
    """The name of the object in its service."""
    selfLink: str | UnsetType = UNSET
    """The address of the object in the API."""
    observedState: dict[str, Any] | UnsetType = UNSET
    """What the service set."""


@cache
def group_of(kind: str) -> str:
    """The API group of a kind of Google's; empty for one that is not known here."""
    found = next((group for group, name in kinds_by_group() if name == kind), "")
    return found or _HAND_WRITTEN.get(kind, "")


def tree_type_of(row: KindFacts) -> type[Struct]:
    """The compared tree of a row: the spec, and the labels where the service has some."""
    spec = _struct(f"{row.kind}Spec", row.fields, {"__checks__": (RESOURCE_ID_CHECK,)}, is_fixed=not _can_update(row))
    fields: list[Any] = [("spec", spec)]
    if row.labels:
        fields.append(("metadata", ObjectMetadata | UnsetType, UNSET))
    checks = {} if row.id.where == "service" else {"__checks__": (name_check(ANY_NAME),)}
    return msgspec.defstruct(f"{row.kind}Tree", fields, bases=(SpecStruct,), namespace=checks, **_OPTIONS)


def _can_update(row: KindFacts) -> bool:
    return row.update_style not in ("none", "per-field")


def _struct(
    name: str, fields: Mapping[str, FieldFacts], namespace: dict[str, Any] | None = None, *, is_fixed: bool = False
) -> type[Struct]:
    members = [_member(f"{name}_{field}", field, facts, is_fixed=is_fixed) for field, facts in fields.items()]
    return msgspec.defstruct(name, members, bases=(SpecStruct,), namespace=namespace, **_OPTIONS)


def _member(path: str, name: str, facts: FieldFacts, *, is_fixed: bool) -> Any:  # noqa: ANN401 - as defstruct takes it
    annotations = tuple(_annotations(facts, is_fixed=is_fixed))
    plain = _type(path, facts)
    if facts.required and name not in _NEVER_REQUIRED:
        return (name, Annotated[(plain, *annotations)] if annotations else plain)
    optional = Maybe[plain]  # type: ignore[valid-type]
    return (name, Annotated[(optional, *annotations)] if annotations else optional, UNSET)


def _annotations(facts: FieldFacts, *, is_fixed: bool) -> list[object]:
    found: list[object] = list(_marks(facts, is_fixed=is_fixed))
    if has_default(facts):
        found.append(Default(facts.default))
    if facts.keys and facts.type == "list" and facts.fields:
        found.append(Keyed(*facts.keys))
    if facts.enum and facts.type == "string":
        found.append(OneOf(*facts.enum))
    if facts.type == "string" and facts.format in _FORMATS:
        found.append(_FORMATS[facts.format])
    if facts.ref is not None:
        found.append(_target(facts.ref))
    return found


def _marks(facts: FieldFacts, *, is_fixed: bool) -> list[Mark]:
    if facts.output_only:
        return [Mark.OUTPUT_ONLY]
    if facts.to in ADDRESS or facts.query:
        return [] if facts.query else [Mark.IMMUTABLE]
    if facts.secret:
        return [Mark.WRITE_ONLY]
    if facts.input_only:
        return [Mark.ASKED]
    if facts.immutable or is_fixed:
        return [Mark.IMMUTABLE]
    return [] if facts.required or facts.pruned or has_default(facts) else [Mark.FILLED]


def has_default(facts: FieldFacts) -> bool:
    """Whether a default of the service is known; one that only a CRD of Config Connector has is often none."""
    return facts.default is not UNSET and facts.default_from != "crd" and not facts.ref and facts.type != "object"


def is_choice(facts: FieldFacts) -> bool:
    """Whether the field is an object, or a list of such, of which one member is given, and its text is sent."""
    return bool(facts.one_of_refs) or facts.shape in ("one-of-to-text", "refs-to-texts")


def choices_of(facts: FieldFacts) -> Mapping[str, FieldFacts]:
    """The members of such a field."""
    if facts.one_of_refs:
        return {name: FieldFacts("object", ref=ref) for name, ref in facts.one_of_refs.items()}
    return facts.fields


def _type(path: str, facts: FieldFacts) -> Any:  # noqa: ANN401 - a type
    single = _single_type(path, facts)
    if facts.type == "list":
        return list[single]  # type: ignore[valid-type]
    return dict[str, _SCALARS.get(facts.items or "string", str)] if facts.type == "map" else single  # type: ignore[misc]


def _single_type(path: str, facts: FieldFacts) -> Any:  # noqa: ANN401 - a type
    if facts.secret:
        return SecretSource
    if facts.one_of_refs:
        return _struct(path, choices_of(facts))
    if facts.ref is not None:
        return KindedReference if len(facts.ref.kinds) > 1 else SpecReference
    if facts.fields:
        return _struct(path, facts.fields)
    return _SCALARS.get(facts.items or "string", str) if facts.type == "list" else _SCALARS.get(facts.type, str)


def _target(ref: ReferenceFacts) -> RefersTo:
    kind = ref.kinds[0] if ref.kinds else ""
    return RefersTo(group_of(kind), kind)


class GoogleObject(Struct, frozen=True):
    """A live object, in the terms of the spec: what the catalogue knows of it."""

    spec: dict[str, Any]
    labels: dict[str, str] | None = None

"""The types of a row: the spec, the compared tree and the status, made when the kind is first used."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.parts import ADDRESS, kept_paths, settable_paths
from setpoint.catalogue.parts import LABELS as METADATA_LABELS
from setpoint.catalogue.parts import UNKNOWN as UNKNOWN
from setpoint.catalogue.rows import FieldFacts, KindFacts, ReferenceFacts
from setpoint.core.schema.constraints import Matches, OneOf
from setpoint.core.schema.shape import Default, Keyed, Mark
from setpoint.core.values.json_types import Int64
from setpoint.kind.spec_references import RefersTo, SecretSource
from setpoint.kind.typed_spec import Maybe, SpecStruct
from setpoint.kinds.gcp.shared.config_connector import (
    ANY_NAME,
    GOOGLE_DURATION,
    RESOURCE_ID_CHECK,
    TIMESTAMP,
    GoogleNameRule,
    SpecReference,
    name_check,
)

LABELS: Final = "labels"
_SCALARS: Final[Mapping[str, object]] = {
    "string": str,
    "integer": Int64,
    "boolean": bool,
    "number": float,
    "any": Any,
    "object": dict[str, Any],
}
_FORMATS: Final = {
    "google-duration": GOOGLE_DURATION,
    "google-datetime": TIMESTAMP,
    "date-time": TIMESTAMP,
    "number-text": Matches("-?(?:0|[1-9][0-9]*)(?:[.][0-9]+)?", "a number, as 0.5", 64, or_empty=False),
}
# The groups of the kinds that are written by hand.
_HAND_WRITTEN: Final = {
    "StorageBucket": "storage.cnrm.cloud.google.com",
    "SQLInstance": "sql.cnrm.cloud.google.com",
    "SQLDatabase": "sql.cnrm.cloud.google.com",
    "SQLUser": "sql.cnrm.cloud.google.com",
}

# The project of an object may be named elsewhere: by an annotation, by the namespace.
NEVER_REQUIRED: Final = ("projectRef",)
# Members that others refer to, though a spec may set them as well.
_REFERRED_TO: Final = ("address", "email")
# Members of a status that are not the service's.
ENGINE_NAMES: Final = ("conditions", "observedGeneration", "setpoint", "output", "serverDefaults")
_REPORTED: Final = Annotated[Any, msgspec.Meta(description="Set by the service.")]
_OPTIONS: Final[Mapping[str, Any]] = {"module": __name__, "frozen": True, "kw_only": True}


class KindedReference(SpecReference, frozen=True):
    """A reference to a resource of one of several kinds."""

    kind: Maybe[str] = UNSET
    """The kind of the resource."""


class ObjectMetadata(SpecStruct, frozen=True):
    """The metadata that is compared: the labels."""

    labels: Maybe[dict[str, str]] = UNSET
    """The labels of the object."""


class FixedMetadata(SpecStruct, frozen=True):
    """The same, of an object whose labels no method of the service changes."""

    labels: Annotated[Maybe[dict[str, str]], Mark.IMMUTABLE] = UNSET
    """The labels of the object."""


class GoogleStatus(Struct, frozen=True):
    """The status: what the service reports beside the spec. Each kind adds the members that its service sets."""

    externalRef: str | UnsetType = UNSET
    """The name of the object in its service."""
    selfLink: str | UnsetType = UNSET
    """The address of the object in the API."""


def status_type_of(row: KindFacts) -> type[Struct]:
    """The status of a row, as Config Connector has it: what the service sets, in `observedState` and beside it."""
    reported: list[Any] = [(name, _REPORTED, UNSET) for name in reported_names(row)]
    members = [one for one in reported if one[0] not in (*ENGINE_NAMES, "externalRef", "selfLink", "observedState")]
    if reported:
        observed = msgspec.defstruct(f"{row.kind}ObservedState", reported, **_OPTIONS)
        text = msgspec.Meta(description="What the service set.")
        members.append(("observedState", Annotated[observed | UnsetType, text], UNSET))
    return msgspec.defstruct(f"{row.kind}Status", members, bases=(GoogleStatus,), **_OPTIONS)


def reported_names(row: KindFacts) -> list[str]:
    """The members of the object that the status shows."""
    members = {facts.to or name for name, facts in row.fields.items()}
    names = (*row.output_only, *(name for name in _REFERRED_TO if name in members))
    return [name for name in dict.fromkeys(names) if name != "name" and "." not in name]


@cache
def group_of(kind: str) -> str:
    """The API group of a kind of Google's; empty for one that is not known here."""
    found = next((group for group, name in kinds_by_group() if name == kind), "")
    return found or _HAND_WRITTEN.get(kind, "")


def tree_type_of(row: KindFacts) -> type[Struct]:
    """The compared tree of a row: the spec, and the labels where the service has some."""
    own_checks = {"__checks__": (RESOURCE_ID_CHECK,)} if "resourceID" in row.fields else {}
    settable = settable_paths(row)
    inside = None if settable is None else tuple(path.steps[1:] for path in settable if path.steps[0] == "spec")
    declared = _with_kept(row.fields, [path.steps[1:] for path in kept_paths(row)])
    spec = _struct(f"{row.kind}Spec", declared, own_checks, settable=inside)
    fields: list[Any] = [("spec", spec)]
    if row.labels:
        metadata = ObjectMetadata if can_label(row) else FixedMetadata
        fields.append(("metadata", metadata | UnsetType, UNSET))
    is_named = row.id.where != "service" and "resourceID" in row.fields
    checks = {"__checks__": (name_check(name_rule(row)),)} if is_named else {}
    return msgspec.defstruct(f"{row.kind}Tree", fields, bases=(SpecStruct,), namespace=checks, **_OPTIONS)


def _with_kept(fields: Mapping[str, FieldFacts], kept: Sequence[tuple[object, ...]]) -> Mapping[str, FieldFacts]:
    """Fields of which some, by their steps, are kept when they are taken out."""
    found = dict(fields)
    for name, facts in fields.items():
        below = [steps[1:] for steps in kept if steps and steps[0] == name]
        if below:
            inner = _with_kept(facts.fields, [steps for steps in below if steps])
            found[name] = structs.replace(facts, kept=facts.kept or () in below, fields=inner)
    return found


def can_label(row: KindFacts) -> bool:
    """Whether the labels of an object can change once it is there."""
    settable = settable_paths(row)
    return settable is None or METADATA_LABELS in settable


@cache
def _name_rule(pattern: str) -> GoogleNameRule:
    return GoogleNameRule(Matches(pattern, f"a name that matches {pattern}", or_empty=False))


def name_rule(row: KindFacts) -> GoogleNameRule:
    """What the service allows as the id of an object of the row."""
    return _name_rule(row.id_pattern) if row.id_pattern else ANY_NAME


def has_own_labels(row: KindFacts) -> bool:
    """Whether the spec has a field for the labels of the object; they are compared as those of the metadata are."""
    facts = row.fields.get(LABELS)
    return facts is not None and facts.type == "map" and (facts.to or LABELS) == row.labels


# The fields that can change, each as steps from an object; None when all can.
_Settable: TypeAlias = tuple[tuple[object, ...], ...] | None


def _struct(
    name: str, fields: Mapping[str, FieldFacts], namespace: dict[str, Any] | None = None, *, settable: _Settable = None
) -> type[Struct]:
    members = [_member(f"{name}_{field}", field, facts, settable) for field, facts in fields.items()]
    return msgspec.defstruct(name, members, bases=(SpecStruct,), namespace=namespace, **_OPTIONS)


def _member(path: str, name: str, facts: FieldFacts, settable: _Settable) -> Any:  # noqa: ANN401 - as defstruct takes it
    below = None if settable is None else tuple(steps[1:] for steps in settable if steps[0] == name)
    annotations = tuple(_annotations(facts, is_fixed=below == ()))
    # A field that can change as a whole can change inside; so can one that cannot: its own mark says so.
    plain = _type(path, facts, below if below and () not in below else None)
    if facts.required and name not in NEVER_REQUIRED:
        return (name, Annotated[(plain, *annotations)] if annotations else plain)
    optional = Maybe[plain]  # type: ignore[valid-type]
    return (name, Annotated[(optional, *annotations)] if annotations else optional, UNSET)


def _annotations(facts: FieldFacts, *, is_fixed: bool) -> list[object]:
    found: list[object] = list(_marks(facts, is_fixed=is_fixed))
    if facts.format == "json-text" and facts.type == "string":
        found.append(Mark.JSON_TEXT)
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
        return [Mark.WRITE_ONLY, Mark.IMMUTABLE] if facts.immutable or is_fixed else [Mark.WRITE_ONLY]
    if facts.input_only or facts.grows:
        return [Mark.ASKED, Mark.IMMUTABLE] if facts.immutable or is_fixed else [Mark.ASKED]
    if facts.immutable or (is_fixed and not facts.toggle):
        return [Mark.IMMUTABLE]
    if facts.protected:
        return [Mark.PROTECTED]
    if facts.kept or (facts.toggle and "false" not in facts.toggle):
        return [Mark.CHOSEN]
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


def _type(path: str, facts: FieldFacts, settable: _Settable = None) -> Any:  # noqa: ANN401 - a type
    single = _single_type(path, facts, settable)
    if facts.type == "list":
        return list[single]  # type: ignore[valid-type]
    return dict[str, _SCALARS.get(facts.items or "string", str)] if facts.type == "map" else single  # type: ignore[misc]


def _single_type(path: str, facts: FieldFacts, settable: _Settable) -> Any:  # noqa: ANN401 - a type
    if facts.secret:
        return SecretSource
    if facts.one_of_refs:
        return _struct(path, choices_of(facts))
    if facts.ref is not None:
        return KindedReference if len(facts.ref.kinds) > 1 or facts.ref.kinded else SpecReference
    if facts.fields:
        return _struct(path, facts.fields, settable=settable)
    return _SCALARS.get(facts.items or "string", str) if facts.type == "list" else _SCALARS.get(facts.type, str)


def _target(ref: ReferenceFacts) -> RefersTo:
    kind = ref.kinds[0] if ref.kinds else ""
    return RefersTo(group_of(kind), kind)


class GoogleObject(Struct, frozen=True):
    """A live object, in the terms of the spec: what the catalogue knows of it."""

    spec: dict[str, Any]
    labels: dict[str, str] | None = None

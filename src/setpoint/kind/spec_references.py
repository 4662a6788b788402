"""References in a spec to other resources and to Secrets: declared by the types of its fields, and found by them."""

from collections.abc import Iterator
from functools import cache
from typing import Annotated, ClassVar, Final, TypeAlias, get_args, get_origin, get_type_hints

from msgspec import UNSET, Struct, UnsetType, to_builtins
from msgspec.structs import fields as struct_fields

from setpoint.core.schema.checks import Check, ExactlyOne, Given, NotEmpty
from setpoint.core.schema.shape import Mark
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Dependency, Reference, ResolvedReferences, SecretKeyReference
from setpoint.engine.resource import SECRET, Resource, ResourceRef
from setpoint.errors import DependencyNotReady
from setpoint.kind.typed_spec import (
    NAMESPACE_NAME,
    OBJECT_NAME,
    Maybe,
    SecretKeyRef,
    SpecStruct,
    ValueFrom,
    field_invalid,
)

# For the `__checks__` of a secret value: in the manifest, or from a Secret.
SECRET_CHECK: Final = Check(ExactlyOne(Given("value"), Given("valueFrom")), "write value or valueFrom, and not both")
NAME_OR_EXTERNAL: Final = Check(
    ExactlyOne(NotEmpty("name"), NotEmpty("external")), "write name or external, and not both"
)
# The engine looks for references only in a spec with this word in it.
_REFERENCE_SUFFIXES: Final = ("Ref", "Refs")


class ResourceReference(Struct, forbid_unknown_fields=True, frozen=True):
    """A reference in a spec: to another resource by name, or to an external object by its name in the service."""

    external: str | None | UnsetType = UNSET
    """The name in the service, of an object that is not a resource here."""
    name: Annotated[str | None | UnsetType, OBJECT_NAME] = UNSET
    """The name of the resource."""
    namespace: Annotated[str | None | UnsetType, NAMESPACE_NAME] = UNSET
    """The namespace of the resource; the same as here when left out."""

    __unit__: ClassVar = True
    __checks__: ClassVar = (NAME_OR_EXTERNAL,)


@dataclass(frozen=True, slots=True)
class RefersTo:
    """The kind that a reference refers to: `shopRef: Annotated[ResourceReference, RefersTo(GROUP, "Shop")]`.

    `must_be_ready`: the referring resource waits until the other is ready; otherwise until it exists.
    """

    group: str
    kind: str
    must_be_ready: bool = True


class SecretSource(SpecStruct, frozen=True):
    """A secret value in the manifest, or in a Secret. Fields have the type `SecretValue`, which has its mark."""

    value: Maybe[str] = UNSET
    """The value in plain text, readable by every user who may read the resource."""
    valueFrom: Maybe[ValueFrom] = UNSET
    """Where the value is kept."""

    __checks__: ClassVar = (SECRET_CHECK,)

    def __repr__(self) -> str:
        return "SecretSource(…)"


# A secret value in a spec. It is sent, never read back, and redacted wherever it would be shown.
SecretValue: TypeAlias = Annotated[SecretSource, Mark.WRITE_ONLY]


# --- What a spec refers to --------------------------------------------------------------------------------------------


def dependencies_in(spec: Struct, resource: Resource) -> tuple[Dependency, ...]:
    """Every reference and Secret that the decoded spec names, at any depth; ManifestInvalid for an incomplete one."""
    return tuple(_found(spec, Path(("spec",)), resource, None))


def _found(value: object, at: Path, resource: Resource, target: RefersTo | None) -> Iterator[Dependency]:
    match value:
        case ResourceReference():
            assert target is not None
            yield from _resource(value, at, resource, target)
        case SecretSource():
            where = value.valueFrom.secretKeyRef if value.valueFrom else None
            found = secret_dependency(str(at), value.value, where, resource)
            yield from () if found is None else (found,)
        case SecretKeyRef():
            yield SecretKeyReference(str(at), ResourceRef(*SECRET, resource.ref.namespace, value.name), value.key)
        case _:
            for below, step, inside in _members(value, target):
                yield from _found(below, at / step, resource, inside)


def _members(value: object, target: RefersTo | None) -> Iterator[tuple[object, str | int, RefersTo | None]]:
    """The values inside of a value, each with the step to it and the kind that a reference there refers to."""
    match value:
        case Struct():
            for name, encoded, own in _fields(type(value)):
                yield getattr(value, name), encoded, own
        case list():
            yield from ((item, position, target) for position, item in enumerate(value))
        case dict():
            yield from ((item, str(key), target) for key, item in value.items())
        case _:
            return


def _resource(value: ResourceReference, at: Path, resource: Resource, target: RefersTo) -> Iterator[Reference]:
    if not NAME_OR_EXTERNAL.rule.holds(to_builtins(value)):
        raise field_invalid(resource, str(at), " needs name or external, and not both: write one of them")
    if value.name:
        ref = ResourceRef(target.group, target.kind, value.namespace or resource.ref.namespace, value.name)
        yield Reference(str(at), ref, must_be_ready=target.must_be_ready)


def secret_dependency(
    at: str, value: object, where: SecretKeyRef | None, resource: Resource
) -> SecretKeyReference | None:
    """The Secret key that the field `at` refers to; None for a value in the manifest itself."""
    if isinstance(value, str) == (where is not None):
        raise field_invalid(resource, at, " needs value or valueFrom, and not both: write one of them")
    if where is None:
        return None
    return SecretKeyReference(at, ResourceRef(*SECRET, resource.ref.namespace, where.name), where.key)


def referenced_name(field: str, reference: ResourceReference, resolved: ResolvedReferences) -> str:
    """The name, in its service, of the object that the reference in `field` means: `spec.resourceID`, or its own.

    For a reference such as that in the field `spec.shopRef`. DependencyNotReady when it is not resolved.
    """
    if reference.external:
        return reference.external
    found = resolved.resources.get(field)
    if found is None:
        raise DependencyNotReady(f"{field} is not resolved: the resource that it names is not there yet")
    return object_name(found)


def object_name(resource: Resource) -> str:
    """The name of the resource's object in its service: `spec.resourceID`, or else `metadata.name`."""
    found = resource.spec.get("resourceID")
    return found if isinstance(found, str) and found else resource.ref.name


# --- What the type of a spec says -------------------------------------------------------------------------------------


@cache
def _fields(type_: type[Struct]) -> tuple[tuple[str, str, RefersTo | None], ...]:
    """Each field: its name, its name in a manifest, and the kind that it refers to at any depth of its annotations."""
    hints = get_type_hints(type_, include_extras=True)
    return tuple((one.name, one.encode_name, _target_in(hints[one.name])) for one in struct_fields(type_))


def _target_in(hint: object) -> RefersTo | None:
    if get_origin(hint) is Annotated:
        own = next((one for one in get_args(hint)[1:] if isinstance(one, RefersTo)), None)
        if own is not None:
            return own
    return next((found for one in get_args(hint) if (found := _target_in(one)) is not None), None)


def reference_target(type_: type[Struct], attribute: str) -> RefersTo | None:
    """The kind that a field of the type refers to; None for one that is no reference, or does not say."""
    return next((target for name, _, target in _fields(type_) if name == attribute), None)


def is_reference(hint: object) -> bool:
    """Whether a field of this type is a reference to another resource, or several."""
    return any(isinstance(one, type) and issubclass(one, ResourceReference) for one in types_in(hint))


def types_in(hint: object) -> Iterator[object]:
    """The types that an annotation is made of: of a union, of a list, of a map, inside Annotated."""
    yield hint
    for one in get_args(hint):
        if not isinstance(one, Mark):
            yield from types_in(one)


def check_references(type_: type[Struct], seen: tuple[type, ...] = ()) -> None:
    """TypeError for a reference, at any depth of the type, without a target, or in a field that is not named so."""
    for name, hint in get_type_hints(type_, include_extras=True).items():
        if is_reference(hint):
            if not name.endswith(_REFERENCE_SUFFIXES):
                raise TypeError(
                    f"{type_.__name__}.{name} is a reference: its name has to end with Ref, or Refs of a list"
                )
            if _target_in(hint) is None:
                raise TypeError(
                    f"{type_.__name__}.{name} is a reference: say which kind it refers to, as "
                    'Annotated[ResourceReference, RefersTo("shop.example.com", "Shop")]'
                )
            continue
        for one in types_in(hint):
            if isinstance(one, type) and issubclass(one, Struct) and one not in (*seen, type_):
                check_references(one, (*seen, type_))


def without_nulls(value: Json) -> Json:
    """A JSON value without members that are null, at any depth of its objects."""
    if not isinstance(value, dict):
        return [without_nulls(one) for one in value] if isinstance(value, list) else value
    return {name: without_nulls(one) for name, one in value.items() if one is not None}


def plain_secrets(value: Json, hint: object) -> Json:
    """A value of that type with each secret value in it as its text; a reference to a Secret is left out."""
    structs = [one for one in types_in(hint) if isinstance(one, type) and issubclass(one, Struct)]
    if not structs or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return [plain_secrets(one, hint) for one in value]
    if structs[0] is SecretSource:
        return value.get("value")
    hints = get_type_hints(structs[0], include_extras=True)
    known = {one.encode_name: hints[one.name] for one in struct_fields(structs[0])}
    return {name: plain_secrets(one, known.get(name)) for name, one in value.items()}

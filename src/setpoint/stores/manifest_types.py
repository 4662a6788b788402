"""The types of manifests that a store knows: the version of each, and its members. Any others are refused."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from setpoint.core.schema.shape import ObjectShape, shape_of
from setpoint.core.unstructured import GroupKind, group_kind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.messages import FieldTerm, Message, field_message
from setpoint.core.values.paths import Path, nearest
from setpoint.engine.kind import DescribedType
from setpoint.engine.owner import ObjectKind
from setpoint.errors import ManifestInvalid

# Metadata that an author may write.
AUTHORED_METADATA: Final = ("name", "namespace", "labels", "annotations", "ownerReferences")
# Members of every manifest. The status is ignored, so that the output of `get` can be applied.
_MEMBERS: Final = ("apiVersion", "kind", "metadata")
_IGNORED: Final = "status"
_SPEC: Final = "spec"
# Objects without a spec.
_OBJECT_MEMBERS: Final[Mapping[GroupKind, tuple[str, ...]]] = {
    ("", "Secret"): ("data", "stringData", "type", "immutable"),
    ("", "ConfigMap"): ("data", "binaryData", "immutable"),
}


@dataclass(frozen=True, slots=True)
class ManifestType:
    """What a manifest of a known kind may be: the version of its group, its own members, and the fields of its spec."""

    version: str
    members: tuple[str, ...] = (_SPEC,)
    spec_fields: tuple[str, ...] = ()


ManifestTypes: TypeAlias = Mapping[GroupKind, ManifestType]
# For a store that takes manifests of any kind.
ANY_TYPE: Final[ManifestTypes] = MappingProxyType({})


def manifest_types(kinds: Iterable[DescribedType | ObjectKind]) -> ManifestTypes:
    """The types of these kinds; for one that is named twice, its own definition counts."""
    types: dict[GroupKind, ManifestType] = {}
    for kind in kinds:
        if isinstance(kind, ObjectKind):
            name = (kind.group, kind.kind)
            types.setdefault(name, ManifestType(kind.version, _OBJECT_MEMBERS.get(name, (_SPEC,))))
        else:
            types[(kind.group, kind.name)] = ManifestType(kind.version, spec_fields=_spec_fields(kind))
    return types


class KnownManifestTypes(Mapping[GroupKind, ManifestType]):
    """The types of kinds and owners, and of the objects beside them. Each kind is asked for when its type is."""

    def __init__(
        self, kinds: Mapping[GroupKind, DescribedType], objects: Callable[[], Iterable[ObjectKind]] = tuple
    ) -> None:
        self._kinds = kinds
        self._list_objects = objects
        self._made: dict[GroupKind, ManifestType] = {}

    @cached_property
    def _objects(self) -> ManifestTypes:
        return manifest_types(self._list_objects())

    def __getitem__(self, name: GroupKind) -> ManifestType:
        if name not in self._kinds:
            return self._objects[name]
        if name not in self._made:
            self._made |= manifest_types([self._kinds[name]])
        return self._made[name]

    def __iter__(self) -> Iterator[GroupKind]:
        return iter({**dict.fromkeys(self._kinds), **self._objects})

    def __len__(self) -> int:
        return len({*self._kinds, *self._objects})


def _spec_fields(kind: DescribedType) -> tuple[str, ...]:
    spec = shape_of(kind.tree_type).fields.get(_SPEC)
    return tuple(spec.shape.fields) if spec is not None and isinstance(spec.shape, ObjectShape) else ()


def type_problems(tree: Mapping[str, Any], types: ManifestTypes) -> Iterator[ManifestInvalid]:
    """What a manifest of a known type has and its type has not: another version of the group, unknown members."""
    group, kind = group_kind(tree)
    type_ = types.get((group, kind))
    if type_ is None:
        return
    written, known = tree["apiVersion"], "/".join(filter(None, (group, type_.version)))
    if written != known:
        problem = f": there is no {kind} of {written}; did you mean {known}?"
        yield ManifestInvalid(field_message("apiVersion", problem))
    if tree.get(_SPEC) is not None and not isinstance(tree[_SPEC], Mapping):
        yield ManifestInvalid(field_message(_SPEC, " is no map: write its fields below it, each with its name"))
    for name in tree:
        if name not in (*_MEMBERS, *type_.members, _IGNORED):
            field = FieldTerm(str(Path((name,))))
            yield ManifestInvalid(Message("there is no field ", field, _hint(name, kind, type_)))


def _hint(name: str, kind: str, type_: ManifestType) -> str:
    """The members that may be meant: of that name one level deeper, or of a similar name; or else all of them."""
    members = (*_MEMBERS, *type_.members)
    deeper = [f"metadata.{name}"] * (name in AUTHORED_METADATA) + [f"{_SPEC}.{name}"] * (name in type_.spec_fields)
    found = deeper or nearest(name, members)
    if found:
        return f"; did you mean {' or '.join(found)}?"
    return f": a {kind} has {', '.join(members[:-1])} and {members[-1]}"

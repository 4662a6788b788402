"""What a command is about: manifests, and resources by KIND/NAME."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from setpoint.app.kinds import find_kind, named_kind
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.context import EngineContext
from setpoint.engine.owners.children import unreconciled_kinds
from setpoint.engine.ports import ResourceQuery, not_served, unserved_kinds
from setpoint.engine.resource import DEFAULT_NAMESPACE, Resource, ResourceRef
from setpoint.errors import ManifestInvalid

# Imported where manifests are read: a command that names resources alone does without.
if TYPE_CHECKING:
    from setpoint.library.declared import ResourceListing
    from setpoint.library.manifests.reading import ReadManifests
    from setpoint.library.manifests.sources import ManifestLike, ManifestSource

# KIND/NAME: a text of this form is never a manifest.
_TARGET: Final = re.compile(r"[A-Za-z][A-Za-z0-9.]*/[^/\s]+")

_KIND_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9.]*")

# A resource by name: KIND/NAME, in any case, singular or plural; or its ref, of any namespace.
Target: TypeAlias = str | ResourceRef


def is_target(word: str) -> bool:
    """Whether a text is KIND/NAME."""
    return _TARGET.fullmatch(word) is not None


def is_kind_word(text: str) -> bool:
    """Whether a text may be the name of a kind: it is no manifest, and no KIND/NAME."""
    return _KIND_WORD.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Selection:
    """The manifests that a command was given, once they are read, and the resources that it names."""

    read: "ReadManifests | None" = None
    targets: tuple[Target, ...] = ()
    # That of KIND/NAME, and of a command that names no resource; None for all of them.
    namespace: str | None = DEFAULT_NAMESPACE

    @property
    def is_empty(self) -> bool:
        """Whether it names nothing: what that means depends on the command."""
        return self.read is None and not self.targets


# What a call is about: manifests, KIND/NAME or refs, and lists of them.
Named: TypeAlias = "ManifestLike | Target | Selection | Sequence[ManifestLike | Target] | ResourceListing"


def select(arguments: Sequence[Named], namespace: str) -> Selection:
    """What arguments name. ManifestInvalid when they name manifests, and there is none."""
    from setpoint.library.manifests.reading import read_manifests
    from setpoint.library.manifests.sources import manifest_source

    targets: list[Target] = []
    sources: list[ManifestSource] = []
    for name, value in _flat(arguments):
        if isinstance(value, Selection):
            return value
        if isinstance(value, ResourceRef) or (isinstance(value, str) and is_target(value)):
            targets.append(value)
        else:
            sources.append(manifest_source(value, name))
    read = read_manifests(sources, namespace) if sources else None
    return Selection(read, tuple(targets), namespace)


def _flat(arguments: Iterable[object]) -> Iterator[tuple[str, object]]:
    """Each argument with its name in messages; the members of lists one by one."""
    for number, value in enumerate(arguments, 1):
        is_single = isinstance(value, str | bytes | Mapping | ResourceRef | msgspec.Struct)
        if isinstance(value, Iterable) and not is_single:
            yield from ((f"argument {number}[{index}]", one) for index, one in enumerate(value))
        else:
            yield f"argument {number}", value


# --- Resources that are named -----------------------------------------------------------------------------------------


async def declared_refs(selection: Selection, engine: EngineContext) -> list[ResourceRef]:
    """The resources that are named, or all of the namespace; ManifestInvalid for one not declared.

    An object beside them in a file, such as a Secret, is read by steps of others, and has none of its own.
    """
    refs = named_refs(selection, engine)
    if not refs:
        listing = await engine.store.list(ResourceQuery(namespace=selection.namespace))
        refs = [one.ref for one in listing.resources if (one.ref.group, one.ref.kind) in engine.resource_types]
    for ref in refs:
        await get_declared(ref, engine)
    files = selection.read.manifests if selection.read is not None else ()
    beside = {one.ref for one in files if one.ref.group_kind not in engine.resource_types}
    return [ref for ref in refs if ref not in beside]


def named_refs(selection: Selection, engine: EngineContext) -> list[ResourceRef]:
    """The resources that manifests and KIND/NAME name, declared or not."""
    named: list[ResourceRef] = []
    if selection.read is not None:
        from setpoint.library.manifests.checks import named_by

        named = named_by(selection.read, engine)
    return [*named, *(ref_of_target(target, selection.namespace, engine) for target in selection.targets)]


async def get_declared(ref: ResourceRef, engine: EngineContext) -> Resource:
    """The resource on record; ManifestInvalid when it is not declared, StoreError without the CRD of its kind."""
    found = await engine.store.get(ref)
    if found is None:
        require_served([ref.group_kind], engine)
        raise ManifestInvalid(f"{ref} is not declared here: `setpoint get -A` lists what is")
    return found


def require_served(kinds: Iterable[GroupKind], engine: EngineContext) -> None:
    """StoreError for kinds that the cluster of the store was found not to serve."""
    missing = unserved_kinds(engine.store).intersection(kinds)
    if missing:
        raise not_served(missing)


def ref_of_target(target: Target, namespace: str | None, engine: EngineContext) -> ResourceRef:
    """The resource that KIND/NAME names; the kind in upper or lower case, singular or plural."""
    if isinstance(target, ResourceRef):
        return target
    kind, slash, name = target.partition("/")
    if not slash and is_kind_word(kind):
        kind_of_lone_word(kind, engine)
    if not slash or not name:
        raise ManifestInvalid(f"{target!r} names no resource: write KIND/NAME, such as StorageBucket/logs")
    group, exact = kind_of_word(kind, engine)
    return ResourceRef(group, exact, namespace or DEFAULT_NAMESPACE, name)


def kind_of_word(word: str, engine: EngineContext) -> GroupKind:
    """The group and name of the kind that `word` names."""
    types = engine.resource_types
    found = named_kind(word, types)
    if found is not None and found[1] == "Service" and "." not in word:
        # That of Kubernetes is meant, where there is one: Google's is named with its group.
        found = named_kind(word, [one for one in unreconciled_kinds(engine) if not one[0]]) or found
    return found or find_kind(word, [*types, *unreconciled_kinds(engine)])


def kind_of_lone_word(word: str, engine: EngineContext) -> GroupKind:
    """The same for a word without a name behind it: it may be meant as one."""
    try:
        return kind_of_word(word, engine)
    except ManifestInvalid as error:
        raise ManifestInvalid(f"{error} (a resource is named KIND/NAME, such as StorageBucket/logs)") from None


def parse_target(target: str, engine: EngineContext) -> tuple[GroupKind, str]:
    """The kind and the name of a target, KIND or KIND/NAME; an empty name means all resources of the kind."""
    kind, slash, name = target.partition("/")
    return kind_of_word(kind, engine) if slash else kind_of_lone_word(kind, engine), name


def matches_targets(resource: Resource, wanted: Sequence[tuple[GroupKind, str]]) -> bool:
    """Whether the resource is one of the wanted targets; without any target, every resource is."""
    kind = (resource.ref.group, resource.ref.kind)
    return not wanted or any(kind == one and name in ("", resource.ref.name) for one, name in wanted)


def require_targets_found(wanted: Sequence[tuple[GroupKind, str]], found: Sequence[Resource]) -> None:
    """ManifestInvalid for the first target with a name that was not found."""
    there = {((one.ref.group, one.ref.kind), one.ref.name) for one in found}
    for kind, name in wanted:
        if name and (kind, name) not in there:
            raise ManifestInvalid(f"{kind[1]} {name} is not declared here: `setpoint get -A` lists what is")

"""Dependencies of a resource: the references in its spec and its depends-on annotation, and what they resolve to."""

import base64
import binascii
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import get_at
from setpoint.core.wait import outputs
from setpoint.engine.capabilities import SupportsWait
from setpoint.engine.conditions import condition_of
from setpoint.engine.kind import (
    ANY_GROUP,
    Dependency,
    Reference,
    ResolvedReferences,
    ResourceType,
    SecretKeyReference,
    ValueReference,
)
from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import Blocked, DependencyInvalid, DependencyNotFound, DependencyNotReady, ManifestInvalid

ResourceTypes: TypeAlias = Mapping[tuple[str, str], ResourceType]

# Resources that have to be ready first, though nothing of them is used: `KIND/NAME` or `KIND/NAMESPACE/NAME` each.
DEPENDS_ON: Final = "setpoint.dev/depends-on"
# Stands for a field that names the owner: none does.
OWNER_REFERENCES: Final = "metadata.ownerReferences"
# Words without one of which in its spec a resource needs nothing.
REFERENCE_MARKERS: Final = ("Ref", "$ref", "${ref:")


def dependencies_of(resource: Resource, kinds: ResourceTypes) -> tuple[Dependency, ...]:
    """All of it, for a resource that one of `kinds` handles; ManifestInvalid for what names nothing."""
    kind = kinds[resource.ref.group, resource.ref.kind]
    own = (
        _completed(dependency, kinds) if isinstance(dependency, ValueReference) else dependency
        for dependency in kind.dependencies(resource)
    )
    return (*own, *_depends_on(resource, kinds))


def owner_dependency(resource: Resource, known: Collection[ResourceRef]) -> tuple[Reference, ...]:
    """A child comes after its owner, when that is known: what it should be is for the owner to say first."""
    owner = resource.controller
    return () if owner is None or owner not in known else (Reference(OWNER_REFERENCES, owner, is_value_used=False),)


def may_have_dependencies(resource: Resource) -> bool:
    """Whether it may need anything: sure only when it does not."""
    return DEPENDS_ON in resource.annotations or resource.mentions(*REFERENCE_MARKERS)


def _completed(dependency: ValueReference, kinds: ResourceTypes) -> ValueReference:
    target = dependency.target
    if target.group == ANY_GROUP:
        target = target._replace(group=_group(target.kind, kinds, dependency.field))
    return replace(
        dependency, target=target, is_awaited=isinstance(kinds.get((target.group, target.kind)), SupportsWait)
    )


def _depends_on(resource: Resource, kinds: ResourceTypes) -> tuple[Reference, ...]:
    text = resource.annotations.get(DEPENDS_ON, "")
    targets = dict.fromkeys(_parse_target(word, resource, kinds) for word in re.split(r"[,\s]+", text) if word)
    return tuple(Reference(DEPENDS_ON, target, is_value_used=False) for target in targets)


def _parse_target(word: str, resource: Resource, kinds: ResourceTypes) -> ResourceRef:
    kind, *place = word.split("/")
    if not kind or len(place) not in (1, 2) or not all(place):
        raise ManifestInvalid(
            f"{DEPENDS_ON}: {word!r} names no resource: write KIND/NAME or KIND/NAMESPACE/NAME, such as SQLInstance/db"
        )
    namespace = place[0] if len(place) == 2 else resource.ref.namespace
    name, _, group = kind.partition(".")
    group = group or _group(name, kinds, DEPENDS_ON)
    return ResourceRef(group, name, namespace, place[-1])


def _group(kind: str, kinds: ResourceTypes, where: str) -> str:
    groups = [group for group, name in kinds if name == kind]
    if len(groups) == 1:
        return groups[0]
    if groups:
        raise ManifestInvalid(f"{where}: there is more than one {kind}: say which, as {kind}.{groups[0]}")
    known = ", ".join(sorted(name for _, name in kinds))
    raise ManifestInvalid(f"{where}: no kind {kind!r} is known here; there is {known}")


# Where a status says what the resource offers to others, if its kind waits for anything.
OUTPUT: Final = "output"
# Between what a resource waits for and what that waits for itself.
_LINK: Final = "; it is blocked itself: "
_MOST_LINKS: Final = 7


async def resolve_dependencies(
    dependencies: Sequence[Dependency], store: Store, needing: ResourceRef | None = None
) -> ResolvedReferences:
    """What the needs of `needing` come to; a NotReady names the first that is missing, unready or unfit, and why."""
    resources: dict[str, Resource] = {}
    secrets: dict[str, str] = {}
    versions: dict[str, str] = {}
    values: dict[str, Json] = {}
    seen: dict[ResourceRef, Revision] = {}
    for dependency in dependencies:
        match dependency:
            case Reference():
                found = await _referenced(dependency, store, needing)
                seen[found.ref] = found.revision
                if dependency.is_value_used:
                    resources[dependency.field] = found
            case SecretKeyReference():
                secret = await _secret(dependency.secret, store)
                secrets[dependency.field] = secret_value(dependency, secret)
                versions[dependency.field] = f"{secret.uid}/{secret.revision}/{dependency.key}"
                seen[secret.ref] = secret.revision
            case ValueReference():
                source = await _require_found(dependency.target, store)
                values[dependency.field] = output_value(dependency, source, needing)
                seen[source.ref] = source.revision
    return ResolvedReferences(resources, secrets, versions, values, seen)


async def resolve_available(dependencies: Sequence[Dependency], store: Store) -> ResolvedReferences:
    """What those of the needs come to that are there, ready and fit; the others are left out."""
    found = ResolvedReferences()
    for dependency in dependencies:
        try:
            one = await resolve_dependencies([dependency], store)
        except (DependencyNotReady, Blocked):
            continue
        found = ResolvedReferences(
            {**found.resources, **one.resources},
            {**found.secrets, **one.secrets},
            {**found.versions, **one.versions},
            {**found.values, **one.values},
            {**found.seen, **one.seen},
        )
    return found


def is_ready(resource: Resource) -> bool:
    """Whether the resource says that it is as declared, for the spec that it has now."""
    ready = condition_of(resource, "Ready")
    current = resource.status.get("observedGeneration") == resource.generation
    return ready is not None and ready.status == "True" and current and not resource.is_deleting


async def _referenced(reference: Reference, store: Store, needing: ResourceRef | None) -> Resource:
    found = await _require_found(reference.target, store)
    if reference.must_be_ready and not is_ready(found):
        raise DependencyNotReady(f"reference {reference.target} is not ready{_chain(found, needing)}")
    return found


async def _require_found(target: ResourceRef, store: Store) -> Resource:
    found = await store.get(target)
    if found is None:
        raise DependencyNotFound(f"reference {target} is not found")
    return found


def output_value(dependency: ValueReference, source: Resource, needing: ResourceRef | None = None) -> Json:
    """The value that `need` names in `source`.

    Blocked while there is none, with the reason and what that waits for in turn; ManifestInvalid when there never will
    be. Whatever is not ready is about to change, or may be: nothing is taken from it.
    """
    told = f"waiting for {dependency.path} of {source.ref}"
    if source.is_deleting:
        raise Blocked(f"{told}: it is being deleted")
    if source.status.get("observedGeneration") != source.generation:
        raise Blocked(f"{told}: it has not been looked at since its spec changed")
    output = outputs.from_data(source.status.get(OUTPUT)) if dependency.is_awaited else None
    # What a resource said of its value before it was blocked is not why it has none now.
    says_why = isinstance(output, outputs.Unknown) and not _is_blocked(source)
    if dependency.must_be_ready and not is_ready(source) and not says_why:
        raise Blocked(f"{told}: it is not ready{_chain(source, needing) or _reason(source)}")
    if output is not None:
        return outputs.value_at(output, dependency.path, str(source.ref))
    found = get_at(source.document, dependency.path)
    if found is None or isinstance(found, Missing):
        raise Blocked(f"{told}: it is ready, and there is no such value; check the path")
    return found


def _reason(source: Resource) -> str:
    ready = condition_of(source, "Ready")
    return f" ({ready.reason})" if ready is not None and ready.reason else ""


def _is_blocked(source: Resource) -> bool:
    ready = condition_of(source, "Ready")
    is_current = source.status.get("observedGeneration") == source.generation
    return is_current and ready is not None and ready.reason in ("Blocked", "DependencyNotReady", "DependencyNotFound")


def _chain(source: Resource, needing: ResourceRef | None) -> str:
    """What a resource that is blocked waits for itself, and so on: as far as `needing`, where it leads back there."""
    ready = condition_of(source, "Ready")
    if ready is None or not _is_blocked(source):
        return ""
    links = ready.message.split(_LINK)
    back = next((at for at, link in enumerate(links) if needing is not None and _names(link, needing)), len(links))
    links = links[: back + 1]
    if len(links) > _MOST_LINKS:
        # Only the first: what stands at the end of a ring is something else each time that it is asked for.
        links = [*links[:_MOST_LINKS], "…"]
    return "".join(f"{_LINK}{link}" for link in links)


def _names(link: str, ref: ResourceRef) -> bool:
    return any(f" {ref}{end}" in link for end in (" ", ":", ","))


async def _secret(ref: ResourceRef, store: Store) -> Resource:
    found = await store.get(ref)
    if found is None:
        raise DependencyNotFound(f"Secret {ref.namespace}/{ref.name} was not found")
    return found


def secret_value(dependency: SecretKeyReference, secret: Resource) -> str:
    """The value that `need` names in `secret`; DependencyInvalid when there is none, or none that is text."""
    data = secret.document.get("data")
    encoded = data.get(dependency.key) if isinstance(data, dict) else None
    where = f"Secret {dependency.secret.namespace}/{dependency.secret.name}"
    if not isinstance(encoded, str):
        raise DependencyInvalid(f"key '{dependency.key}' was not found in {where}")
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        # Without its cause: that would show the value.
        raise DependencyInvalid(f"key '{dependency.key}' in {where} is not text in base64") from None

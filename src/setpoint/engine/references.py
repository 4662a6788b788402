"""Dependencies of a resource: the references in its spec and its depends-on annotation, and what they resolve to."""

import base64
import binascii
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from setpoint.core.conditions import ConditionType
from setpoint.core.schema import annotations as known_annotations
from setpoint.core.schema.shape import shape_of
from setpoint.core.secret_paths import secret_within
from setpoint.core.unstructured import GroupKind, text_at
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.messages import AnnotationTerm, Message
from setpoint.core.values.paths import get_at
from setpoint.core.wait import outputs
from setpoint.engine.capabilities import SupportsWait
from setpoint.engine.conditions import BLOCKED_REASONS, ReadyDetails, condition_of
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import (
    ANY_GROUP,
    Dependency,
    Reference,
    ResolvedReferences,
    ResourceType,
    SecretKeyReference,
    ValueReference,
    dependency_target,
    unknown_kind,
)
from setpoint.engine.ports import Store
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import (
    Blocked,
    BlockingLink,
    DependencyInvalid,
    DependencyNotFound,
    DependencyNotReady,
    ManifestInvalid,
)

ResourceTypes: TypeAlias = Mapping[GroupKind, ResourceType]

# Resources that have to be ready first, though no value of them is used: `KIND/NAME` or `KIND/NAMESPACE/NAME` each.
DEPENDS_ON: Final = known_annotations.DEPENDS_ON
# Stands for the field that names the owner of a child: no field of a spec does.
OWNER_REFERENCES: Final = "metadata.ownerReferences"
# A spec without any of these words has no references.
REFERENCE_MARKERS: Final = ("Ref", "$ref", "${ref:")
# The member of a status with the output that dependants get, if the kind has waits.
OUTPUT: Final = "output"
# How many links of a chain of blocked resources a message names after its own.
_MAX_LINKS: Final = 7
_ELLIPSIS: Final = BlockingLink(None, "…")


# --- What a resource depends on ---------------------------------------------------------------------------------------


def dependencies_of(resource: Resource, kinds: ResourceTypes) -> tuple[Dependency, ...]:
    """Every dependency of a resource that one of `kinds` handles; ManifestInvalid for one that names no resource."""
    kind = kinds[resource.ref.group_kind]
    own = (
        _completed(dependency, kinds) if isinstance(dependency, ValueReference) else dependency
        for dependency in kind.dependencies(resource)
    )
    return (*own, *_depends_on(resource, kinds))


def owner_dependency(resource: Resource, known: Collection[ResourceRef]) -> tuple[Reference, ...]:
    """The dependency of a child on its owner, when that is among `known`: the owner generates the child first."""
    owner = resource.controller
    return () if owner is None or owner not in known else (Reference(OWNER_REFERENCES, owner, is_value_used=False),)


def may_have_dependencies(resource: Resource) -> bool:
    """False only when the resource certainly has no dependencies; nothing is decoded."""
    return DEPENDS_ON in resource.annotations or resource.mentions(*REFERENCE_MARKERS)


def _completed(dependency: ValueReference, kinds: ResourceTypes) -> ValueReference:
    target = dependency.target
    if target.group == ANY_GROUP:
        target = target._replace(group=_group(target.kind, kinds, dependency.field))
    is_awaited = isinstance(kinds.get(target.group_kind), SupportsWait)
    return replace(dependency, target=target, is_awaited=is_awaited)


def _depends_on(resource: Resource, kinds: ResourceTypes) -> tuple[Reference, ...]:
    text = resource.annotations.get(DEPENDS_ON, "")
    if not text:
        return ()
    targets = dict.fromkeys(_parse_target(word, resource, kinds) for word in re.split(r"[,\s]+", text) if word)
    return tuple(Reference(DEPENDS_ON, target, is_value_used=False) for target in targets)


def _parse_target(word: str, resource: Resource, kinds: ResourceTypes) -> ResourceRef:
    kind, *names = word.split("/")
    if not kind or len(names) not in (1, 2) or not all(names):
        advice = "write KIND/NAME or KIND/NAMESPACE/NAME, such as SQLInstance/db"
        raise ManifestInvalid(Message(AnnotationTerm(DEPENDS_ON), f": {word!r} names no resource: {advice}"))
    namespace = names[0] if len(names) == 2 else resource.ref.namespace
    name, _, group = kind.partition(".")
    group = group or _group(name, kinds, AnnotationTerm(DEPENDS_ON))
    return ResourceRef(group, name, namespace, names[-1])


def _group(kind: str, kinds: ResourceTypes, where: str | AnnotationTerm) -> str:
    groups = [group for group, name in kinds if name == kind]
    if len(groups) == 1:
        return groups[0]
    if groups:
        raise ManifestInvalid(Message(where, f": there is more than one {kind}: say which, as {kind}.{groups[0]}"))
    raise unknown_kind(kind, kinds, where)


# --- What the dependencies resolve to ---------------------------------------------------------------------------------


async def resolve_dependencies(
    dependencies: Sequence[Dependency], dependant: ResourceRef, engine: EngineContext
) -> ResolvedReferences:
    """What the dependencies of `dependant` resolve to; a NotReady names the first that is missing, unready or unfit.

    In a shared store ReferenceNotGranted comes before anything is read.
    """
    resources: dict[str, Resource] = {}
    secrets: dict[str, str] = {}
    versions: dict[str, str] = {}
    values: dict[str, Json] = {}
    targets = [(dependency.field, dependency_target(dependency)) for dependency in dependencies]
    seen = await engine.require_granted(dependant, targets)
    for dependency in dependencies:
        is_foreign = engine.is_foreign(dependency_target(dependency), dependant)
        match dependency:
            case Reference():
                found = await _referenced(dependency, engine.store, dependant, is_foreign=is_foreign)
                seen[found.ref] = found.revision
                if dependency.is_value_used:
                    resources[dependency.field] = found
            case SecretKeyReference(is_optional=True):
                secrets |= await _optional_secret(dependency, engine.store, seen)
            case SecretKeyReference():
                secret = await _secret(dependency.secret, engine.store)
                secrets[dependency.field] = secret_value(dependency, secret)
                versions[dependency.field] = f"{secret.uid}/{secret.revision}/{dependency.key}"
                seen[secret.ref] = secret.revision
            case ValueReference():
                source = await _require_found(dependency.target, engine.store)
                type_ = engine.resource_types.get(source.ref.group_kind)
                value = output_value(dependency, source, dependant, type_=type_, is_foreign=is_foreign)
                values[dependency.field], seen[source.ref] = value, source.revision
    return ResolvedReferences(resources, secrets, versions, values, seen)


async def resolve_available(
    dependencies: Sequence[Dependency], dependant: ResourceRef, engine: EngineContext
) -> ResolvedReferences:
    """The same for those dependencies that are there, ready, fit and granted; any other is left out."""
    found = ResolvedReferences()
    for dependency in dependencies:
        try:
            one = await resolve_dependencies([dependency], dependant, engine)
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
    """Whether the status says that the resource is as declared, for its current generation."""
    ready = condition_of(resource, ConditionType.READY)
    return ready is not None and ready.status == "True" and _is_current(resource) and not resource.is_deleting


def output_value(
    dependency: ValueReference,
    source: Resource,
    dependant: ResourceRef | None = None,
    *,
    type_: ResourceType | None = None,
    is_foreign: bool = False,
) -> Json:
    """The value that `dependency` names in `source`, a resource of `type_`.

    Blocked while there is none, with the reason and what `source` waits for in turn; ManifestInvalid when there never
    will be one, or it is secret. Nothing is taken from a resource that is not ready: it may be about to change. Of a
    source that `is_foreign`, of another tenant, the status is not told.
    """
    _refuse_secret(dependency, source, type_)
    waiting = f"waiting for {dependency.path} of {source.ref}"
    if source.is_deleting:
        raise _blocked(source, f"{waiting}: it is being deleted")
    if not _is_current(source):
        raise _blocked(source, f"{waiting}: it has not been reconciled since its spec changed")
    output = outputs.from_data(source.status.get(OUTPUT)) if dependency.is_awaited else None
    # The reason of an output is of before the source was blocked: then the block is why there is no value now.
    says_why = isinstance(output, outputs.Unknown) and OUTPUT in source.status and not _is_blocked(source)
    is_ready_for_it = is_ready(source) or not dependency.must_be_ready
    if is_foreign and not (is_ready_for_it and not isinstance(output, outputs.Unknown)):
        raise _blocked(source, f"{waiting}: it is not ready")
    if not is_ready_for_it and not says_why:
        chain = _chain(source, dependant)
        raise _blocked(source, f"{waiting}: it is not ready{'' if chain else _reason(source)}", chain)
    if output is not None:
        try:
            return outputs.value_at(output, dependency.path, str(source.ref))
        except Blocked as error:
            raise _blocked(source, str(error)) from None
    found = get_at(source.document, dependency.path)
    if found is None or isinstance(found, Missing):
        raise _blocked(source, f"{waiting}: it is ready, and there is no such value; check the path")
    return found


def secret_value(dependency: SecretKeyReference, secret: Resource) -> str:
    """The value that `dependency` names in `secret`; DependencyInvalid when there is none, or none that is text."""
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


def _refuse_secret(dependency: ValueReference, source: Resource, type_: ResourceType | None) -> None:
    """ManifestInvalid for a secret value: what one resource takes from another is not confidential."""
    if dependency.is_awaited:
        secret = secret_within(awaited_object(source), dependency.path)
    else:
        shape = None if type_ is None else shape_of(type_.tree_type)
        secret = secret_within(source.document, dependency.path, shape)
    if secret is not None:
        problem = (
            f": {dependency.path} of {source.ref} is, or contains, {secret}: "
            "no resource gets a secret value of another; refer to another path, or to a Secret by secretKeyRef"
        )
        raise ManifestInvalid(Message(dependency.field, problem))


def awaited_object(source: Resource) -> Json:
    """What the status has of the object that was waited for: its kind as it was observed, and the value of then."""
    output = source.status.get(OUTPUT)
    value = output.get("value", output.get("last")) if isinstance(output, Mapping) else None
    kind = {name: text_at(source.status, "object", name) for name in ("apiVersion", "kind")}
    return {**(value if isinstance(value, Mapping) else {}), **kind}


async def _referenced(reference: Reference, store: Store, dependant: ResourceRef, *, is_foreign: bool) -> Resource:
    found = await _require_found(reference.target, store)
    if reference.must_be_ready and not is_ready(found):
        why = f"reference {reference.target} is not ready"
        links = (BlockingLink(reference.target, why), *(() if is_foreign else _chain(found, dependant)))
        raise DependencyNotReady(_chain_message(links), links)
    return found


async def _require_found(target: ResourceRef, store: Store) -> Resource:
    found = await store.get(target)
    if found is None:
        why = f"reference {target} is not found"
        raise DependencyNotFound(why, (BlockingLink(target, why),))
    return found


async def _secret(ref: ResourceRef, store: Store) -> Resource:
    found = await store.get(ref)
    if found is None:
        why = f"Secret {ref.namespace}/{ref.name} was not found"
        raise DependencyNotFound(why, (BlockingLink(ref, why),))
    return found


async def _optional_secret(
    dependency: SecretKeyReference, store: Store, seen: dict[ResourceRef, Revision]
) -> dict[str, str]:
    """The value by its field, if there is one."""
    found = await store.get(dependency.secret)
    if found is None:
        return {}
    seen[found.ref] = found.revision
    try:
        return {dependency.field: secret_value(dependency, found)}
    except DependencyInvalid:
        return {}


# --- Chains of blocked resources --------------------------------------------------------------------------------------


def _blocked(source: Resource, why: str, chain: tuple[BlockingLink, ...] = ()) -> Blocked:
    links = (BlockingLink(source.ref, why), *chain)
    return Blocked(_chain_message(links), links)


def _chain(source: Resource, dependant: ResourceRef | None) -> tuple[BlockingLink, ...]:
    """What a blocked resource waits for itself, and so on; as far as `dependant`, where the chain leads back there."""
    ready = condition_of(source, ConditionType.READY)
    if ready is None or not _is_blocked(source):
        return ()
    # A status of a version without details has its message alone.
    links = ReadyDetails.of(source).blocked_on or (BlockingLink(None, ready.message),)
    back = next((at for at, link in enumerate(links) if dependant is not None and link.ref == dependant), len(links))
    links = links[: back + 1]
    # Only the nearest: in a cycle, the far end is another link each time that it is asked for.
    return (*links[:_MAX_LINKS], _ELLIPSIS) if len(links) > _MAX_LINKS else links


def _chain_message(links: Sequence[BlockingLink]) -> str:
    return "; it is blocked itself: ".join(link.why for link in links)


def _is_blocked(source: Resource) -> bool:
    ready = condition_of(source, ConditionType.READY)
    return _is_current(source) and ready is not None and ready.reason in BLOCKED_REASONS


def _is_current(resource: Resource) -> bool:
    """Whether the status is about the current generation."""
    return resource.status.get("observedGeneration") == resource.generation


def _reason(source: Resource) -> str:
    ready = condition_of(source, ConditionType.READY)
    return f" ({ready.reason})" if ready is not None and ready.reason else ""

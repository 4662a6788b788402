"""What has to be there before a resource: what its spec names, and what its author says it comes after."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from setpoint.engine.abilities import Awaited
from setpoint.engine.kind import ANY_GROUP, Need, Reference, Sort, Value
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import ManifestInvalid

Kinds: TypeAlias = Mapping[tuple[str, str], Sort]

# Resources that have to be ready first, though nothing of them is used: `KIND/NAME` or `KIND/NAMESPACE/NAME` each.
DEPENDS_ON: Final = "setpoint.dev/depends-on"
# Stands for a field that names the owner: none does.
OWNED: Final = "metadata.ownerReferences"
# Words without one of which in its spec a resource needs nothing.
MENTIONS: Final = ("Ref", "$ref", "${ref:")


def needs_of(resource: Resource, kinds: Kinds) -> tuple[Need, ...]:
    """All of it, for a resource that one of `kinds` handles; ManifestInvalid for what names nothing."""
    kind = kinds[resource.ref.group, resource.ref.kind]
    own = (_completed(need, kinds) if isinstance(need, Value) else need for need in kind.needs(resource))
    return (*own, *_first(resource, kinds))


def after_its_owner(resource: Resource, known: Collection[ResourceRef]) -> tuple[Reference, ...]:
    """A child comes after its owner, when that is known: what it should be is for the owner to say first."""
    owner = resource.controller
    return () if owner is None or owner not in known else (Reference(OWNED, owner, is_used=False),)


def may_need(resource: Resource) -> bool:
    """Whether it may need anything: sure only when it does not."""
    return DEPENDS_ON in resource.annotations or resource.mentions(*MENTIONS)


def _completed(need: Value, kinds: Kinds) -> Value:
    target = need.target
    if target.group == ANY_GROUP:
        target = target._replace(group=_group(target.kind, kinds, need.field))
    return replace(need, target=target, is_awaited=isinstance(kinds.get((target.group, target.kind)), Awaited))


def _first(resource: Resource, kinds: Kinds) -> tuple[Reference, ...]:
    text = resource.annotations.get(DEPENDS_ON, "")
    targets = dict.fromkeys(_named(word, resource, kinds) for word in re.split(r"[,\s]+", text) if word)
    return tuple(Reference(DEPENDS_ON, target, is_used=False) for target in targets)


def _named(word: str, resource: Resource, kinds: Kinds) -> ResourceRef:
    kind, *place = word.split("/")
    if not kind or len(place) not in (1, 2) or not all(place):
        raise ManifestInvalid(
            f"{DEPENDS_ON}: {word!r} names no resource: write KIND/NAME or KIND/NAMESPACE/NAME, such as SQLInstance/db"
        )
    namespace = place[0] if len(place) == 2 else resource.ref.namespace
    name, _, group = kind.partition(".")
    group = group or _group(name, kinds, DEPENDS_ON)
    return ResourceRef(group, name, namespace, place[-1])


def _group(kind: str, kinds: Kinds, where: str) -> str:
    groups = [group for group, name in kinds if name == kind]
    if len(groups) == 1:
        return groups[0]
    if groups:
        raise ManifestInvalid(f"{where}: there is more than one {kind}: say which, as {kind}.{groups[0]}")
    known = ", ".join(sorted(name for _, name in kinds))
    raise ManifestInvalid(f"{where}: no kind {kind!r} is known here; there is {known}")

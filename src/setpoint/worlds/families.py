"""Children under the veil: what an owner makes of a value that nobody may see changes with its stand-in.

Where a child, or the memory of what was generated, says what would be generated from the value, it says what would be
generated from the stand-in from then on. Anything else stays as it was: what differed still differs.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from setpoint.core.canonical import digest, same
from setpoint.core.threeway import bare
from setpoint.core.values import Json
from setpoint.engine.family import LAST_GENERATED, look_at_family, ref_of
from setpoint.engine.remembered import OURS
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.engine.scene import World
from setpoint.errors import SetpointError
from setpoint.worlds.files import RecordedWorld

# What each owner would generate, by child.
Generations = Mapping[ResourceRef, Mapping[ResourceRef, Tree]]


async def generations(refs: Iterable[ResourceRef], world: World) -> Generations:
    """What would be generated now, by those of whom that can be told."""
    found: dict[ResourceRef, Mapping[ResourceRef, Tree]] = {}
    for ref in refs:
        owner, resource = world.owners.get((ref.group, ref.kind)), await world.store.get(ref)
        if owner is not None and resource is not None:
            # What cannot be told here says why in the preview.
            with suppress(SetpointError):
                family = await look_at_family(resource, owner, world.store)
                found[ref] = {ref_of(child): child.object for child in family.generated.children}
    return found


@dataclass(slots=True)
class _Changed:
    """What reads differently under the veil: texts of children by child, and digests in the memories of owners."""

    texts: dict[ResourceRef, dict[str, str]] = field(default_factory=dict)
    digests: dict[ResourceRef, dict[str, str]] = field(default_factory=dict)


def renamed(before: Generations, after: Generations) -> Mapping[str, str]:
    """What is generated otherwise under the veil: the texts, each with the one in its place."""
    return {old: new for texts in _changed(before, after).texts.values() for old, new in texts.items()}


def with_families_veiled(recorded: RecordedWorld, before: Generations, after: Generations) -> RecordedWorld:
    """The world with children and memories that speak of stand-ins, where they spoke of what has one."""
    changed = _changed(before, after)
    return replace(recorded, resources=tuple(_carried(one, changed) for one in recorded.resources))


def _changed(before: Generations, after: Generations) -> _Changed:
    changed = _Changed()
    for owner, children in before.items():
        for ref, child in children.items():
            for old, new in _pairs(dict(child), dict(after.get(owner, {}).get(ref, child))):
                changed.digests.setdefault(owner, {})[digest(bare(old))] = digest(bare(new))
                if isinstance(old, str) and isinstance(new, str):
                    changed.texts.setdefault(ref, {})[old] = new
    return changed


def _pairs(old: Json, new: Json) -> Iterator[tuple[Json, Json]]:
    """Every part that is another one, with the parts of it."""
    if same(old, new):
        return
    yield old, new
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in old.keys() & new.keys():
            yield from _pairs(old[name], new[name])
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
        for one, other in zip(old, new, strict=False):
            yield from _pairs(one, other)


def _carried(resource: Resource, changed: _Changed) -> Resource:
    document = dict(resource.document)
    texts, digests = changed.texts.get(resource.ref, {}), changed.digests.get(resource.ref, {})
    if texts:
        document = {name: member if name == "status" else replaced(member, texts) for name, member in document.items()}
    status = document.get("status")
    if digests and isinstance(status, Mapping):
        ours = (LAST_GENERATED, OURS)
        document["status"] = {name: replaced(one, digests) if name in ours else one for name, one in status.items()}
    return Resource(document) if texts or digests else resource


def replaced(value: Json, texts: Mapping[str, str]) -> Json:
    """The value with other texts in the place of these."""
    if isinstance(value, Mapping):
        return {name: replaced(member, texts) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [replaced(one, texts) for one in value]
    return texts.get(value, value) if isinstance(value, str) else value

"""Taking over what another controller looks after: what that would write, and which annotations would keep it away.

The other's cookies vouch for what it saw, in its terms: nothing is taken from them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from setpoint.core.plan import Action, Plan
from setpoint.core.policy import DEFAULT_TO_GCP, IGNORE_UNSPECIFIED, UNMANAGED, Rule
from setpoint.core.values import Json
from setpoint.engine.drafts import Drafts
from setpoint.engine.previews import Finding, Previewed, preview_both_ways, with_cookie
from setpoint.engine.reconcile import preview
from setpoint.engine.remembered import COOKIE_ANNOTATION
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.scene import World
from setpoint.errors import SetpointError


@dataclass(frozen=True, slots=True)
class Adoption:
    """What becomes of one resource: what was found, and annotations with which nothing is written, if there are any."""

    found: Previewed
    keeps: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_quiet(self) -> bool:
        """Whether it can be taken over without a write."""
        return self.found.is_left_alone

    def to_data(self) -> dict[str, Json]:
        """All of it as plain JSON."""
        return {**self.found.to_data(), "keep": dict(self.keeps)}


async def adoption_of(ref: ResourceRef, world: World) -> Adoption:
    """What taking over `ref` would come to; nothing is written."""
    resource = await world.store.get(ref)
    if resource is None:
        return Adoption(Previewed(ref, Finding.FAILED, trouble=f"{ref} is gone"))
    theirs = without_cookies(resource)
    found = await preview_both_ways(ref, _with(theirs, world))
    if found.finding is not Finding.WRITES or found.plan is None:
        return Adoption(found)
    return Adoption(found, await _kept_by(found.plan, theirs, world))


def without_cookies(resource: Resource) -> Resource:
    """The resource as somebody sees it who knows nothing of those who looked after it before."""
    forgotten = with_cookie(resource, None).document
    metadata = forgotten["metadata"]
    assert isinstance(metadata, Mapping)
    said = {name: text for name, text in resource.annotations.items() if name != COOKIE_ANNOTATION}
    return Resource({**forgotten, "metadata": {**metadata, "annotations": said}})


async def _kept_by(plan: Plan, resource: Resource, world: World) -> Mapping[str, str]:
    """The first annotations, the narrowest first, with which nothing is written; none when there are none."""
    for annotations in _candidates(plan, resource):
        try:
            left = await preview(resource.ref, _with(annotated(resource, annotations), world))
        except SetpointError:
            # Not every field can be named in an annotation.
            continue
        if not left.writes:
            return annotations
    return {}


def _candidates(plan: Plan, resource: Resource) -> Iterator[Mapping[str, str]]:
    if any(write.action in (Action.CREATE, Action.DELETE) for write in plan.writes):
        return
    said = [str(change.path) for change in plan.changes if change.rule is Rule.SPEC]
    silent = [str(change.path) for change in plan.changes if change.rule is not Rule.SPEC]
    unmanaged = {UNMANAGED: _joined(resource, UNMANAGED, said)} if said else {}
    if silent:
        yield {**unmanaged, DEFAULT_TO_GCP: _joined(resource, DEFAULT_TO_GCP, silent)}
        yield {**unmanaged, IGNORE_UNSPECIFIED: "true"}
    elif unmanaged:
        yield unmanaged


def _joined(resource: Resource, name: str, paths: Sequence[str]) -> str:
    before = resource.annotations.get(name)
    return ",".join([before, *paths] if before else paths)


def annotated(resource: Resource, annotations: Mapping[str, str]) -> Resource:
    """The resource with these annotations as well."""
    metadata = resource.document["metadata"]
    assert isinstance(metadata, Mapping)
    return Resource(
        {**resource.document, "metadata": {**metadata, "annotations": {**resource.annotations, **annotations}}}
    )


def _with(resource: Resource, world: World) -> World:
    return replace(world, store=Drafts(world.store, {resource.ref: resource}))

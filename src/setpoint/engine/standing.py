"""How a resource stands: the digests of its intent and of its live object as they are now, whatever is on record."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from setpoint.core.cookie import Cookie
from setpoint.core.values import Missing
from setpoint.engine.family import look_at_family
from setpoint.engine.intent import resolve_as_it_is
from setpoint.engine.kind import Absent, look_at
from setpoint.engine.planning import live_digest
from setpoint.engine.resource import Resource
from setpoint.engine.scene import World


@dataclass(frozen=True, slots=True)
class Standing:
    """What a look finds. `live` is None where there is no object, and `body` where its bytes do not count."""

    intent: str
    live: str | None
    body: str | None = None
    # Of each value that nobody may see, by the field that it is for.
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def cookie(self) -> Cookie | None:
        """The cookie of both."""
        return None if self.live is None else Cookie(self.intent, self.live)


async def standing_of(resource: Resource, world: World) -> Standing:
    """How `resource` stands. What it refers to has to be there, and counts as it is."""
    owner = world.owners.get((resource.ref.group, resource.ref.kind))
    if owner is not None:
        family = await look_at_family(resource, owner, world.store)
        seen = family.live_digest
        return Standing(family.intent, None if isinstance(seen, Missing) else seen)
    intent = await resolve_as_it_is(resource, world)
    look = await look_at(intent.location, world.kind_of(resource))
    if isinstance(look, Absent):
        return Standing(intent.digest, None, None, intent.resolved.versions)
    live = live_digest(look)
    assert not isinstance(live, Missing)
    return Standing(intent.digest, live, look.body, intent.resolved.versions)

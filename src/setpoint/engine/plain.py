"""Plain objects: kept beside resources, while nobody takes a step for them. Secrets, and what owners make or read."""

from setpoint.engine.resource import SECRET, ResourceRef
from setpoint.engine.scene import World


def plain_kinds(world: World) -> frozenset[tuple[str, str]]:
    """The kinds of what may be declared here and has no steps of its own."""
    named = {(one.group, one.kind) for owner in world.owners.values() for one in (*owner.makes, *owner.reads)}
    return frozenset({SECRET, *named} - world.sorts.keys())


def is_plain(ref: ResourceRef, world: World) -> bool:
    """Whether `ref` is one of these."""
    return (ref.group, ref.kind) in plain_kinds(world)

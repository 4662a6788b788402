"""Which resources a command is about, where KIND alone means all of them."""

from collections.abc import Sequence

from setpoint.cli.requests import kind_named
from setpoint.engine.resource import Resource
from setpoint.engine.scene import World
from setpoint.errors import ManifestInvalid


def wanted_by(target: str, world: World) -> tuple[tuple[str, str], str]:
    """The kind and the name that KIND or KIND/NAME means; no name for all of them."""
    kind, _, name = target.partition("/")
    return kind_named(kind, world), name


def is_wanted(resource: Resource, wanted: Sequence[tuple[tuple[str, str], str]]) -> bool:
    """Whether it is one of these; nothing wanted means everything."""
    kind = (resource.ref.group, resource.ref.kind)
    return not wanted or any(kind == one and name in ("", resource.ref.name) for one, name in wanted)


def require_found(wanted: Sequence[tuple[tuple[str, str], str]], found: Sequence[Resource]) -> None:
    """ManifestInvalid for the first that is named and not there."""
    there = {((one.ref.group, one.ref.kind), one.ref.name) for one in found}
    for kind, name in wanted:
        if name and (kind, name) not in there:
            raise ManifestInvalid(f"{kind[1]} {name} is not declared here: `setpoint get -A` lists what is")

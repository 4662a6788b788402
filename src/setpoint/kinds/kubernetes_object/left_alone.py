"""What is sent of an object in which some fields are left to others."""

from collections.abc import Iterable

from setpoint.core.paths import Path, get_at, remove_at, set_at
from setpoint.core.values import Json, Missing
from setpoint.kinds.kubernetes_object.projection import Fields, carve, owns_at


def without_left_alone(wanted: Json, live: Json, owned: Fields, paths: Iterable[Path]) -> Json:
    """`wanted` with each of `paths` left as it is in `live`.

    What we own there is sent as it is: what an owner leaves out is deleted. What is not ours is left out.
    """
    for path in paths:
        wanted = _left_alone(wanted, live, owned, path)
    return wanted


def _left_alone(wanted: Json, live: Json, owned: Fields, path: Path) -> Json:
    value, ours = get_at(live, path), owns_at(owned, live, path)
    if ours is None or isinstance(value, Missing):
        return remove_at(wanted, path)
    if any(not isinstance(step, str) for step in path.steps) and isinstance(get_at(wanted, path.parent), Missing):
        # The element around it is to go.
        return wanted
    return set_at(wanted, path, carve(value, ours))

"""Members of Kubernetes objects that change without anybody's doing. No output holds one: it would never be at rest."""

from collections.abc import Mapping
from typing import Final

from setpoint.core.paths import Path
from setpoint.core.values import Json

_VOLATILE: Final = frozenset(
    {
        "observedGeneration",
        "resourceVersion",
        "managedFields",
        "lastTransitionTime",
        "lastUpdateTime",
        "lastProbeTime",
        "lastHeartbeatTime",
    }
)
# What authors write, they may name as they like.
_PARTS: Final = ("status", "metadata")


def volatile_step(path: Path) -> str | None:
    """The step of `path` that leads to such a member; None when it leads to none."""
    if path.steps[:1] and path.steps[0] not in _PARTS:
        return None
    return next((step for step in path.steps if isinstance(step, str) and step in _VOLATILE), None)


def lasting(value: Json, path: Path) -> Json:
    """`value`, which was found at `path`, without any of them."""
    if not path.steps and isinstance(value, Mapping):
        return {name: _lasting(below) if name in _PARTS else below for name, below in value.items()}
    return _lasting(value) if path.steps[0] in _PARTS else value


def _lasting(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {name: _lasting(below) for name, below in value.items() if name not in _VOLATILE}
    if isinstance(value, list | tuple):
        return [_lasting(one) for one in value]
    return value

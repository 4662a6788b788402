"""Access to fields of unstructured Kubernetes objects: a field of the wrong type counts as absent."""

from collections.abc import Mapping
from typing import Final

from setpoint.core.conditions import Condition, Conditions, conditions_from_data
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, get_at

_CONDITIONS: Final = Path(("status", "conditions"))


def text_at(live: Json, *names: str) -> str:
    """The text at these names, or "" when there is none."""
    value = get_at(live, Path(names))
    return value if isinstance(value, str) else ""


def int_at(live: Json, *names: str) -> int | Missing:
    """The whole number at these names, or `MISSING`."""
    value = get_at(live, Path(names))
    return value if isinstance(value, int) and not isinstance(value, bool) else MISSING


def count_at(live: Json, *names: str, absent: int = 0) -> int:
    """The whole number at these names, or `absent`."""
    value = int_at(live, *names)
    return absent if value is MISSING else value


def group_kind(live: Json) -> tuple[str, str]:
    """("apps", "Deployment"), or ("", "Pod") for the core group."""
    group, slash, _ = text_at(live, "apiVersion").partition("/")
    return group if slash else "", text_at(live, "kind")


def display_name(live: Json) -> str:
    """The object as people name it: `Deployment shop/web`."""
    where = (text_at(live, "metadata", "namespace"), text_at(live, "metadata", "name"))
    return f"{text_at(live, 'kind') or 'the object'} {'/'.join(filter(None, where))}".rstrip()


def conditions_of(live: Json) -> Conditions:
    """Whatever in `status.conditions` is a condition."""
    return conditions_from_data(get_at(live, _CONDITIONS))


def observed_generation(live: Json) -> int | Missing:
    """The generation that the status speaks of, if it says."""
    return int_at(live, "status", "observedGeneration")


def generation_lag(live: Json, observed: int | Missing) -> str | None:
    """How far `observed` is behind the object; None when it has caught up or nothing says which is newer."""
    generation = int_at(live, "metadata", "generation")
    if generation is MISSING or observed is MISSING or observed >= generation:
        return None
    return f"it speaks of generation {observed}, and the object is at generation {generation}"


def condition_lag(live: Json, condition: Condition) -> str | None:
    """How far a condition is behind: by its own generation, or the status' when it has none."""
    own = condition.observed_generation
    return generation_lag(live, observed_generation(live) if own is MISSING else own)


_VOLATILE_FIELDS: Final = frozenset(
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
_SERVER_WRITTEN: Final = ("status", "metadata")


def volatile_step(path: Path) -> str | None:
    """The step of `path` that leads to such a member; None when it leads to none."""
    if path.steps[:1] and path.steps[0] not in _SERVER_WRITTEN:
        return None
    return next((step for step in path.steps if isinstance(step, str) and step in _VOLATILE_FIELDS), None)


def without_volatile(value: Json, path: Path) -> Json:
    """`value`, which was found at `path`, without any of them."""
    if not path.steps and isinstance(value, Mapping):
        return {name: _without_volatile(below) if name in _SERVER_WRITTEN else below for name, below in value.items()}
    return _without_volatile(value) if path.steps[0] in _SERVER_WRITTEN else value


def _without_volatile(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {name: _without_volatile(below) for name, below in value.items() if name not in _VOLATILE_FIELDS}
    if isinstance(value, list | tuple):
        return [_without_volatile(one) for one in value]
    return value

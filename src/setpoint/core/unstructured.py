"""Access to fields of unstructured Kubernetes objects: a field of the wrong type counts as absent.

Volatile fields are those that controllers write again and again without a change of state. An output never holds one:
it would differ at every observation.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from setpoint.core.conditions import Condition, Conditions, conditions_from_data
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.paths import Path, get_at

# A kind of objects: its API group and its name.
GroupKind: TypeAlias = tuple[str, str]
_CONDITIONS: Final = Path(("status", "conditions"))


def plural_name(kind: str) -> str:
    """The plural of the name of a kind in English, in lower case: `computeaddresses`, `dnspolicies`, `kmskeyrings`."""
    name = kind.lower()
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}{'es' if name.endswith(('s', 'x', 'z', 'ch', 'sh')) else 's'}"


def text_at(live: Json, *names: str) -> str:
    """The text at the path of these names, or "" when there is none."""
    for name in names:
        # The first check is for speed: nearly all are of that type.
        if type(live) is not dict and not isinstance(live, dict):
            return ""
        live = live.get(name)
    return live if type(live) is str or isinstance(live, str) else ""


def int_at(live: Json, *names: str) -> int | Missing:
    """The integer at the path of these names, or `MISSING`."""
    value = get_at(live, Path(names))
    return value if isinstance(value, int) and not isinstance(value, bool) else MISSING


def count_at(live: Json, *names: str, absent: int = 0) -> int:
    """The integer at the path of these names, or `absent`."""
    value = int_at(live, *names)
    return absent if value is MISSING else value


def group_kind(live: Json) -> GroupKind:
    """("apps", "Deployment"), or ("", "Pod") for the core group."""
    group, slash, _ = text_at(live, "apiVersion").partition("/")
    return group if slash else "", text_at(live, "kind")


def display_name(live: Json) -> str:
    """The name of the object in messages: `Deployment shop/web`."""
    where = (text_at(live, "metadata", "namespace"), text_at(live, "metadata", "name"))
    return f"{text_at(live, 'kind') or 'the object'} {'/'.join(filter(None, where))}".rstrip()


def conditions_of(live: Json) -> Conditions:
    """The well-formed conditions in `status.conditions`."""
    return conditions_from_data(get_at(live, _CONDITIONS))


def observed_generation(live: Json) -> int | Missing:
    """The generation that the status was written for, or `MISSING`."""
    return int_at(live, "status", "observedGeneration")


def generation_lag(live: Json, observed: int | Missing) -> str | None:
    """How far the observed generation is behind the object's; None when it is current or cannot be compared."""
    generation = int_at(live, "metadata", "generation")
    if generation is MISSING or observed is MISSING or observed >= generation:
        return None
    return f"it speaks of generation {observed}, and the object is at generation {generation}"


def condition_lag(live: Json, condition: Condition) -> str | None:
    """How far a condition is behind: by its own observed generation, or else by that of the status."""
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
# Volatile names count only here: in a spec or in data the author may use any name.
_SERVER_WRITTEN: Final = ("status", "metadata")


def volatile_step(path: Path) -> str | None:
    """The step of `path` that names a volatile field; None when none does."""
    if path.steps[:1] and path.steps[0] not in _SERVER_WRITTEN:
        return None
    return next((step for step in path.steps if isinstance(step, str) and step in _VOLATILE_FIELDS), None)


def without_volatile(value: Json, path: Path) -> Json:
    """`value`, which is at `path` of an object, without volatile fields."""
    if not path.steps and isinstance(value, Mapping):
        return {name: _without_volatile(below) if name in _SERVER_WRITTEN else below for name, below in value.items()}
    return _without_volatile(value) if path.steps[0] in _SERVER_WRITTEN else value


def _without_volatile(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {name: _without_volatile(below) for name, below in value.items() if name not in _VOLATILE_FIELDS}
    if isinstance(value, list | tuple):
        return [_without_volatile(one) for one in value]
    return value

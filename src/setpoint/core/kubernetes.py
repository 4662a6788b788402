"""What a live Kubernetes object says about itself. Any member may have any type: the wrong one counts as not there."""

from typing import Final

from setpoint.core.conditions import Condition, Conditions, from_data
from setpoint.core.paths import Path, get_at
from setpoint.core.values import MISSING, Json, Missing

_CONDITIONS: Final = Path(("status", "conditions"))


def text_at(live: Json, *names: str) -> str:
    """The text at these names, or "" when there is none."""
    value = get_at(live, Path(names))
    return value if isinstance(value, str) else ""


def whole_at(live: Json, *names: str) -> int | Missing:
    """The whole number at these names, or `MISSING`."""
    value = get_at(live, Path(names))
    return value if isinstance(value, int) and not isinstance(value, bool) else MISSING


def count_at(live: Json, *names: str, absent: int = 0) -> int:
    """The whole number at these names, or `absent`."""
    value = whole_at(live, *names)
    return absent if value is MISSING else value


def group_and_kind(live: Json) -> tuple[str, str]:
    """("apps", "Deployment"), or ("", "Pod") for the core group."""
    group, slash, _ = text_at(live, "apiVersion").partition("/")
    return group if slash else "", text_at(live, "kind")


def title(live: Json) -> str:
    """The object as people name it: `Deployment shop/web`."""
    where = (text_at(live, "metadata", "namespace"), text_at(live, "metadata", "name"))
    return f"{text_at(live, 'kind') or 'the object'} {'/'.join(filter(None, where))}".rstrip()


def conditions_of(live: Json) -> Conditions:
    """Whatever in `status.conditions` is a condition."""
    return from_data(get_at(live, _CONDITIONS))


def observed_generation(live: Json) -> int | Missing:
    """The generation that the status speaks of, if it says."""
    return whole_at(live, "status", "observedGeneration")


def lag(live: Json, observed: int | Missing) -> str | None:
    """How far `observed` is behind the object; None when it has caught up or nothing says which is newer."""
    generation = whole_at(live, "metadata", "generation")
    if generation is MISSING or observed is MISSING or observed >= generation:
        return None
    return f"it speaks of generation {observed}, and the object is at generation {generation}"


def condition_lag(live: Json, condition: Condition) -> str | None:
    """How far a condition is behind: by its own generation, or the status' when it has none."""
    own = condition.observed_generation
    return lag(live, observed_generation(live) if own is MISSING else own)

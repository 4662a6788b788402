"""Documents of resources, to be compared."""

from typing import Any


def without_times(value: Any) -> Any:
    """`value` without the members that hold a time."""
    if isinstance(value, list):
        return [without_times(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {name: without_times(entry) for name, entry in value.items() if name not in ("at", "lastTransitionTime")}

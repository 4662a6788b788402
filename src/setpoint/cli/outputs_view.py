"""What a resource offers to others, in one word: null, unknown, or the value itself where that is short."""

from collections.abc import Iterator, Mapping

from setpoint.cli.show import value_text
from setpoint.core.outputs import Known, Null, Unknown, from_data
from setpoint.core.values import Json
from setpoint.engine.references import OUTPUT
from setpoint.engine.resource import Resource


def has_output(resource: Resource) -> bool:
    """Whether it is one of those that can offer anything."""
    return OUTPUT in resource.status


def output_word(resource: Resource, *, wide: bool) -> str:
    """The state, and what is behind it: the only value of a short one; all of it, or why there is none, when `wide`."""
    if not has_output(resource):
        return "-"
    match from_data(resource.status[OUTPUT]):
        case Null():
            return "null"
        case Unknown(reason, since):
            return f"unknown since {since}: {reason}" if wide else "unknown"
        case Known(value):
            return _known(value, wide=wide)


def _known(value: Json, *, wide: bool) -> str:
    leaves = list(_leaves(value))
    if len(leaves) == 1:
        return f"known: {value_text(leaves[0])}"
    return f"known: {value_text(value)}" if wide else "known"


def _leaves(value: Json) -> Iterator[Json]:
    """What stands at the ends; null only marks a place in a list."""
    if isinstance(value, Mapping):
        for one in value.values():
            yield from _leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    elif value is not None:
        yield value

"""Live objects from the schema of the local cloud: whatever the service takes, said in the spec's words or not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from setpoint.core.values.json_types import Json
from setpoint.localcloud.schema import (
    OUTPUT,
    EnumSchema,
    FieldSchema,
    ListSchema,
    MapSchema,
    ObjectSchema,
    ScalarSchema,
)

Part: TypeAlias = dict[str, Any]
_PLAIN: Final[Mapping[ScalarSchema, Sequence[Json]]] = {
    ScalarSchema.TEXT: ("a", "b"),
    ScalarSchema.BOOL: (True, False),
    ScalarSchema.INT32: (1, 2, 7),
    ScalarSchema.INT64: ("1", "10", "100"),
    ScalarSchema.TIME: ("2099-01-01T00:00:00Z", "2099-01-01T01:00:00.50+01:00"),
}


def settable(message: ObjectSchema, at: str = "") -> Iterator[tuple[str, FieldSchema]]:
    """Every place that a client may write to, and what may stand there; a list is one place."""
    for name, shape in message.fields.items():
        path = f"{at}.{name}" if at else name
        if isinstance(shape, ObjectSchema):
            yield from settable(shape, path)
        elif shape is not OUTPUT and shape is not ScalarSchema.SECRET:
            yield path, shape


@dataclass(frozen=True)
class Vocabulary:
    """What may stand in a live object: values by path."""

    words: Mapping[str, Sequence[Json]]
    # What an object inside a list cannot be without.
    required: frozenset[str] = frozenset()
    # Patches for more than one place, which the service would refuse one after the other.
    together: Sequence[Part] = ()


def patches(message: ObjectSchema, known: Vocabulary, most: int) -> st.SearchStrategy[list[Part]]:
    """A few patches, each for one place, or for what the service takes only together. A null asks for the default."""
    places = dict(settable(message))
    ways = {path: _at(path, values(shape, known, path) | st.none()) for path, shape in places.items()}
    found = st.sampled_from(sorted(places)).flatmap(ways.__getitem__)
    return st.lists(found | st.sampled_from(known.together) if known.together else found, max_size=most)


def _at(path: str, found: st.SearchStrategy[Json]) -> st.SearchStrategy[Part]:
    return found.map(lambda value: nested(path.split("."), value))


def nested(steps: Sequence[str], value: Json) -> Part:
    """A tree with one value in it."""
    name, *rest = steps
    return {name: nested(rest, value) if rest else value}


def values(shape: FieldSchema, known: Vocabulary, at: str) -> st.SearchStrategy[Json]:
    """What may stand at a place."""
    if at in known.words:
        return st.sampled_from(list(known.words[at]))
    match shape:
        case EnumSchema(values=texts):
            return st.sampled_from(sorted(texts))
        case ListSchema(element=element):
            return st.lists(values(element, known, f"{at}[]"), max_size=2)
        case MapSchema(value=value):
            names = st.sampled_from(("team", "stage", "managed-by-cnrm"))
            return st.dictionaries(names, values(value, known, f"{at}[]"), max_size=2)
        case ObjectSchema(fields=fields):
            parts = {name: values(one, known, f"{at}.{name}") for name, one in fields.items() if one is not OUTPUT}
            must = {name: one for name, one in parts.items() if f"{at}.{name}" in known.required}
            may = {name: one for name, one in parts.items() if name not in must}
            return st.fixed_dictionaries(must, optional=may)
        case ScalarSchema():
            return st.sampled_from(_PLAIN[shape])
        case _:
            raise AssertionError(f"{at} is the service's own")

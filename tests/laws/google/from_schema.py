"""Live objects from the schema of the local cloud: any value that the service accepts, modelled by the kind or not."""

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
    """Every field that a client may write, with its schema; a list is one field."""
    for name, shape in message.fields.items():
        path = f"{at}.{name}" if at else name
        if isinstance(shape, ObjectSchema):
            yield from settable(shape, path)
        elif shape is not OUTPUT and shape is not ScalarSchema.SECRET:
            yield path, shape


@dataclass(frozen=True)
class Vocabulary:
    """Example values of a live object, by path."""

    words: Mapping[str, Sequence[Json]]
    # Required fields of objects inside lists.
    required: frozenset[str] = frozenset()
    # Patches of several fields, which the service would refuse one by one.
    together: Sequence[Part] = ()


def patches(message: ObjectSchema, known: Vocabulary, most: int) -> st.SearchStrategy[list[Part]]:
    """A few patches, each of one field, or of fields that are accepted only together. A null resets to the default."""
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
    """The values of a field."""
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

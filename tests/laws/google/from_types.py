"""Specs from their types: any field may be specified, and one chosen field always is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from setpoint.core.values.json_types import MISSING, Json, Missing

# Example values, by path: `settings.databaseFlags[].name`.
Words: TypeAlias = Mapping[str, Sequence[Json]]
_ELEMENT: Final = "[]"
_PLAIN: Final[Mapping[type, Sequence[Json]]] = {
    inspect.StrType: ("a", "b", ""),
    inspect.IntType: (0, 1, 2, 7),
    inspect.BoolType: (True, False),
}
_MOST_FIELDS: Final = 3


def field_paths(type_: type[msgspec.Struct]) -> tuple[str, ...]:
    """Every path that the type names."""
    return tuple(_paths(inspect.type_info(type_), ""))


def _paths(info: inspect.Type, at: str) -> Iterator[str]:
    match _plain_type(info):
        case inspect.StructType(fields=fields):
            for one in fields:
                path = _below(at, one.encode_name)
                yield path
                yield from _paths(one.type, path)
        case inspect.ListType(item_type=inspect.StructType() as item):
            yield from _paths(item, at + _ELEMENT)
        case _:
            return


def paths_in(value: Json, at: str = "") -> Iterator[str]:
    """Every path of a tree, in the same notation."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield _below(at, name)
            yield from paths_in(one, _below(at, name))
    elif isinstance(value, list):
        for one in value:
            yield from paths_in(one, at + _ELEMENT)


def _below(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _plain_type(info: inspect.Type) -> inspect.Type:
    """The type behind `| None`."""
    if isinstance(info, inspect.UnionType):
        (found,) = (one for one in info.types if not isinstance(one, inspect.NoneType))
        return found
    return info


def _may_be_null(info: inspect.Type) -> bool:
    return isinstance(info, inspect.UnionType)


@dataclass(frozen=True)
class Author:
    """Generates specs from example values, and often from live values."""

    words: Words
    # The field that has to be specified.
    about: str
    # The live values, in the same terms.
    live: Json | Missing = MISSING
    at: str = field(default="", kw_only=True)

    def below(self, name: str) -> "Author":
        live = self.live.get(name, MISSING) if isinstance(self.live, Mapping) else MISSING
        return replace(self, live=live, at=_below(self.at, name))

    def element(self, live: Json | Missing) -> "Author":
        return replace(self, live=live, at=self.at + _ELEMENT)

    @property
    def must_descend(self) -> bool:
        """Whether the chosen field is below."""
        return self.about.startswith((f"{self.at}.", self.at + _ELEMENT)) if self.at else bool(self.about)

    def examples_with_field(self) -> list[Json]:
        """The example objects and lists that have the chosen field."""
        return [one for one in self.words.get(self.at, ()) if isinstance(one, Mapping | list) and self._has_field(one)]

    @property
    def live_has_field(self) -> bool:
        """Whether the live value is an object or a list that has the chosen field."""
        return isinstance(self.live, Mapping | list) and self._has_field(self.live)

    def _has_field(self, whole: Json) -> bool:
        return not self.must_descend or self.about in paths_in(whole, self.at)

    def must_specify(self, name: str) -> bool:
        path = _below(self.at, name)
        return self.about == path or self.about.startswith((f"{path}.", path + _ELEMENT))


@st.composite
def specs(draw: st.DrawFn, type_: type[msgspec.Struct], author: Author) -> dict[str, Any]:
    """A spec with the chosen field, and a few others."""
    return _struct(draw, _info(type_), author)


@cache
def _info(type_: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(type_)


@cache
def _some(names: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), max_size=_MOST_FIELDS, unique=True) if names else st.just([])


def _struct(draw: st.DrawFn, info: inspect.Type, author: Author) -> dict[str, Any]:
    assert isinstance(info, inspect.StructType)
    some = draw(_some(tuple(one.encode_name for one in info.fields if not one.required)))
    chosen = [
        one for one in info.fields if one.required or one.encode_name in some or author.must_specify(one.encode_name)
    ]
    return {one.encode_name: _value(draw, one.type, author.below(one.encode_name)) for one in chosen}


def _value(draw: st.DrawFn, info: inspect.Type, author: Author) -> Json:
    if _may_be_null(info) and not author.must_descend and draw(_RARELY):
        return None
    if author.live_has_field and draw(_SOMETIMES):
        assert not isinstance(author.live, Missing)
        return author.live
    if examples_with_field := author.examples_with_field():
        return draw(st.sampled_from(examples_with_field))
    match _plain_type(info):
        case inspect.StructType() as struct:
            return _struct(draw, struct, author)
        case inspect.ListType(item_type=item):
            return _list(draw, item, author)
        case inspect.DictType():
            return draw(st.dictionaries(st.sampled_from(("team", "stage")), st.sampled_from(("red", "blue"))))
        case inspect.LiteralType(values=values):
            return draw(_among(values, author))
        case scalar:
            return draw(_among(author.words.get(author.at, _PLAIN[type(scalar)]), author))


_RARELY: Final = st.sampled_from((False,) * 11 + (True,))
_SOMETIMES: Final = st.sampled_from((False,) * 3 + (True,))


def _among(values: Sequence[Json], author: Author) -> st.SearchStrategy[Json]:
    found: st.SearchStrategy[Json] = st.sampled_from(list(values))
    live = author.live
    return found if isinstance(live, Missing | Mapping | list) else st.just(live) | found


def _list(draw: st.DrawFn, item: inspect.Type, author: Author) -> Json:
    live = author.live if isinstance(author.live, list) else []
    size = draw(st.integers(1 if author.must_descend else 0, 2))
    return [_value(draw, item, author.element(live[n] if n < len(live) else MISSING)) for n in range(size)]

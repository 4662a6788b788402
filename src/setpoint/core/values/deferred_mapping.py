"""A mapping whose values are made when they are first asked for."""

from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from functools import partial
from typing import TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")


class DeferredMapping(Mapping[K, V]):
    """The keys are known from the beginning; each value is made by its function once, and kept."""

    def __init__(self, makers: Mapping[K, Callable[[], V]]) -> None:
        self._makers = makers
        self._made: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        try:
            return self._made[key]
        except KeyError:
            made = self._made[key] = self._makers[key]()
            return made

    def __contains__(self, key: object) -> bool:
        return key in self._makers

    def __iter__(self) -> Iterator[K]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def restricted(values: Mapping[K, V], keys: Collection[K]) -> Mapping[K, V]:
    """The values of these keys alone. What is deferred stays so."""
    return DeferredMapping({key: partial(values.__getitem__, key) for key in values if key in keys})


def joined(first: Mapping[K, V], second: Mapping[K, V]) -> Mapping[K, V]:
    """Both as one; of a key in both, the second has the value. What is deferred in one stays so."""
    if not second or not first:
        return first or second
    # Read through this alone, it may be of mappings that cannot be written to.
    return ChainMap(cast(MutableMapping[K, V], second), cast(MutableMapping[K, V], first))

"""Keyed lists: elements that are told apart by what they hold, not by where they stand."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeGuard

from setpoint.core.paths import Selector, child, scalar_text
from setpoint.core.values import Json, Missing
from setpoint.errors import ManifestInvalid

Key: TypeAlias = tuple[str, ...]


def is_list_of_objects(value: Json | Missing) -> TypeGuard[Sequence[Mapping[str, Json]]]:
    """Whether `value` is a list whose elements can have keys."""
    return isinstance(value, list | tuple) and all(isinstance(element, dict) for element in value)


def key_of(element: Json, names: tuple[str, ...]) -> Key:
    """What tells `element` from its siblings, as text; what has no text form, or is absent, reads as empty."""
    if len(names) == 1 and isinstance(element, dict) and isinstance(only := element.get(names[0]), str):
        return (only,)
    found = [child(element, name) for name in names]
    return tuple([one if isinstance(one, str) else _text(one) for one in found])


def _text(value: Json | Missing) -> str:
    return "" if isinstance(value, Missing) else scalar_text(value) or ""


def selector(names: tuple[str, ...], key: Key) -> Selector:
    """`key` as a step of a path."""
    return Selector(tuple(zip(names, key, strict=True)))


def by_key(elements: Sequence[Mapping[str, Json]], names: tuple[str, ...]) -> dict[Key, Mapping[str, Json]]:
    """The elements under their keys, in order; ManifestInvalid when two share one."""
    found: dict[Key, Mapping[str, Json]] = {}
    for element in elements:
        key = key_of(element, names)
        if key in found:
            twice = selector(names, key)
            raise ManifestInvalid(f"two elements of one list are {twice}: each {'/'.join(names)} may stand once")
        found[key] = element
    return found

"""Values that may have to be awaited: a fixture is written with `def`, or with `async def`."""

from collections.abc import Awaitable
from typing import TypeAlias, TypeVar, cast

T = TypeVar("T")
# What a function of a fixture returns: the value, or a coroutine of it.
MaybeAwaitable: TypeAlias = T | Awaitable[T]


async def resolved(value: MaybeAwaitable[T]) -> T:
    """The value, awaited if it has to be."""
    return await cast(Awaitable[T], value) if isinstance(value, Awaitable) else value

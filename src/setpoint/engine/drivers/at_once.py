"""Work for many items, some of them at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

# Rate limiters bound the requests to each service.
MAX_AT_ONCE: Final = 16


async def for_each(items: Sequence[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Does the work for each item. The first error ends it, and is raised once the rest has stopped."""
    rest = iter(items)

    async def worker() -> None:
        for item in rest:
            await work(item)

    workers = [asyncio.ensure_future(worker()) for _ in range(min(len(items), MAX_AT_ONCE))]
    try:
        await asyncio.gather(*workers)
    finally:
        for one in workers:
            one.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


def levels(items: Iterable[T], needed: Callable[[T], Iterable[T]]) -> Sequence[Sequence[T]]:
    """The items in groups, in their order: what an item needs, and is before it, is in an earlier group."""
    found: dict[T, int] = {}
    for item in items:
        found[item] = 1 + max((found.get(one, -1) for one in needed(item)), default=-1)
    groups: Mapping[int, list[T]] = {number: [] for number in range(1 + max(found.values(), default=-1))}
    for item, number in found.items():
        groups[number].append(item)
    return [*groups.values()]

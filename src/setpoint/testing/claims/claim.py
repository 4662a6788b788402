"""A claim of the lifecycle contract: what it says, and which parts a kind must have for it to make sense."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.testing.harness import ContractHarness
from setpoint.testing.kind_fixture import KindFixture
from setpoint.testing.kind_parts import Part

# A new world in which the claim is tried: a service without an object, an empty store.
OpenHarness: TypeAlias = Callable[[], AbstractAsyncContextManager[ContractHarness]]


@dataclass(frozen=True, slots=True)
class LifecycleClaim:
    """`play` fails when the claim does not hold; its name is the claim. It opens a world, or as many as it needs."""

    name: str
    play: Callable[[OpenHarness], Awaitable[None]]
    parts: frozenset[Part] = frozenset()
    # Whether it opens a world for each await of a step.
    is_long: bool = False

    def fits(self, fixture: type[KindFixture]) -> bool:
        """Whether the kind of that fixture has the parts it needs, as far as the fixture says."""
        return self.parts.isdisjoint(fixture.lacking())


def claim(play: Callable[[ContractHarness], Awaitable[None]], *parts: Part) -> LifecycleClaim:
    """The claim that `play` makes about kinds that have these parts; its name is that of the function."""

    async def in_a_world(open_harness: OpenHarness) -> None:
        async with open_harness() as harness:
            await play(harness)

    return LifecycleClaim(getattr(play, "__name__", "").replace("_", " "), in_a_world, frozenset(parts))

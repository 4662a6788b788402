"""A claim of the lifecycle contract: what it says, and which parts a kind must have for it to make sense."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.engine.kind_fixture import KindFixture, Part
from tests.engine.step_harness import StepHarness


@dataclass(frozen=True, slots=True)
class Claim:
    """`play` fails when the claim does not hold; its name is the claim."""

    play: Callable[[StepHarness], Awaitable[None]]
    dependencies: frozenset[Part]

    @property
    def name(self) -> str:
        """The claim as a sentence."""
        return self.play.__name__.replace("_", " ")

    def fits(self, fixture: type[KindFixture]) -> bool:
        """Whether the kind of that fixture has the parts it needs."""
        return self.dependencies.isdisjoint(fixture.without)


def claim(play: Callable[[StepHarness], Awaitable[None]], *dependencies: Part) -> Claim:
    """The claim that `play` makes about kinds that have these parts."""
    return Claim(play, frozenset(dependencies))

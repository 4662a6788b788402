"""The contract of owners: what holds for each, whatever happened before. Each module of claims is a chapter."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path
from typing import ClassVar, TypeAlias

import pytest

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.testing.owners.owner_fixture import OwnerFixture, OwnerPart
from setpoint.testing.owners.owner_harness import OwnerHarness, owner_harness

# A new world in which a claim is tried: an empty store.
OpenOwnerHarness: TypeAlias = Callable[[], AbstractAsyncContextManager[OwnerHarness]]


@dataclass(frozen=True, slots=True)
class OwnerClaim:
    """`play` fails when the claim does not hold; its name is the claim. It opens a world, or as many as it needs."""

    name: str
    play: Callable[[OpenOwnerHarness], Awaitable[None]]
    parts: frozenset[OwnerPart] = frozenset()
    # Whether it opens a world for each await of a step.
    is_long: bool = False


def owner_claim(play: Callable[[OwnerHarness], Awaitable[None]], *parts: OwnerPart) -> OwnerClaim:
    """The claim that `play` makes about owners that have these parts; its name is that of the function."""

    async def in_a_world(open_harness: OpenOwnerHarness) -> None:
        async with open_harness() as harness:
            await play(harness)

    return OwnerClaim(getattr(play, "__name__", "").replace("_", " "), in_a_world, frozenset(parts))


class OwnerContract:
    """The contract of one owner, as a class of tests: one test for each claim.

        class TestGreeting(OwnerContract):
            fixture = OwnerFixture(owner=GreetingOwner(KindContext()), manifest=…, …)

    No claim is left out in silence: a part that the owner lacks is named by the fixture, with the reason.
    """

    fixture: ClassVar[OwnerFixture]

    def harness(self, fixture: OwnerFixture, folder: Path) -> AbstractAsyncContextManager[OwnerHarness]:
        """A new engine, with a store in memory. `folder` is for files: it is empty, and another one for each world."""
        return owner_harness(fixture)

    @classmethod
    def marks(cls, claim: OwnerClaim) -> Collection[pytest.MarkDecorator]:
        """The marks of the test of a claim: to leave out those that are `is_long` in a quick run, for example."""
        return ()

    @classmethod
    def claims(cls) -> Sequence[OwnerClaim]:
        """What is tried: all claims. A second class, on another store, may try fewer."""
        return _claims()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each claim."""
        if not hasattr(self, "fixture"):
            pytest.fail(f"{type(self).__name__} has no `fixture`: give it the OwnerFixture", pytrace=False)
        if "claim" in metafunc.fixturenames:
            metafunc.parametrize(
                "claim", [pytest.param(one, id=one.name, marks=self.marks(one)) for one in self.claims()]
            )

    def test_owner(self, claim: OwnerClaim, tmp_path: Path) -> None:
        """The claim holds for the owner; one about a part that it lacks is reported as skipped."""
        for part in sorted(claim.parts):
            if part in self.fixture.without:
                pytest.skip(f"{self.fixture} lacks {part}: {self.fixture.without[part]}")
        numbers = count()

        def open_harness() -> AbstractAsyncContextManager[OwnerHarness]:
            folder = tmp_path / str(next(numbers))
            folder.mkdir()
            return self.harness(self.fixture, folder)

        async def play() -> None:
            await claim.play(open_harness)

        asyncio.run(play())

    def test_the_fixture_has_each_part_or_says_why_the_owner_lacks_it(self) -> None:
        """No claim is left out in silence."""
        assert self.fixture.problems() == []


def _claims() -> tuple[OwnerClaim, ...]:
    from setpoint.testing.owners import deleting, interrupted, making, merging

    return (*making.CLAIMS, *merging.CLAIMS, *deleting.CLAIMS, *interrupted.CLAIMS)

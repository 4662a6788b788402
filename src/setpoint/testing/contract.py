"""The lifecycle contract: what holds for every kind, whatever happened before. Each module of claims is a chapter."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar, Final

import pytest

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.testing.claims import (
    deleting,
    failing,
    fields,
    interrupted,
    listing,
    oscillation,
    oscillation_end,
    previews,
    reconciling,
    stored_state,
    upgrading,
    waiting,
)
from setpoint.testing.claims.claim import LifecycleClaim
from setpoint.testing.harness import ContractHarness, contract_harness
from setpoint.testing.kind_fixture import KindFixture
from setpoint.testing.kind_parts import PART_MEMBERS, Part

CHAPTERS: Final = (
    reconciling,
    fields,
    failing,
    waiting,
    stored_state,
    previews,
    oscillation,
    oscillation_end,
    deleting,
    upgrading,
    listing,
    interrupted,
)
CLAIMS: Final[tuple[LifecycleClaim, ...]] = tuple(claim for chapter in CHAPTERS for claim in chapter.CLAIMS)


@dataclass(frozen=True, slots=True)
class LackingPart:
    """A part that a kind lacks, why, and the claims that are left out for it. It is reported as skipped."""

    part: Part
    reason: str
    left_out: int

    @property
    def name(self) -> str:
        """The test id."""
        return f"lacks {self.part}"


class KindContract:
    """The lifecycle contract of one kind, as a class of tests: one test for each claim.

        class TestWidget(KindContract):
            fixture = WidgetFixture

    A fixture that needs something of pytest, such as a server that the session shares, comes from a pytest fixture of
    the class, `new_fixture`, which returns a function without arguments: each call is a new world.
    """

    fixture: ClassVar[type[KindFixture]]

    @pytest.fixture
    def new_fixture(self) -> Callable[[], KindFixture]:
        """Makes a fixture for each world."""
        return self.fixture

    def harness(self, fixture: KindFixture, folder: Path) -> AbstractAsyncContextManager[ContractHarness]:
        """A new engine, with a store in memory. `folder` is for files: it is empty, and another one for each world."""
        return contract_harness(fixture)

    @classmethod
    def marks(cls, claim: LifecycleClaim) -> Collection[pytest.MarkDecorator]:
        """The marks of the test of a claim: to leave out those that are `is_long` in a quick run, for example."""
        return ()

    @classmethod
    def cases(cls) -> Sequence[LifecycleClaim | LackingPart]:
        """What is tried, and what the kind lacks. Parts that the fixture says nothing about are a test of their own."""
        lacking, undeclared = cls.fixture.lacking(), cls.fixture.undeclared()
        fitting = [claim for claim in CLAIMS if claim.parts.isdisjoint({*lacking, *undeclared})]
        left_out = [
            LackingPart(part, why, sum(part in claim.parts for claim in CLAIMS))
            for part, why in sorted(lacking.items())
        ]
        return [*fitting, *left_out]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each claim."""
        if not hasattr(self, "fixture"):
            pytest.fail(f"{type(self).__name__} has no `fixture`: name the KindFixture of the kind", pytrace=False)
        if "claim" in metafunc.fixturenames:
            cases = [
                pytest.param(one, id=one.name, marks=self.marks(one) if isinstance(one, LifecycleClaim) else ())
                for one in self.cases()
            ]
            metafunc.parametrize("claim", cases)

    def test_lifecycle(
        self, claim: LifecycleClaim | LackingPart, new_fixture: Callable[[], KindFixture], tmp_path: Path
    ) -> None:
        """The claim holds for the kind; what it lacks is reported as skipped."""
        if isinstance(claim, LackingPart):
            pytest.skip(f"{claim.reason} (claims left out: {claim.left_out})")
        worlds = 0

        @asynccontextmanager
        async def open_harness() -> AsyncIterator[ContractHarness]:
            nonlocal worlds
            worlds += 1
            folder = tmp_path / str(worlds)
            folder.mkdir()
            async with self.harness(new_fixture(), folder) as harness:
                _skip_what_the_kind_lacks(harness.fixture, claim)
                yield harness

        async def play() -> None:
            await claim.play(open_harness)

        asyncio.run(play())

    def test_the_fixture_has_each_part_or_says_why_the_kind_lacks_it(self) -> None:
        """No claim is left out in silence."""
        name = self.fixture.__name__
        assert hasattr(self.fixture, "field"), f"{name} has no `field`: name a field of the spec, and values of it"
        assert _advice(self.fixture, self.fixture.undeclared(), "neither defines {member!r} nor lists {part}") == []
        assert (
            _advice(self.fixture, self.fixture.contradicted(), "defines {member!r}, and lists {part} all the same")
            == []
        )


def _skip_what_the_kind_lacks(fixture: KindFixture, claim: LifecycleClaim) -> None:
    """The kind itself tells some parts: what it has may not be listed as lacking."""
    wrong = [part for part in fixture.without if part not in PART_MEMBERS and fixture.lacks(part) is None]
    assert wrong == [], (
        f"{type(fixture).__name__} lists {wrong} in `without`, and {fixture.kind.name} has it: remove it"
    )
    for part in sorted(claim.parts):
        if (why := fixture.lacks(part)) is not None:
            pytest.skip(f"{fixture.kind.name} lacks {part}: {why}")


def _advice(fixture: type[KindFixture], parts: Sequence[Part], problem: str) -> list[str]:
    return [
        f"{fixture.__name__} {problem.format(member=PART_MEMBERS[part], part=f'Part.{part.name}')} in `without`: "
        "define it, or say there why the kind lacks it"
        for part in parts
    ]

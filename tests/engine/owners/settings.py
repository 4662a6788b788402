"""Where the contract of owners is played: every owner on the store in memory, and one on SQLite."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from setpoint.testing.owners.owner_fixture import OwnerFixture
from setpoint.testing.owners.owner_harness import OwnerHarness, owner_harness
from tests.engine.owners.owner_fixtures import FIXTURES

Scenario = Callable[[OwnerHarness], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Setting:
    """An owner, and a store."""

    fixture: OwnerFixture
    is_on_sqlite: bool
    folder: Path | None = None

    def __str__(self) -> str:
        return f"{self.fixture} {'on SQLite' if self.is_on_sqlite else 'in memory'}"

    def harness(self) -> AbstractAsyncContextManager[OwnerHarness]:
        """A new world in this setting."""
        assert self.folder is not None
        return owner_harness(self.fixture, self.folder / "state.db" if self.is_on_sqlite else None)

    def play(self, scenario: Scenario) -> None:
        """Plays `scenario` in such a world."""

        async def main() -> None:
            async with self.harness() as harness:
                await scenario(harness)

        asyncio.run(main())


# Owners and stores do not know each other, as the contracts on imports say: SQLite is tried with the first.
SETTINGS = (*(Setting(fixture, is_on_sqlite=False) for fixture in FIXTURES), Setting(FIXTURES[0], is_on_sqlite=True))


def _those(which: Callable[[Setting], bool]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("setting", [*filter(which, SETTINGS)], ids=str, indirect=True)


everywhere = _those(lambda _: True)
# For what takes many steps, and says nothing of stores.
in_memory = _those(lambda setting: not setting.is_on_sqlite)
where_edits_are_reported = _those(lambda setting: setting.fixture.reports_edits)
where_something_is_made_once = _those(lambda setting: bool(setting.fixture.once))

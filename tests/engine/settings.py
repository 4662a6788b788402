"""The settings of the lifecycle contract: every kind on the store in memory, and the gadget on every store."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from setpoint.engine.management import CookieLocation
from tests.engine.gadget_fixture import GadgetFixture, StatelessGadgetFixture, gadget_stand, stateless_gadget_stand
from tests.engine.kind_fixture import KindFixture
from tests.engine.step_harness import StepHarness, harness_for
from tests.kinds.lifecycle_bucket import BucketFixture, bucket_fixture
from tests.kinds.lifecycle_database import DatabaseFixture, database_fixture
from tests.kinds.lifecycle_instance import InstanceFixture, instance_fixture
from tests.kinds.lifecycle_user import UserFixture, user_fixture


class Kept(StrEnum):
    """Where the resource is stored, and where its cookie."""

    IN_MEMORY = "in memory"
    IN_MEMORY_AND_ANNOTATION = "with its cookie in the annotation"
    ON_SQLITE = "on SQLite"
    FOR_EVER = "in a long-running process"


@dataclass(frozen=True, slots=True)
class Setting:
    """A kind with its fixture, and a store."""

    fixture: type[KindFixture]
    open_stand: Callable[[], AbstractAsyncContextManager[KindFixture]]
    kept: Kept = Kept.IN_MEMORY

    def __str__(self) -> str:
        return self.fixture.title if self.kept is Kept.IN_MEMORY else f"{self.fixture.title} {self.kept}"

    @property
    def is_usual(self) -> bool:
        """Whether the resource is kept as most tests keep theirs."""
        return self.kept is Kept.IN_MEMORY

    @asynccontextmanager
    async def harness(self, folder: Path) -> AsyncIterator[StepHarness]:
        """A new engine in this setting; its files are in `folder`."""
        path = folder / "state.db" if self.kept is Kept.ON_SQLITE else None
        async with self.open_stand() as fixture, harness_for(fixture, path) as harness:
            if self.kept is Kept.IN_MEMORY_AND_ANNOTATION:
                harness.cookies = CookieLocation.ANNOTATION
            if self.kept is Kept.FOR_EVER:
                harness.run_continuously()
            yield harness


# Kinds and stores do not know each other, as the contracts on imports say: each kind is tried on the store in memory,
# each way to keep a resource on the gadget, and a kind with references and a Secret where resources rest.
SETTINGS: Final = (
    Setting(GadgetFixture, gadget_stand),
    Setting(StatelessGadgetFixture, stateless_gadget_stand),
    Setting(BucketFixture, bucket_fixture),
    Setting(DatabaseFixture, database_fixture),
    Setting(InstanceFixture, instance_fixture),
    Setting(UserFixture, user_fixture),
    Setting(GadgetFixture, gadget_stand, Kept.IN_MEMORY_AND_ANNOTATION),
    Setting(GadgetFixture, gadget_stand, Kept.ON_SQLITE),
    Setting(GadgetFixture, gadget_stand, Kept.FOR_EVER),
    Setting(StatelessGadgetFixture, stateless_gadget_stand, Kept.FOR_EVER),
    Setting(UserFixture, user_fixture, Kept.FOR_EVER),
)

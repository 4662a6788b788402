"""The settings of the lifecycle contract: every kind on the store in memory, and the gadget on every store."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Final

import pytest

from setpoint.engine.management import CookieLocation
from setpoint.testing import ContractHarness, KindContract, KindFixture, contract_harness
from setpoint.testing.claims.claim import LifecycleClaim
from setpoint.testing.contract import LackingPart
from setpoint.testing.interruptions import Undertaking, begin
from tests.engine.gadget_fixture import GadgetFixture, StatelessGadgetFixture
from tests.kinds.lifecycle_bucket import BucketFixture
from tests.kinds.lifecycle_database import DatabaseFixture
from tests.kinds.lifecycle_instance import InstanceFixture
from tests.kinds.lifecycle_policies import PartialPolicyFixture, WholePolicyFixture
from tests.kinds.lifecycle_user import UserFixture


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
    kept: Kept = Kept.IN_MEMORY

    def __str__(self) -> str:
        title = self.fixture.__name__.removesuffix("Fixture")
        return title if self.kept is Kept.IN_MEMORY else f"{title} {self.kept}"

    @asynccontextmanager
    async def harness(self, folder: Path) -> AsyncIterator[ContractHarness]:
        """A new engine in this setting; its files are in `folder`."""
        path = folder / "state.db" if self.kept is Kept.ON_SQLITE else None
        async with contract_harness(self.fixture(), path) as harness:
            if self.kept is Kept.IN_MEMORY_AND_ANNOTATION:
                harness.cookies = CookieLocation.ANNOTATION
            if self.kept is Kept.FOR_EVER:
                harness.run_continuously()
            yield harness


@asynccontextmanager
async def begun(setting: Setting, undertaking: Undertaking, folder: Path) -> AsyncIterator[ContractHarness]:
    """A new world in which the step that is to be interrupted comes next."""
    folder.mkdir()
    async with setting.harness(folder) as harness:
        await begin(undertaking, harness)
        yield harness


# Kinds and stores do not know each other, as the contracts on imports say: each kind is tried on the store in memory,
# each way to keep a resource on the gadget, and a kind with references and a Secret where resources rest.
SETTINGS: Final = (
    Setting(GadgetFixture),
    Setting(StatelessGadgetFixture),
    Setting(BucketFixture),
    Setting(DatabaseFixture),
    Setting(InstanceFixture),
    Setting(UserFixture),
    Setting(PartialPolicyFixture),
    Setting(WholePolicyFixture),
    Setting(GadgetFixture, Kept.IN_MEMORY_AND_ANNOTATION),
    Setting(GadgetFixture, Kept.ON_SQLITE),
    Setting(GadgetFixture, Kept.FOR_EVER),
    Setting(StatelessGadgetFixture, Kept.FOR_EVER),
    Setting(UserFixture, Kept.FOR_EVER),
)


class SettingContract(KindContract):
    """The lifecycle contract in one of the settings. `test_lifecycle_parts` says what of it each kind lacks."""

    kept: ClassVar[Kept] = Kept.IN_MEMORY

    @asynccontextmanager
    async def harness(self, fixture: KindFixture, folder: Path) -> AsyncIterator[ContractHarness]:
        async with Setting(type(fixture), self.kept).harness(folder) as harness:
            yield harness

    @classmethod
    def marks(cls, claim: LifecycleClaim) -> Collection[pytest.MarkDecorator]:
        is_usual = cls.kept is Kept.IN_MEMORY and not claim.is_long
        return () if is_usual else [pytest.mark.slow]

    @classmethod
    def cases(cls) -> Sequence[LifecycleClaim | LackingPart]:
        return [one for one in super().cases() if isinstance(one, LifecycleClaim)]

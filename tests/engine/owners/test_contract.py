"""The contract of owners holds for each of ours, and for one with all that a child can be; and on SQLite."""

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from setpoint.testing import OwnerClaim, OwnerContract, OwnerFixture, OwnerHarness, owner_harness
from tests.engine.owners.owner_fixtures import KBS, TRUSTEE, WEBSITE


class Contract(OwnerContract):
    """The contract, in which the long claims are slow."""

    @classmethod
    def marks(cls, claim: OwnerClaim) -> Collection[pytest.MarkDecorator]:
        return (pytest.mark.slow,) if claim.is_long else ()


class TestWebsite(Contract):
    fixture = WEBSITE


class TestTrusteeConfig(Contract):
    fixture = TRUSTEE


class TestKbsConfig(Contract):
    fixture = KBS


# Owners and stores do not know each other, as the contracts on imports say: SQLite is tried with one of them.
class TestWebsiteOnSqlite(Contract):
    fixture = WEBSITE

    @classmethod
    def claims(cls) -> Sequence[OwnerClaim]:
        """What other writers do in the middle of a step is no matter of the store's file."""
        return [one for one in super().claims() if not one.name.startswith("every writer keeps")]

    def harness(self, fixture: OwnerFixture, folder: Path) -> AbstractAsyncContextManager[OwnerHarness]:
        return owner_harness(fixture, folder / "state.db")

"""The harness for upgrades finds what was not declared, and lets pass what was."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from setpoint.engine.kind import Absent, AnyKind, Location, Present, Unchanged
from setpoint.testing.claims import upgrading
from setpoint.testing.harness import contract_harness
from setpoint.testing.upgrades import KindUpgrade, play_upgrade
from tests.engine.gadget_fixture import GadgetFixture
from tests.engine.gadgets import Gadget, GadgetKind
from tests.engine.test_previews import ChangedTree, Restless


def _play(new: Any, *writes: str) -> None:
    async def main() -> None:
        fixture = GadgetFixture()
        async with contract_harness(fixture) as harness:
            assert isinstance(fixture.kind, GadgetKind)
            await play_upgrade(harness, KindUpgrade(fixture.kind, new(fixture.kind), writes))

    asyncio.run(main())


def _changed(kind: GadgetKind) -> GadgetKind:
    return replace(kind, tree_type=ChangedTree, revision=2)


def test_what_was_declared_passes() -> None:
    _play(_changed, "spec.mode")


def test_what_was_not_declared_is_named() -> None:
    with pytest.raises(AssertionError, match=r"read-only: writes: \('spec.mode',\)"):
        _play(_changed)


def test_a_mapping_that_changed_without_its_revision_is_named() -> None:
    with pytest.raises(AssertionError, match=r"read-only: masked: \('spec.mode',\)"):
        _play(lambda kind: replace(kind, tree_type=ChangedTree), "spec.mode")


def test_what_was_declared_and_does_not_come_is_named() -> None:
    with pytest.raises(AssertionError, match="read-only: in sync"):
        _play(lambda kind: kind, "spec.mode")


def test_a_kind_that_never_comes_to_rest_is_named() -> None:
    with pytest.raises(AssertionError, match="read-only: unsettled"):
        _play(lambda kind: Restless(kind.service))


@dataclass(slots=True)
class WritesOnObserve(GadgetKind):
    """Writes while it observes."""

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Gadget] | Unchanged:
        self.service.calls.append(("update", location))
        return await GadgetKind.observe(self, location, known)


def test_a_kind_that_writes_while_it_observes_is_named() -> None:
    with pytest.raises(AssertionError, match="it writes while it looks"):
        _play(lambda kind: WritesOnObserve(kind.service))


@dataclass(slots=True)
class NewKind(GadgetKind):
    """With another default than the one before."""

    def former(self) -> Sequence[AnyKind]:
        return [GadgetKind(self.service)]


class NewStand(GadgetFixture):
    """Where its author declares what an upgrade writes."""

    upgrades: ClassVar[dict[int, tuple[str, ...]]] = {1: ("spec.mode",)}

    def __init__(self) -> None:
        super().__init__()
        self.kind = NewKind(self.service, revision=2, tree_type=ChangedTree)


def test_a_kind_that_brings_its_former_self_along_is_tried_on_what_that_made() -> None:
    async def main(fixture: NewStand) -> None:
        async with contract_harness(fixture) as harness:
            await upgrading.whatever_it_was_done_like_before_writes_only_what_is_declared(harness)

    asyncio.run(main(NewStand()))
    silent = NewStand()
    silent.upgrades = {}  # type: ignore[misc] # of this one alone
    with pytest.raises(AssertionError, match=r"spec\.mode"):
        asyncio.run(main(silent))

"""A kind handled otherwise: without its cookie, with one, or as it was before its revision was raised."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from setpoint.engine.kind import AnyKind, Reconciliation
from setpoint.engine.step.preview import PreviewFinding, preview_with_and_without_cookie
from setpoint.errors import UserError
from setpoint.preview import kind_variant, with_kind_variants
from tests.engine.gadgets import GadgetKind, Service
from tests.engine.test_previews import REF, ChangedTree, PreviewHarness


@dataclass(slots=True)
class NewGadgetKind(GadgetKind):
    """A kind with a default that changed in revision 2, and with its former implementation."""

    def former(self) -> Sequence[AnyKind]:
        return [GadgetKind(self.service, self.reconciliation)]


def _new() -> NewGadgetKind:
    return NewGadgetKind(Service(), revision=2, tree_type=ChangedTree)


@pytest.mark.parametrize("way", list(Reconciliation))
def test_a_kind_keeps_a_cookie_or_not_and_the_original_stays_as_it_is(way: Reconciliation) -> None:
    kind = _new()

    other = kind_variant(kind, way.value)

    assert (other.reconciliation, other.revision, kind.reconciliation) == (way, 2, Reconciliation.STATEFUL)


def test_a_kind_is_had_as_it_was() -> None:
    kind = _new()

    assert (kind_variant(kind, "1").revision, kind_variant(kind, "2")) == (1, kind)


def test_an_unknown_variant_is_reported() -> None:
    with pytest.raises(
        UserError, match=r"Gadget is not handled as '3' in any way .*: there is stateful, stateless, 1, 2"
    ):
        kind_variant(_new(), "3")
    with pytest.raises(UserError, match=r"there is stateful, stateless, 1$"):
        kind_variant(GadgetKind(Service()), "2")
    with pytest.raises(UserError, match="no kind 'Widget' can be handled otherwise"):
        with_kind_variants(PreviewHarness().engine, {"Widget": "stateless"})


def test_the_old_and_the_new_implementation_plan_the_same_world() -> None:
    async def scenario() -> list[PreviewFinding]:
        harness = PreviewHarness()
        await harness.settle({"size": 1})
        new = replace(_new(), service=harness.service)
        engine = replace(harness.engine, kinds={(new.group, new.name): new})
        ways: tuple[dict[str, str], ...] = ({}, {"gadget": "1"}, {"gadget": "stateless"})
        return [
            (await preview_with_and_without_cookie(REF, with_kind_variants(engine, words))).finding for words in ways
        ]

    assert asyncio.run(scenario()) == [PreviewFinding.WRITES, PreviewFinding.IN_SYNC, PreviewFinding.WRITES]

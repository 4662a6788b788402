"""A world in which an object of a row has every field that can be declared, and an author who changes one at a time."""

import copy
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from setpoint.catalogue.parts import LOCAL, UNKNOWN
from setpoint.catalogue.rows import KindFacts, facts_of
from setpoint.core.plan import Plan
from setpoint.core.unstructured import GroupKind
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import ImmutableFieldChanged
from setpoint.testing import ContractHarness, Spec, contract_harness
from tests.catalogue_kinds.fixtures import fixture_of
from tests.catalogue_kinds.full_specs import full_spec
from tests.catalogue_kinds.overrides import SPECS
from tests.catalogue_kinds.row_fixture import RowFixture

# Of two fields for one member, or of two places, an author gives one; a statement, and a record, are no plain fields.
LEFT_OUT: Final = ("AlloyDBInstance", "DNSRecordSet", "Folder", "PrivateCACertificateAuthority", "SpannerDatabase")
_CONTAINERS: Final = ("folderRef", "organizationRef", "billingAccountRef")
# So long after a change another one is none in a quarrel.
_A_DAY: Final = 86400


@dataclass
class FullWorld:
    """The object, its author and its service."""

    fixture: RowFixture
    harness: ContractHarness
    spec: Spec

    @property
    def row(self) -> KindFacts:
        return self.fixture.row

    def live(self) -> dict[str, Any]:
        """A copy of the live object."""
        return copy.deepcopy(self.fixture.live() or {})

    async def declare(self, spec: Spec) -> Plan | None:
        """Declares a spec, and returns its plan; None when it is refused, as something in it is fixed."""
        self.harness.clock.seconds += _A_DAY
        await self.harness.apply(spec)
        plan = None
        with suppress(ImmutableFieldChanged):
            plan = await self.harness.base.plan(self.harness.ref)
        outcome = await self.harness.go_on()
        if isinstance(outcome, Stopped) and isinstance(outcome.error, ImmutableFieldChanged):
            return None
        assert isinstance(outcome, Settled), f"{self.row.kind}: {outcome}"
        return plan

    async def rests(self) -> bool:
        """Whether another step finds nothing to do."""
        written = len(self.harness.writes)
        outcome = await self.harness.step()
        return isinstance(outcome, Settled) and outcome.plan.is_empty and len(self.harness.writes) == written


@asynccontextmanager
async def full_world(name: GroupKind) -> AsyncIterator[FullWorld]:
    """A world with an object that has every field."""
    fixture = fixture_of(name)()
    spec = _spec(fixture.row, fixture.minimal)
    async with contract_harness(fixture) as harness:
        world = FullWorld(fixture, harness, spec)
        assert await world.declare(spec) is not None
        yield world


def _spec(row: KindFacts, minimal: Mapping[str, Any]) -> Spec:
    return {name: one for name, one in full_spec(row).items() if name not in _CONTAINERS or name in minimal}


def declared_fields(row: KindFacts, spec: Mapping[str, Any]) -> list[str]:
    """The fields of the spec that an author could change, or take out."""
    fields = (
        (name, facts) for name, facts in row.fields.items() if name in spec and name not in SPECS.get(row.kind, {})
    )
    return [
        name
        for name, facts in fields
        if not (facts.output_only or facts.query or facts.to in ("url", "id", UNKNOWN, LOCAL))
    ]


def tried_kinds(names: Mapping[GroupKind, str]) -> list[GroupKind]:
    """The kinds of which such a world can be made."""
    return [name for name in names if name[1] not in LEFT_OUT and facts_of(name).fields]

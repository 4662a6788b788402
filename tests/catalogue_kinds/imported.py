"""Import of one object of a kind: it is created, its resource is forgotten, and what is there is declared anew."""

import uuid
from dataclasses import replace
from typing import Any

from setpoint.app import dry_run_apply
from setpoint.catalogue.rows import KindFacts
from setpoint.engine.capabilities import ImportPlace, KnownObject
from setpoint.engine.context import EngineContext
from setpoint.engine.drivers.runner import StepRunner
from setpoint.engine.importing.drafts import GivenNames, ReferenceIndex, draft_of
from setpoint.engine.importing.live_lists import find_live_objects
from setpoint.engine.importing.proof import ImportOutcome, ProvenDraft, prove
from setpoint.engine.kind import Location
from setpoint.engine.management import MANAGED_LABELS
from setpoint.engine.state import location_in
from setpoint.engine.step.outcomes import Settled
from setpoint.kinds.gcp.generic.placement import PLACES, parts_at
from setpoint.stores.memory import MemoryStore
from setpoint.testing import KindFixture, contract_harness
from tests.catalogue_kinds.row_fixture import RowFixture
from tests.kinds.lifecycle_google import NAMESPACE, PROJECT


async def import_once(fixture: type[RowFixture]) -> ProvenDraft:
    """The proven draft of the object of a fixture; applying it has written nothing to the service."""
    async with contract_harness(fixture()) as harness:
        await harness.apply(harness.fixture.spec(harness.fixture.field.first))
        outcome = await harness.go_on()
        assert isinstance(outcome, Settled), outcome
        _unmark(harness.fixture)
        engine = _forgotten(harness.engine)
        location = location_in((await harness.resource()).status)
        assert location is not None
        proven = await _imported(fixture.row, location, engine, _parent(harness.fixture))
        if proven.outcome is ImportOutcome.UNCHANGED:
            before = list(harness.writes)
            applied = await engine.store.apply(proven.draft.manifest)
            settled = (await StepRunner(engine).until_done([applied.ref], timeout=60))[applied.ref]
            assert isinstance(settled, Settled), settled
            assert harness.writes == before
        return proven


def _unmark(fixture: KindFixture) -> None:
    """The object is as another tool would have made it: without the labels that setpoint adds."""
    assert isinstance(fixture, RowFixture)
    labels: Any = fixture.live()
    for step in fixture.row.labels.split(".") if fixture.row.labels else ():
        labels = labels.get(step) or {}
    for name in MANAGED_LABELS if fixture.row.labels else ():
        labels.pop(name, None)


def _forgotten(engine: EngineContext) -> EngineContext:
    return replace(engine, store=MemoryStore(engine.clock, lambda: str(uuid.uuid4())))


def _parent(fixture: KindFixture) -> str:
    """The parent that the object tells, where it does."""
    assert isinstance(fixture, RowFixture)
    return str((fixture.live() or {}).get("parent", ""))


async def _imported(row: KindFacts, location: Location, engine: EngineContext, parent: str) -> ProvenDraft:
    name = (row.group, row.kind)
    parts = location.split("/")
    above = [KnownObject((row.group, ""), Location("/".join(parts[:length]))) for length in range(2, len(parts), 2)]
    values = parts_at(row, location)
    place = ImportPlace(PROJECT, [values[one] for one in PLACES if one in values], above, parent)
    found = await find_live_objects([name], place, engine.kinds)
    assert found.unlisted == ()
    live = next(one for one in found.objects if one.location == location)
    draft = draft_of(live, engine.kinds[name], GivenNames(()), NAMESPACE)
    [proven] = await prove([draft], ReferenceIndex(), engine, lambda tree: dry_run_apply(tree, engine))
    return proven

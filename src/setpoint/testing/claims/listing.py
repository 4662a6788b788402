"""Many objects at once: a list, or an observation of many, shows what an observation of one shows."""

from collections.abc import Mapping
from typing import Any

from setpoint.engine.capabilities import ListScope, SupportsBulkObserve, SupportsList
from setpoint.engine.kind import Absent, LiveObservation, Location, Present, observe_decoded
from setpoint.engine.state import StoredState
from setpoint.errors import RemoteError
from setpoint.testing.claims.claim import claim
from setpoint.testing.faults import OUTAGES, CallFault
from setpoint.testing.harness import ContractHarness
from setpoint.testing.kind_parts import Part


async def _settled(harness: ContractHarness) -> tuple[Location, Present[Any]]:
    """Where the object is, and what an observation of it shows."""
    location = StoredState.of(await harness.settle()).location
    assert location is not None
    observed = await observe_decoded(Location(location), harness.fixture.kind)
    assert isinstance(observed, Present)
    return Location(location), observed


# --- Lists -----------------------------------------------------------------------------------------------------------


async def _listed(harness: ContractHarness, location: Location) -> dict[Location, bytes]:
    """Every object of the scope, by its location."""
    kind = harness.fixture.kind
    assert isinstance(kind, SupportsList)
    scope = kind.list_scope_of(location)
    assert scope is not None, f"{location} is in no list scope"
    return {kind.location_of(item, scope): item for item in await _items(kind, scope)}


async def _items(kind: SupportsList, scope: ListScope) -> list[bytes]:
    return [item async for page in kind.pages(scope) for item in page]


async def a_listed_object_is_what_is_observed(harness: ContractHarness) -> None:
    location, observed = await _settled(harness)
    kind = harness.fixture.kind
    assert isinstance(kind, SupportsList)

    items = await _listed(harness, location)
    shown = kind.read_item(items[location], location)

    # None: the item may not show all of it, and the object is observed.
    if shown is not None:
        assert shown.live == observed.live
        assert shown.outputs == observed.outputs
    assert harness.writes == ["create"]


async def an_object_that_is_gone_is_not_listed(harness: ContractHarness) -> None:
    location, _ = await _settled(harness)
    await harness.delete_outside()

    assert location not in await _listed(harness, location)


async def an_outage_of_a_list_raises(harness: ContractHarness) -> None:
    location, _ = await _settled(harness)
    for fault in (*OUTAGES, CallFault.REFUSED):
        await harness.fail_next_calls(fault, ["get"])
        try:
            items = await _listed(harness, location)
        except RemoteError:
            await harness.recover()
        else:
            raise AssertionError(f"{fault.name}: the list came to an end, with {len(items)} objects")


# --- Observations of many --------------------------------------------------------------------------------------------


async def _observed_together(harness: ContractHarness, location: Location) -> Mapping[Location, LiveObservation]:
    kind = harness.fixture.kind
    assert isinstance(kind, SupportsBulkObserve)
    return await kind.observe_many([location])


async def what_is_observed_together_is_what_is_observed_alone(harness: ContractHarness) -> None:
    location, observed = await _settled(harness)

    together = (await _observed_together(harness, location)).get(location)

    # One that is left out is observed by itself.
    if together is not None:
        assert isinstance(together, Present)
        assert (together.live, together.outputs) == (observed.live, observed.outputs)
    await harness.drift()
    drifted = (await _observed_together(harness, location)).get(location)
    assert drifted is None or drifted != together, "it remembers what it observed before"
    assert harness.writes == ["create"]


async def an_object_that_is_gone_is_not_observed_together(harness: ContractHarness) -> None:
    location, _ = await _settled(harness)
    await harness.delete_outside()

    assert isinstance((await _observed_together(harness, location)).get(location, Absent()), Absent)


async def an_outage_of_an_observation_of_many_is_not_absence(harness: ContractHarness) -> None:
    location, _ = await _settled(harness)
    for fault in (*OUTAGES, CallFault.REFUSED):
        await harness.fail_next_calls(fault, ["get"])
        try:
            found = (await _observed_together(harness, location)).get(location)
        except RemoteError:
            found = None
        assert found is None, f"{fault.name}: it observed {found}"
        await harness.recover()


CLAIMS = (
    claim(a_listed_object_is_what_is_observed, Part.LIST),
    claim(an_object_that_is_gone_is_not_listed, Part.LIST),
    claim(an_outage_of_a_list_raises, Part.LIST),
    claim(what_is_observed_together_is_what_is_observed_alone, Part.BULK_OBSERVE),
    claim(an_object_that_is_gone_is_not_observed_together, Part.BULK_OBSERVE),
    claim(an_outage_of_an_observation_of_many_is_not_absence, Part.BULK_OBSERVE),
)

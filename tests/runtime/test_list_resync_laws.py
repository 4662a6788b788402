"""With lists the end state is the same as without, and there are no needless writes. On virtual time."""

from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint.core.plan import PlannedWrite
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.kind import Intent, Present, RemoteOperation
from setpoint.engine.references import is_ready
from setpoint.engine.state import RECONCILE_REQUESTED
from setpoint.runtime.list_resync.lister import MAX_DEFER_SECONDS
from setpoint.testing.faults import CallFault
from simulation.virtual_time import run
from tests.engine.gadgets import Fault, Gadget, Service, gadget_ref
from tests.runtime.list_resync_harness import ListedKind, names_in
from tests.runtime.manager_harness import LONG, ManagerHarness, RecordingKind, new_harness, running

pytestmark = pytest.mark.slow

NAMES = names_in("a", 12)
# A field that is corrected a third time oscillates, and backs off: how often drift is seen would change the end.
_DRIFTS = 2
_QUIET = 900.0 + MAX_DEFER_SECONDS + 5


@dataclass(slots=True)
class NeedlessWrites:
    """Records writes to objects that were in their desired state."""

    found: list[str] = field(default_factory=list)

    def check(self, service: Service, intent: Intent, wanted: JsonObject) -> None:
        spec, before = wanted["spec"], service.objects.get(intent.location, {})
        assert isinstance(spec, dict)
        if all(before.get(name) == value for name, value in spec.items()):
            self.found.append(intent.location)


@dataclass(slots=True)
class UnlistedGadgets(RecordingKind):
    """Gadgets that are observed one by one."""

    needless: NeedlessWrites = field(default_factory=NeedlessWrites)

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[Gadget]
    ) -> RemoteOperation | None:
        self.needless.check(self.service, intent, wanted)
        return await RecordingKind.update(self, intent, wanted, write, before)


@dataclass(slots=True)
class ListedGadgets(ListedKind):
    """Gadgets that are listed where it pays."""

    needless: NeedlessWrites = field(default_factory=NeedlessWrites)

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[Gadget]
    ) -> RemoteOperation | None:
        self.needless.check(self.service, intent, wanted)
        return await ListedKind.update(self, intent, wanted, write, before)


@dataclass(frozen=True, slots=True)
class Event:
    """After so many seconds this happens to that gadget, or to lists."""

    seconds: float
    what: str
    name: str
    number: int


_LIST_FAULTS = ("hide", "show", "refuse", "cut", "slow", "late", "quick", "small pages")
_EVENTS = st.builds(
    Event,
    st.sampled_from([0.0, 1.0, 17.0, 100.0, 299.0, 305.0, 310.0, 450.0]),
    st.sampled_from(("edit", "drift", "touch", "serial", "lose", "ask", "restart", *_LIST_FAULTS)),
    st.sampled_from(NAMES),
    st.integers(2, 6),
)


@dataclass(slots=True)
class Play:
    """A run of one manager, or of several in turn, with these events."""

    kind: ListedGadgets | UnlistedGadgets
    harness: ManagerHarness
    declared: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 1))
    drifts: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)

    async def happen(self, event: Event) -> None:
        name, members = event.name, self.harness.service.objects.get(event.name)
        match event.what:
            case "edit":
                self.declared[name] = event.number
                self.changes[name] += 1
                self.drifts[name] = 0
                await self.harness.apply(name, {"size": event.number})
            case "ask":
                await self.harness.apply(
                    name,
                    {"size": self.declared[name]},
                    annotations={RECONCILE_REQUESTED: str(self.harness.clock.monotonic())},
                )
            case "drift" if members is not None and self.drifts[name] < _DRIFTS:
                self.drifts[name] += 1
                self.changes[name] += 1
                members["size"] = event.number + 10
            case "touch" | "serial" if members is not None:
                members["etag" if event.what == "touch" else "serial"] = str(event.number)
            case "lose" if members is not None:
                self.changes[name] += 1
                del self.harness.service.objects[name]
            case _:
                if isinstance(self.kind, ListedGadgets) and event.what in _LIST_FAULTS:
                    self._happen_to_lists(event, self.kind)

    def _happen_to_lists(self, event: Event, kind: ListedGadgets) -> None:
        async def take_long() -> None:
            await self.harness.clock.sleep(event.number * 15)

        if event.what in ("refuse", "cut"):
            fault = CallFault.REFUSED if event.what == "refuse" else CallFault.CUT
            kind.service.faults.append(Fault(fault, ["list"], event.number))
        elif event.what in ("hide", "show"):
            kind.hidden = {*kind.hidden, event.name} if event.what == "hide" else set()
        elif event.what == "small pages":
            kind.size = event.number
        else:
            kind.before_page = take_long if event.what == "slow" else None
            kind.after_page = take_long if event.what == "late" else None


def _played(kind: ListedGadgets | UnlistedGadgets, events: Sequence[Event]) -> Play:
    async def main() -> Play:
        play = Play(kind, new_harness(kind=kind))
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(running(play.harness))
            for name in NAMES:
                await play.harness.apply(name)
            await play.harness.settled(*NAMES)
            for event in events:
                await play.harness.clock.sleep(event.seconds)
                if event.what == "restart":
                    await stack.aclose()
                    play.harness = new_harness(play.harness.store, kind=kind)
                    await stack.enter_async_context(running(play.harness))
                await play.happen(event)
            await play.harness.clock.sleep(_QUIET)
            assert play.harness.clock.monotonic() < LONG
        return play

    return run(main())


def _end(play: Play) -> dict[str, tuple[Json, Json]]:
    """Size and serial of each object, as it is."""
    objects = play.harness.service.objects
    return {name: (objects[name]["size"], objects[name].get("serial", "1")) for name in sorted(objects)}


def _sizes(found: dict[str, tuple[Json, Json]]) -> dict[str, Json]:
    return {name: size for name, (size, _) in found.items()}


def _reported(play: Play) -> dict[str, tuple[Json, Json]]:
    """Size and serial of each that is ready, as its author and its status have them."""

    async def read() -> dict[str, tuple[Json, Json]]:
        found = {name: await play.harness.store.get(gadget_ref(name)) for name in NAMES}
        return {
            name: (one.spec["size"], one.status["serial"])
            for name, one in found.items()
            if one is not None and is_ready(one)
        }

    return run(read())


@settings(max_examples=40)
@given(st.lists(_EVENTS, max_size=14))
def test_with_lists_the_end_state_is_the_same_as_without(events: Sequence[Event]) -> None:
    without, with_lists = _played(UnlistedGadgets(Service()), events), _played(ListedGadgets(Service()), events)

    assert _sizes(_end(with_lists)) == _sizes(_end(without))
    # A serial is lost when its object is written, and drift may be corrected before it changes or after.
    assert _end(with_lists) == _reported(with_lists)


@settings(max_examples=40)
@given(st.lists(_EVENTS, max_size=14))
def test_lists_cause_no_needless_writes(events: Sequence[Event]) -> None:
    play = _played(ListedGadgets(Service()), events)

    writes = Counter(name for verb, name in play.harness.service.calls if verb in ("create", "update"))
    assert play.kind.needless.found == []
    assert all(writes[name] <= 1 + play.changes[name] for name in NAMES)

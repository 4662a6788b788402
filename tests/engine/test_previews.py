"""Both previews of a resource: with its cookie, and with a comparison of everything."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Annotated, Any

import pytest
from msgspec import UNSET, UnsetType

from setpoint.core.decide import Cookie, Decision
from setpoint.core.schema.shape import Default
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import Absent, Location, Present, Reconciliation, Unchanged
from setpoint.engine.resource import Resource
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.preview import (
    PreviewFinding,
    PreviewResult,
    current_digests,
    preview_with_and_without_cookie,
    with_cookie,
)
from setpoint.engine.step.reconcile import step
from setpoint.stores.memory import MemoryStore
from setpoint.testing.faults import CallFault
from tests.engine.clock import FakeClock
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import Gadget, GadgetKind, GadgetSpec, GadgetTree, Service, gadget_ref

REF = gadget_ref("g")
OBSERVE = {"setpoint.dev/management": "observe"}


class ChangedSpec(GadgetSpec):
    """The copy of a spec in which a default was changed."""

    mode: Annotated[str | UnsetType, Default("manual")] = UNSET


class ChangedTree(GadgetTree):
    spec: ChangedSpec


@dataclass(slots=True)
class PreviewHarness:
    """A store, a service, and the kind between the two."""

    service: Service = field(default_factory=Service)
    kind: GadgetKind = field(init=False)
    store: MemoryStore = field(init=False)

    def __post_init__(self) -> None:
        numbers = count()
        self.kind = GadgetKind(self.service)
        self.store = MemoryStore(FakeClock(), lambda: f"uid-{next(numbers)}")

    @property
    def engine(self) -> EngineContext:
        return EngineContext(self.store, FakeClock(), {(self.kind.group, self.kind.name): self.kind})

    async def settle(self, spec: Mapping[str, Any], **metadata: Any) -> None:
        await self.store.apply(gadget("g", dict(spec), **metadata))
        assert isinstance(await step(REF, self.engine), Settled)

    async def preview(self) -> PreviewResult:
        """Both previews; nothing is written meanwhile."""
        before, calls = await self.store.list(), [call for call in self.service.calls if call[0] != "get"]
        found = await preview_with_and_without_cookie(REF, self.engine)
        assert await self.store.list() == before
        assert [call for call in self.service.calls if call[0] != "get"] == calls
        return found

    async def resource(self) -> Resource:
        found = await self.store.get(REF)
        assert found is not None
        return found

    async def remember(self, cookie: Cookie | None, body: str | None = None) -> None:
        """From here on this is the cookie on record."""
        resource = await self.resource()
        await self.store.update_status(resource, with_cookie(resource, cookie, body).status)

    async def forge(self) -> None:
        """A cookie that vouches for what is there, whatever that is."""
        await self.remember((await current_digests(await self.resource(), self.engine)).cookie)


def play(scenario: Callable[[PreviewHarness], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(PreviewHarness())

    asyncio.run(main())


def test_a_settled_resource_is_in_sync() -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await harness.settle({"size": 1})

        found = await harness.preview()

        assert (found.finding, found.fields, found.writes_nothing) == (PreviewFinding.IN_SYNC, (), True)
        assert found.plan is not None
        assert found.plan.decision is Decision.IN_SYNC

    play(scenario)


def test_what_drifted_is_written_and_named() -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await harness.settle({"size": 1})
        harness.service.objects["g"]["size"] = 9

        found = await harness.preview()

        assert (found.finding, found.fields, found.writes_nothing) == (PreviewFinding.WRITES, ("spec.size",), False)

    play(scenario)


def test_a_cookie_that_is_forged_hides_nothing() -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await harness.settle({"size": 1})
        harness.service.objects["g"] |= {"size": 9, "note": "theirs"}
        await harness.forge()

        found = await harness.preview()

        assert (found.finding, found.fields) == (PreviewFinding.MASKED, ("spec.size", "spec.note"))
        assert found.plan is not None
        assert found.plan.decision is Decision.IN_SYNC
        assert found.to_data()["withoutCookie"] != found.to_data()["plan"]

    play(scenario)


def test_the_bytes_of_the_last_time_hide_nothing_either() -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await harness.settle({"size": 1})
        harness.service.objects["g"]["size"] = 9
        seen = await current_digests(await harness.resource(), harness.engine)
        await harness.remember(seen.cookie, seen.body)

        assert (await harness.preview()).finding is PreviewFinding.MASKED

    play(scenario)


@pytest.mark.parametrize("revision", [1, 2])
@pytest.mark.parametrize("is_known", [True, False], ids=["cookie", "no cookie"])
def test_a_default_that_was_changed_is_found_with_and_without_a_cookie(revision: int, is_known: bool) -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await harness.settle({"size": 1})
        harness.kind = replace(harness.kind, tree_type=ChangedTree, revision=revision)
        if not is_known:
            await harness.remember(None)

        found = await harness.preview()

        # Without a raised revision, the cookie hides it.
        expected = PreviewFinding.MASKED if is_known and revision == 1 else PreviewFinding.WRITES
        assert (found.finding, found.fields) == (expected, ("spec.mode",))

    play(scenario)


def test_a_needlessly_raised_revision_costs_one_comparison() -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await harness.settle({"size": 1})
        harness.kind = replace(harness.kind, revision=2)

        first = await harness.preview()
        await step(REF, harness.engine)
        second = await harness.preview()

        assert (first.finding, second.finding) == (PreviewFinding.ONE_TIME, PreviewFinding.IN_SYNC)
        assert first.writes_nothing

    play(scenario)


@dataclass(slots=True)
class Restless(GadgetKind):
    """A kind with a live object that reads differently each time."""

    observations: "count[int]" = field(default_factory=count)

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Gadget] | Unchanged:
        found = await GadgetKind.observe(self, location)
        assert isinstance(found, Present)
        return replace(
            found, body=None, live=Gadget(size=found.live.size, mode="auto", parent=str(next(self.observations)))
        )

    def view(self, live: Gadget) -> Any:
        return GadgetKind.view(self, Gadget(size=live.size, mode=live.mode))


def test_a_kind_that_never_settles_is_reported() -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await harness.settle({"size": 1})
        harness.kind = Restless(harness.service)

        found = await harness.preview()

        assert (found.finding, found.fields) == (PreviewFinding.UNSETTLED, ())

    play(scenario)


def test_a_kind_without_a_cookie_compares_and_is_in_sync() -> None:
    async def scenario(harness: PreviewHarness) -> None:
        harness.kind = replace(harness.kind, reconciliation=Reconciliation.STATELESS)
        await harness.settle({"size": 1})
        calm = await harness.preview()
        harness.service.objects["g"]["size"] = 9

        assert (calm.finding, (await harness.preview()).finding) == (PreviewFinding.IN_SYNC, PreviewFinding.WRITES)

    play(scenario)


def test_an_observed_resource_is_held() -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await harness.settle({"size": 1})
        await harness.settle({"size": 2}, annotations=OBSERVE)

        found = await harness.preview()

        assert (found.finding, found.fields, found.writes_nothing) == (PreviewFinding.HELD, ("spec.size",), True)

    play(scenario)


def test_what_the_service_did_not_keep_is_held_until_something_moves() -> None:
    async def scenario(harness: PreviewHarness) -> None:
        harness.service.rewrites["size"] = 7
        await harness.store.apply(gadget("g", {"size": 1}))
        for _ in range(3):
            await step(REF, harness.engine)
        stuck = await harness.preview()
        await harness.store.apply(gadget("g", {"size": 2}))

        assert (stuck.finding, stuck.writes_nothing) == (PreviewFinding.HELD, False)
        assert (await harness.preview()).finding is PreviewFinding.WRITES

    play(scenario)


def test_a_resource_that_is_being_deleted_is_reported() -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await harness.settle({"size": 1})
        await harness.store.delete(REF)
        going = await harness.preview()
        del harness.service.objects["g"]

        assert (going.finding, (await harness.preview()).finding) == (PreviewFinding.WRITES, PreviewFinding.IN_SYNC)

    play(scenario)


def test_what_waits_says_for_what() -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await harness.store.apply(gadget("g", {"size": 1, "parentRef": "p"}))

        found = await harness.preview()

        assert (found.finding, found.trouble) == (PreviewFinding.WAITING, "reference Gadget default/p is not found")
        assert "plan" not in found.to_data()

    play(scenario)


def test_a_resource_that_cannot_be_observed_has_failed() -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await harness.settle({"size": 1})
        harness.service.faults.append(_refused())

        found = await harness.preview()

        assert (found.finding, found.trouble) == (PreviewFinding.FAILED, "get g: 403")

    play(scenario)


def _refused() -> Any:
    from tests.engine.gadgets import Fault

    return Fault(CallFault.REFUSED, ("get",), 10)


@dataclass(slots=True)
class Broken(GadgetKind):
    """A kind with a mistake in it."""

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Gadget] | Unchanged:
        raise KeyError("hunter2")


def test_a_bug_is_reported_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await harness.settle({"size": 1})
        harness.kind = Broken(harness.service)

        found = await harness.preview()

        message = "KeyError in the preview of Gadget default/g: a bug of ours; the log has its traceback"
        assert (found.finding, found.trouble) == (PreviewFinding.FAILED, message)

    play(scenario)
    assert "preview broke" in caplog.text


def test_what_a_full_comparison_is_refused_for_is_masked() -> None:
    async def scenario(harness: PreviewHarness) -> None:
        await harness.settle({"zone": "a"})
        harness.service.objects["g"]["zone"] = "b"
        await harness.forge()

        found = await harness.preview()

        assert found.finding is PreviewFinding.MASKED
        assert found.trouble.startswith('spec.zone cannot change from "b" to "a"')
        assert found.to_data()["withoutCookieError"] == found.trouble

    play(scenario)

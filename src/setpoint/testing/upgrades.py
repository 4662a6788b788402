"""An upgrade: settled with the old implementation, previewed with the new one, then reconciled by it."""

from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from typing import Protocol

from setpoint.clients.http import intercepted_by
from setpoint.clients.write_guard import BlockedWrites, WriteGuard, process_guarded_by
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.capabilities import SupportsWriteGuard
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind, Reconciliation
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Settled, StepOutcome
from setpoint.engine.step.preview import PreviewFinding, PreviewResult, preview_with_and_without_cookie, with_cookie
from setpoint.replay.snapshot import take_snapshot
from setpoint.testing.harness import ContractHarness
from setpoint.testing.kind_parts import Spec


class UpgradedResource(Protocol):
    """A resource, and the implementation that reconciles it now."""

    @property
    def ref(self) -> ResourceRef:
        """The resource."""

    @property
    def engine(self) -> EngineContext:
        """The world of this implementation."""

    @property
    def writes(self) -> list[str]:
        """All that was written so far to what the resource stands for."""

    async def go_on(self) -> StepOutcome:
        """Steps until there is nothing to wait for."""

    async def step(self) -> StepOutcome:
        """One step."""


@dataclass(frozen=True, slots=True)
class KindUpgrade:
    """From one implementation to another. `writes` are the fields that the author of the new one says it sets."""

    old: AnyKind
    new: AnyKind
    writes: tuple[str, ...] = ()


def revised(kind: AnyKind) -> AnyKind:
    """The kind with its revision raised."""
    other = copy(kind)
    other.revision += 1
    return other


def handled(kind: AnyKind, way: Reconciliation) -> AnyKind:
    """The kind with a cookie, or without."""
    other = copy(kind)
    other.reconciliation = way
    return other


async def play_upgrade(
    harness: ContractHarness, upgrade: KindUpgrade, spec: Spec | None = None, *, forgets: bool = False
) -> None:
    """Nothing is written by the new implementation but what was declared, and then it is at rest.

    `forgets`: the cookie of the old one is lost on the way.
    """
    harness.kind = upgrade.old
    await harness.settle(spec)
    if forgets:
        await forget_cookie(harness)
    manage_with(harness, upgrade.new)
    await take_over(harness, upgrade.writes)


def manage_with(harness: ContractHarness, kind: AnyKind) -> None:
    """From here on this is the implementation."""
    harness.kind = kind
    if harness.idle_cache is not None:
        # Another implementation is another process: it remembers nothing.
        harness.run_continuously()


async def forget_cookie(ground: UpgradedResource) -> None:
    """The cookie is lost."""
    store = ground.engine.store
    resource = await store.get(ground.ref)
    assert resource is not None
    await store.update_status(resource, with_cookie(resource, None).status)


async def take_over(ground: UpgradedResource, writes: tuple[str, ...] = ()) -> None:
    """The implementation writes nothing but these fields to what another one made, and then it is at rest.

    It says so beforehand, in a world in which nothing can be written.
    """
    preview = await read_only(ground)
    expected = (PreviewFinding.WRITES,) if writes else (PreviewFinding.IN_SYNC, PreviewFinding.ONE_TIME)
    assert preview.finding in expected, f"read-only: {preview.finding.value}: {preview.fields} {preview.trouble}"
    assert preview.fields == writes, f"read-only: {preview.fields} would be written, {writes} is declared"
    await _for_real(ground, writes)
    again = await read_only(ground)
    assert again.finding is PreviewFinding.IN_SYNC, f"afterwards: {again.finding.value}: {again.fields} {again.trouble}"


async def read_only(ground: UpgradedResource) -> PreviewResult:
    """What the implementation would do, in a world in which nothing can be written; and nothing was tried."""
    blocked_writes, before, engine = BlockedWrites(), len(ground.writes), ground.engine
    snapshot = await take_snapshot(engine.store, blocked_writes, is_whole=False)
    guard = process_guarded_by(blocked_writes) if _uses_our_clients(ground) else nullcontext()
    with guard, intercepted_by(WriteGuard("anywhere", blocked_writes, is_cluster=True)):
        found = await preview_with_and_without_cookie(ground.ref, replace(engine, store=snapshot))
    assert blocked_writes.writes == [], f"it writes while it looks: {[str(one) for one in blocked_writes.writes]}"
    assert ground.writes[before:] == [], f"it writes while it looks: {ground.writes[before:]}"
    return found


def _uses_our_clients(ground: UpgradedResource) -> bool:
    """Whether nothing may be opened but by our clients; one of the author's opens its connections itself."""
    kind = ground.engine.kinds.get(ground.ref.group_kind)
    return kind is None or (isinstance(kind, SupportsWriteGuard) and kind.writes_through_clients)


async def _for_real(ground: UpgradedResource, writes: tuple[str, ...]) -> None:
    store, before = ground.engine.store, len(ground.writes)
    outcome = await ground.go_on()
    assert isinstance(outcome, Settled), outcome
    assert bool(ground.writes[before:]) == bool(writes), f"for real: {ground.writes[before:]}"
    # A write that takes several steps is not in the plan of the last one.
    done = {str(change.path) for change in outcome.plan.changes}
    assert done <= set(writes), f"for real: {sorted(done)} was written, {writes} is declared"
    before, rested = len(ground.writes), (await store.list()).resources
    await ground.step()
    assert ground.writes[before:] == [], f"the second pass writes: {ground.writes[before:]}"
    assert (await store.list()).resources == rested, "the second pass writes to the store"

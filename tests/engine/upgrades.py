"""An upgrade of a kind: made with the old implementation, looked at with the new one, then kept by it for real."""

from copy import copy
from dataclasses import dataclass, replace

from setpoint.clients.http import tapped_by
from setpoint.clients.read_only import Blocks, ReadOnly
from setpoint.clients.seal import sealed_by
from setpoint.engine.kind import AnyKind, Reconciliation
from setpoint.engine.previews import Finding, Previewed, preview_both_ways, with_cookie
from setpoint.engine.scene import Settled
from setpoint.worlds.snapshot import snapshot_of
from tests.engine.bench import Bench
from tests.engine.stand import Spec


@dataclass(frozen=True, slots=True)
class Upgrade:
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


async def play_upgrade(bench: Bench, upgrade: Upgrade, spec: Spec | None = None, *, forgets: bool = False) -> None:
    """Nothing is written by the new implementation but what was declared, and then it is at rest.

    `forgets`: the cookie of the old one is lost on the way.
    """
    bench.kind = upgrade.old
    await bench.settle(spec)
    if forgets:
        resource = await bench.resource()
        await bench.store.update_status(resource, with_cookie(resource, None).status)
    bench.kind = upgrade.new
    if bench.rests is not None:
        # Another implementation is another process: it remembers nothing.
        bench.go_on_for_ever()

    looked = await read_only(bench)
    assert looked.finding in _expected(upgrade), f"read-only: {looked.finding.value}: {looked.fields} {looked.trouble}"
    assert looked.fields == upgrade.writes, f"read-only: {looked.fields} would be written, {upgrade.writes} is declared"
    await _for_real(bench, upgrade)
    again = await read_only(bench)
    assert again.finding is Finding.IN_SYNC, f"afterwards: {again.finding.value}: {again.fields} {again.trouble}"


async def read_only(bench: Bench) -> Previewed:
    """What the kind would do, in a world in which nothing can be written; and nothing was tried."""
    blocks, before = Blocks(), len(bench.stand.writes)
    snapshot = await snapshot_of(bench.store, blocks, is_whole=True)
    with sealed_by(blocks), tapped_by(ReadOnly(bench.stand.title, blocks)):
        found = await preview_both_ways(bench.stand.ref, replace(bench.world, store=snapshot))
    assert blocks.writes == [], f"it writes while it looks: {blocks.writes}"
    assert bench.stand.writes[before:] == [], "it writes while it looks"
    return found


def _expected(upgrade: Upgrade) -> tuple[Finding, ...]:
    return (Finding.WRITES,) if upgrade.writes else (Finding.IN_SYNC, Finding.ONE_TIME)


async def _for_real(bench: Bench, upgrade: Upgrade) -> None:
    before = len(bench.stand.writes)
    outcome = await bench.go_on()
    assert isinstance(outcome, Settled), outcome
    assert bool(bench.stand.writes[before:]) == bool(upgrade.writes), f"for real: {bench.stand.writes[before:]}"
    before, rested = len(bench.stand.writes), await bench.store.list()
    await bench.step()
    assert bench.stand.writes[before:] == [], "the second pass writes to the service"
    assert await bench.store.list() == rested, "the second pass writes to the store"

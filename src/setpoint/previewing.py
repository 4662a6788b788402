"""Worlds that are only looked at: the one that is there, and those that were recorded."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from setpoint import __version__
from setpoint.app import ELSEWHERE, STORE, Access, Settings, Wiring, open_all, read_only
from setpoint.clients.http import Tap, tapped_by
from setpoint.clients.read_only import Blocks
from setpoint.clients.seal import sealed_by
from setpoint.core.canonical import same
from setpoint.core.values import Json
from setpoint.engine.previews import Previewed
from setpoint.engine.resource import Revision
from setpoint.engine.scene import World
from setpoint.errors import Bug
from setpoint.worlds.environments import RecordedEnvironment, WatchedEnvironment
from setpoint.worlds.families import generations, renamed, replaced, with_families_veiled
from setpoint.worlds.files import Header, RecordedWorld, packed, unpacked
from setpoint.worlds.recording import in_terms_of_the_veil, standings, veiled
from setpoint.worlds.snapshot import Snapshot, snapshot_of
from setpoint.worlds.stopped_clock import StoppedClock
from setpoint.worlds.survey import Survey, looked_after, survey
from setpoint.worlds.tape import Player, Recorder, Tape
from setpoint.worlds.veil import Veil

Heard = Callable[[Previewed], None]


@dataclass(frozen=True, slots=True)
class Preview:
    """A world as of one moment, in which nothing can be written, and what tried to."""

    world: World
    snapshot: Snapshot
    blocks: Blocks
    tape: Tape
    # The cluster of those who name none, once somebody asked.
    cluster: Callable[[], str] = str

    async def survey(self, heard: Heard) -> Survey:
        """What everything comes to, both ways."""
        found = await survey(await looked_after(self.world), self.world, self.blocks, heard)
        return replace(found, missed=tuple(sorted(map(str, self.tape.missed))))


@asynccontextmanager
async def open_preview(settings: Settings, tape: Tape | None = None) -> AsyncIterator[Preview]:
    """The world as it is now: whatever would write to a cloud, a cluster or the store is stopped.

    Each question is asked once, and its answer kept on `tape`: both looks see the same.
    """
    blocks, tape = Blocks(), Tape() if tape is None else tape
    settings = replace(settings, clock=StoppedClock(settings.clock.now()))

    def tap(way: str) -> Tap:
        # The store is asked once as well, by the snapshot.
        return read_only(way, blocks, None if way == STORE else Recorder(way, tape))

    with sealed_by(blocks), tapped_by(read_only(ELSEWHERE, blocks, Recorder(ELSEWHERE, tape))):
        watched = WatchedEnvironment(settings.environment, tape.environment)
        async with open_all(settings, Access.READ, Wiring(tap, environment=watched)) as opened:
            snapshot = await snapshot_of(opened.world.store, blocks, is_whole=not opened.shared)
            yield Preview(replace(opened.world, store=snapshot), snapshot, blocks, tape, opened.cluster)


@asynccontextmanager
async def open_recorded(settings: Settings, recorded: RecordedWorld) -> AsyncIterator[Preview]:
    """A world that was recorded, as of then. Nobody is asked: what is not on record is NotRecorded."""
    blocks, header, tape = Blocks(), recorded.header, Tape(recorded.tape.replies)
    settings = replace(settings, clock=StoppedClock(header.at))
    snapshot = _snapshot(recorded, blocks)

    def tap(way: str) -> Tap:
        return read_only(way, blocks, Player(way, tape))

    wiring = Wiring(tap, snapshot, header.cluster, RecordedEnvironment(header.environment))
    with sealed_by(blocks), tapped_by(tap(ELSEWHERE)):
        async with open_all(settings, Access.READ, wiring) as opened:
            yield Preview(opened.world, snapshot, blocks, tape)


@dataclass(frozen=True, slots=True)
class Recording:
    """A world to be kept, as bytes; how much there is of it, and what everything comes to."""

    world: bytes
    resources: int
    answers: int
    survey: Survey


async def record(settings: Settings, heard: Heard) -> Recording:
    """The world as it is now, to be kept. A look at what is kept says the same, or nothing is."""
    veil = Veil()
    tape = Tape(veil=veil)
    async with open_preview(settings, tape) as seen:
        refs = await looked_after(seen.world)
        found = await seen.survey(heard)
        before, made = await standings(refs, seen.world), await generations(refs, seen.world)
        recorded = veiled(_header(settings, seen), seen.snapshot, tape, veil)
    async with open_recorded(settings, recorded) as again:
        otherwise = await generations(refs, again.world)
        recorded = with_families_veiled(recorded, made, otherwise)
    async with open_recorded(settings, recorded) as again:
        recorded = in_terms_of_the_veil(recorded, before, await standings(refs, again.world))
    kept = packed(recorded)
    async with open_recorded(settings, unpacked(kept, "what was kept")) as again:
        said = await again.survey(lambda _: None)
    texts = renamed(made, otherwise)
    require_same(found, said, lambda value: replaced(veil.over(value), texts))
    return Recording(kept, len(recorded.resources), len(tape.replies), said)


def require_same(found: Survey, said: Survey, hidden: Callable[[Json], Json]) -> None:
    """Bug unless what is kept gives the report of the world itself, apart from what nobody may see."""
    pairs = zip(found.found, said.found, strict=True)
    others = [str(one.ref) for one, other in pairs if not same(hidden(found.data_of(one)), said.data_of(other))]
    if others:
        told = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        raise Bug(f"{told}: looks different when it is played back, so that nothing was kept: try again, or report it")


def _header(settings: Settings, seen: Preview) -> Header:
    snapshot, sort = seen.snapshot, settings.store.partition(":")[0]
    return Header(
        __version__,
        seen.world.clock.now(),
        sort,
        snapshot.revision,
        snapshot.collects,
        snapshot.is_whole,
        seen.cluster(),
        dict(seen.tape.environment),
    )


def _snapshot(recorded: RecordedWorld, blocks: Blocks) -> Snapshot:
    header = recorded.header
    return Snapshot(
        {one.ref: one for one in recorded.resources},
        Revision(header.revision),
        blocks,
        header.collects,
        header.whole,
        set(recorded.absent),
        set(recorded.besides),
    )

"""Worlds that are only looked at: the one that is there, and those that were recorded."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from setpoint import __version__
from setpoint.app import GOOGLE, STORE, Access, Settings, Wiring, open_all
from setpoint.clients.http import Tap, tapped_by
from setpoint.clients.read_only import Blocks, ReadOnly
from setpoint.core.canonical import same
from setpoint.engine.previews import Previewed
from setpoint.engine.resource import Revision
from setpoint.engine.scene import World
from setpoint.errors import Bug
from setpoint.worlds.files import Header, RecordedWorld, packed, unpacked
from setpoint.worlds.recording import in_terms_of_the_veil, standings, veiled
from setpoint.worlds.snapshot import Snapshot, snapshot_of
from setpoint.worlds.stopped_clock import StoppedClock
from setpoint.worlds.survey import Survey, looked_after, survey
from setpoint.worlds.tape import Player, Recorder, Tape
from setpoint.worlds.veil import Veil

# Clients that nobody knows of: a plugin's own.
_ELSEWHERE: Final = "elsewhere"

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
async def open_guarded(settings: Settings, blocks: Blocks) -> AsyncIterator[World]:
    """The world as it is, to look at: whatever would write to a cloud or a cluster is stopped."""
    with tapped_by(ReadOnly(_ELSEWHERE, blocks)):
        async with open_all(settings, Access.READ, Wiring(lambda way: _read_only(way, blocks))) as opened:
            yield opened.world


@asynccontextmanager
async def open_preview(settings: Settings, tape: Tape | None = None) -> AsyncIterator[Preview]:
    """The world as it is now: whatever would write to a cloud, a cluster or the store is stopped.

    Each question is asked once, and its answer kept on `tape`: both looks see the same.
    """
    blocks, tape = Blocks(), Tape() if tape is None else tape
    settings = replace(settings, clock=StoppedClock(settings.clock.now()))

    def tap(way: str) -> Tap:
        # The store is asked once as well, by the snapshot.
        return _read_only(way, blocks, None if way == STORE else Recorder(way, tape))

    with tapped_by(_read_only(_ELSEWHERE, blocks, Recorder(_ELSEWHERE, tape))):
        async with open_all(settings, Access.READ, Wiring(tap)) as opened:
            snapshot = await snapshot_of(opened.world.store, blocks, is_whole=not opened.shared)
            yield Preview(replace(opened.world, store=snapshot), snapshot, blocks, tape, opened.cluster)


@asynccontextmanager
async def open_recorded(settings: Settings, recorded: RecordedWorld) -> AsyncIterator[Preview]:
    """A world that was recorded, as of then. Nobody is asked: what is not on record is NotRecorded."""
    blocks, header, tape = Blocks(), recorded.header, Tape(recorded.tape.replies)
    settings = replace(settings, clock=StoppedClock(header.at))
    snapshot = _snapshot(recorded, blocks)

    def tap(way: str) -> Tap:
        return _read_only(way, blocks, Player(way, tape))

    with tapped_by(tap(_ELSEWHERE)):
        async with open_all(settings, Access.READ, Wiring(tap, snapshot, header.cluster)) as opened:
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
        before = await standings(refs, seen.world)
        recorded = veiled(_header(settings, seen), seen.snapshot, tape, veil)
    async with open_recorded(settings, recorded) as again:
        recorded = in_terms_of_the_veil(recorded, before, await standings(refs, again.world))
    kept = packed(recorded)
    async with open_recorded(settings, unpacked(kept, "what was kept")) as again:
        said = await again.survey(lambda _: None)
    _require_same(found, said, veil)
    return Recording(kept, len(recorded.resources), len(tape.replies), said)


def _require_same(found: Survey, said: Survey, veil: Veil) -> None:
    """Bug unless what is kept gives the report of the world itself, apart from what nobody may see."""
    pairs = zip(found.found, said.found, strict=True)
    others = [str(one.ref) for one, other in pairs if not same(veil.over(one.to_data()), other.to_data())]
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


def _read_only(way: str, blocks: Blocks, behind: Tap | None = None) -> ReadOnly:
    return ReadOnly(way, blocks, is_cluster=way not in (GOOGLE, _ELSEWHERE), behind=behind)

"""Opens the engine for previews: on live services or on a recorded world, where nothing can be written.

Kinds can be previewed in other variants, and a world can be recorded.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, replace

from setpoint import __version__
from setpoint.app import OTHER_CLIENTS, STORE, AppSettings, ClientWiring, StoreAccess, open_app, read_only
from setpoint.clients.http import HttpInterceptor, intercepted_by
from setpoint.clients.write_guard import BlockedWrites, process_guarded_by
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json
from setpoint.engine.capabilities import SupportsFormerRevisions
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind, Reconciliation
from setpoint.engine.resource import Revision
from setpoint.engine.step.preview import PreviewResult
from setpoint.errors import Bug, UserError
from setpoint.replay.http_recording import HttpRecorder, HttpRecording, HttpReplayer
from setpoint.replay.masked_world import (
    all_current_digests,
    generate_all,
    mask_world,
    replace_texts,
    replaced_texts,
    with_masked_children,
    with_masked_digests,
)
from setpoint.replay.masking import Masker
from setpoint.replay.preview_report import PreviewReport, managed_refs, preview_all
from setpoint.replay.snapshot import FixedClock, RecordingEnvironment, ReplayEnvironment, StoreSnapshot, take_snapshot
from setpoint.replay.world_file import RecordedWorld, WorldHeader, pack_world, unpack_world

PreviewListener = Callable[[PreviewResult], None]


@dataclass(frozen=True, slots=True)
class PreviewSession:
    """A world as of one moment, in which nothing can be written, and what tried to."""

    engine: EngineContext
    snapshot: StoreSnapshot
    blocked_writes: BlockedWrites
    http_recording: HttpRecording
    # The cluster of those who name none, once somebody asked.
    cluster: Callable[[], str] = str

    async def survey(self, heard: PreviewListener) -> PreviewReport:
        """What everything comes to, both ways."""
        found = await preview_all(await managed_refs(self.engine), self.engine, self.blocked_writes, heard)
        return replace(found, missed=tuple(sorted(map(str, self.http_recording.missed))))


@asynccontextmanager
async def open_preview(
    settings: AppSettings, http_recording: HttpRecording | None = None
) -> AsyncIterator[PreviewSession]:
    """The world as it is now: whatever would write to a cloud, a cluster or the store is stopped.

    Each question is asked once, and its answer kept on `tape`: both looks see the same.
    """
    blocked_writes, http_recording = BlockedWrites(), HttpRecording() if http_recording is None else http_recording
    settings = replace(settings, clock=FixedClock(settings.clock.now()))

    def interceptor(way: str) -> HttpInterceptor:
        # The store is asked once as well, by the snapshot.
        return read_only(way, blocked_writes, None if way == STORE else HttpRecorder(way, http_recording))

    with (
        process_guarded_by(blocked_writes),
        intercepted_by(read_only(OTHER_CLIENTS, blocked_writes, HttpRecorder(OTHER_CLIENTS, http_recording))),
    ):
        watched = RecordingEnvironment(settings.environment, http_recording.environment)
        async with open_app(settings, StoreAccess.READ, ClientWiring(interceptor, environment=watched)) as opened:
            snapshot = await take_snapshot(opened.engine.store, blocked_writes, is_whole=not opened.shared)
            yield PreviewSession(
                replace(opened.engine, store=snapshot), snapshot, blocked_writes, http_recording, opened.cluster
            )


@asynccontextmanager
async def open_recorded(settings: AppSettings, recorded: RecordedWorld) -> AsyncIterator[PreviewSession]:
    """A world that was recorded, as of then. Nobody is asked: what is not on record is NotRecorded."""
    blocked_writes, header, http_recording = (
        BlockedWrites(),
        recorded.header,
        HttpRecording(recorded.http_recording.responses),
    )
    settings = replace(settings, clock=FixedClock(header.at))
    snapshot = _snapshot(recorded, blocked_writes)

    def interceptor(way: str) -> HttpInterceptor:
        return read_only(way, blocked_writes, HttpReplayer(way, http_recording))

    wiring = ClientWiring(interceptor, snapshot, header.cluster, ReplayEnvironment(header.environment))
    with process_guarded_by(blocked_writes), intercepted_by(interceptor(OTHER_CLIENTS)):
        async with open_app(settings, StoreAccess.READ, wiring) as opened:
            yield PreviewSession(opened.engine, snapshot, blocked_writes, http_recording)


@dataclass(frozen=True, slots=True)
class WorldRecording:
    """A world to be kept, as bytes; how much there is of it, and what everything comes to."""

    world: bytes
    resources: int
    answers: int
    survey: PreviewReport


async def make_recording(settings: AppSettings, heard: PreviewListener) -> WorldRecording:
    """The world as it is now, to be kept. A look at what is kept says the same, or nothing is."""
    masker = Masker()
    http_recording = HttpRecording(masker=masker)
    async with open_preview(settings, http_recording) as seen:
        refs = await managed_refs(seen.engine)
        found = await seen.survey(heard)
        before, made = await all_current_digests(refs, seen.engine), await generate_all(refs, seen.engine)
        recorded = mask_world(_header(settings, seen), seen.snapshot, http_recording, masker)
    async with open_recorded(settings, recorded) as again:
        otherwise = await generate_all(refs, again.engine)
        recorded = with_masked_children(recorded, made, otherwise)
    async with open_recorded(settings, recorded) as again:
        recorded = with_masked_digests(recorded, before, await all_current_digests(refs, again.engine))
    kept = pack_world(recorded)
    async with open_recorded(settings, unpack_world(kept, "what was kept")) as again:
        said = await again.survey(lambda _: None)
    texts = replaced_texts(made, otherwise)
    require_same_survey(found, said, lambda value: replace_texts(masker.mask(value), texts))
    return WorldRecording(kept, len(recorded.resources), len(http_recording.responses), said)


def require_same_survey(found: PreviewReport, said: PreviewReport, hidden: Callable[[Json], Json]) -> None:
    """Bug unless what is kept gives the report of the world itself, apart from what nobody may see."""
    pairs = zip(found.found, said.found, strict=True)
    others = [str(one.ref) for one, other in pairs if not same(hidden(found.data_of(one)), said.data_of(other))]
    if others:
        told = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        raise Bug(f"{told}: looks different when it is played back, so that nothing was kept: try again, or report it")


def _header(settings: AppSettings, seen: PreviewSession) -> WorldHeader:
    snapshot, sort = seen.snapshot, settings.store.partition(":")[0]
    return WorldHeader(
        __version__,
        seen.engine.clock.now(),
        sort,
        snapshot.revision,
        snapshot.collects,
        snapshot.is_whole,
        seen.cluster(),
        dict(seen.http_recording.environment),
    )


def _snapshot(recorded: RecordedWorld, blocked_writes: BlockedWrites) -> StoreSnapshot:
    header = recorded.header
    return StoreSnapshot(
        {one.ref: one for one in recorded.resources},
        Revision(header.revision),
        blocked_writes,
        header.collects,
        header.whole,
        set(recorded.absent),
        set(recorded.unlisted),
    )


def with_kind_variants(engine: EngineContext, words: Mapping[str, str]) -> EngineContext:
    """The world with some kinds handled otherwise: each by its name, as `stateless`, `stateful` or a revision."""
    kinds = dict(engine.kinds)
    names = {key[1].lower(): key for key in kinds}
    for name, word in words.items():
        key = names.get(name.lower())
        if key is None:
            known = ", ".join(sorted(key[1] for key in kinds))
            raise UserError(f"no kind {name!r} can be handled otherwise; there is {known}")
        kinds[key] = kind_variant(kinds[key], word)
    return replace(engine, kinds=kinds)


def kind_variant(kind: AnyKind, word: str) -> AnyKind:
    """The kind as `word` says; UserError for one that it does not have."""
    if word in tuple(Reconciliation):
        other = copy(kind)
        other.reconciliation = Reconciliation(word)
        return other
    former = kind.former() if isinstance(kind, SupportsFormerRevisions) else ()
    known = {str(one.revision): one for one in (*former, kind)}
    if word not in known:
        words = ", ".join((*tuple(Reconciliation), *known))
        raise UserError(f"{kind.name} is not handled as {word!r} in any way that is known here: there is {words}")
    return known[word]

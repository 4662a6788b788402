"""Opens the engine for previews: on live services or on a recorded world, where nothing can be written.

Kinds can be previewed in other variants, and a world can be recorded.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from functools import partial

from setpoint import __version__
from setpoint.app import (
    OTHER_CLIENTS,
    STORE,
    TENANCY_VARIABLE,
    AppSettings,
    ClientWiring,
    StoreAccess,
    open_app,
    read_only,
)
from setpoint.clients.http import HttpInterceptor, intercepted_by
from setpoint.clients.ratelimit.read_retries import reads_retried
from setpoint.clients.write_guard import BlockedWrites, process_guarded_by
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.engine.capabilities import SupportsFormerRevisions
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import AnyKind, Reconciliation
from setpoint.engine.ports import Store
from setpoint.engine.resource import Revision
from setpoint.engine.step.preview import PreviewResult
from setpoint.engine.tenancy.tenants import NamespaceTenants, Tenancy, TenancyMode
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
    """An engine at one point in time in which nothing can be written, and the writes that were blocked."""

    engine: EngineContext
    snapshot: StoreSnapshot
    blocked_writes: BlockedWrites
    http_recording: HttpRecording
    # The default cluster, once it was used.
    cluster: Callable[[], str] = str
    # Whether many objects are observed by a list. A recorded world has the answer for each object instead.
    lists: bool = False

    async def preview_all(self, listener: PreviewListener) -> PreviewReport:
        """The preview of every resource, with and without its cookie."""
        refs = await managed_refs(self.engine)
        found = await preview_all(refs, self.engine, self.blocked_writes, listener, lists=self.lists)
        return replace(found, missed=tuple(sorted(map(str, self.http_recording.missed))))


@asynccontextmanager
async def open_preview(
    settings: AppSettings,
    http_recording: HttpRecording | None = None,
    *,
    store: Store | None = None,
    guards_threads: bool = True,
    lists: bool = False,
    for_tenants: bool = False,
) -> AsyncIterator[PreviewSession]:
    """A session on live services: every write to a cloud, a cluster or the store is blocked.

    Each request is sent until it has an answer, and that is recorded: both previews of a resource see the same.
    `store` is one that is open already; `guards_threads` is for a process that does nothing else. With `lists`, objects
    that are as they were when their resources settled are observed together. `for_tenants`: as a controller does, on
    behalf of each tenant.
    """
    blocked_writes, http_recording = BlockedWrites(), HttpRecording() if http_recording is None else http_recording
    settings = replace(settings, clock=FixedClock(settings.clock.now()))

    def interceptor(client: str) -> HttpInterceptor:
        # The snapshot reads the store once as well.
        return read_only(client, blocked_writes, None if client == STORE else HttpRecorder(client, http_recording))

    with (
        reads_retried(),
        process_guarded_by(blocked_writes, covers_threads=guards_threads),
        intercepted_by(read_only(OTHER_CLIENTS, blocked_writes, HttpRecorder(OTHER_CLIENTS, http_recording))),
    ):
        environment = RecordingEnvironment(settings.environment, http_recording.environment)
        wiring = ClientWiring(interceptor, environment=environment, opened=store, unopened=http_recording.unopened)
        access = StoreAccess.PREVIEW if for_tenants else StoreAccess.READ
        async with open_app(settings, access, wiring) as opened:
            snapshot = await take_snapshot(opened.engine.store, blocked_writes, is_whole=not opened.shared)
            engine = replace(opened.engine, store=snapshot)
            if opened.engine.tenancy is not None:
                # Namespaces are read through the snapshot, and so recorded; and so is how far tenants are kept apart.
                http_recording.environment[TENANCY_VARIABLE] = settings.tenancy.value
                tenants = NamespaceTenants(snapshot.get, settings.tenancy, settings.clock)
                engine = replace(engine, tenancy=Tenancy(tenants.tenant_of, opened.engine.tenancy.references))
            yield PreviewSession(engine, snapshot, blocked_writes, http_recording, opened.cluster, lists)


@asynccontextmanager
async def open_recorded(
    settings: AppSettings, recorded: RecordedWorld, *, guards_threads: bool = True
) -> AsyncIterator[PreviewSession]:
    """A session on a recorded world, at its time. No service is asked: a request without a recorded answer raises."""
    blocked_writes, header = BlockedWrites(), recorded.header
    http_recording = HttpRecording(recorded.http_recording.responses)
    settings = replace(settings, clock=FixedClock(header.at))
    snapshot = _snapshot(recorded, blocked_writes)

    def interceptor(client: str) -> HttpInterceptor:
        return read_only(client, blocked_writes, HttpReplayer(client, http_recording))

    environment = ReplayEnvironment(header.environment)
    wiring = ClientWiring(
        interceptor,
        snapshot,
        header.cluster,
        recorded.http_recording.unopened,
        environment,
        _recorded_tenancy(header),
    )
    guard = process_guarded_by(blocked_writes, covers_threads=guards_threads)
    with guard, intercepted_by(interceptor(OTHER_CLIENTS)):
        async with open_app(settings, StoreAccess.READ, wiring) as opened:
            yield PreviewSession(opened.engine, snapshot, blocked_writes, http_recording)


def _recorded_tenancy(header: WorldHeader) -> TenancyMode | None:
    """How far tenants were kept apart; None for a world without tenants, as earlier versions recorded all of them."""
    word = header.environment.get(TENANCY_VARIABLE)
    if word is not None and word not in tuple(TenancyMode):
        raise UserError(f"the world was recorded with the tenancy {word!r}, which is unknown here: record it again")
    return None if word is None else TenancyMode(word)


@dataclass(frozen=True, slots=True)
class WorldRecording:
    """A recorded world as bytes, its size, and the report of its preview."""

    world: bytes
    resources: int
    answers: int
    report: PreviewReport


async def make_recording(
    settings: AppSettings, listener: PreviewListener, *, store: Store | None = None, guards_threads: bool = True
) -> WorldRecording:
    """Records the world as it is now. A Bug unless the recording gives the same report as the world itself."""
    masker = Masker()
    http_recording = HttpRecording(masker=masker)
    async with open_preview(settings, http_recording, store=store, guards_threads=guards_threads) as session:
        refs = await managed_refs(session.engine)
        found = await session.preview_all(listener)
        before, generated = await all_current_digests(refs, session.engine), await generate_all(refs, session.engine)
        types = session.engine.resource_types
        recorded = mask_world(_header(settings, session), session.snapshot, http_recording, masker, types)
    replayed_by = partial(open_recorded, settings, guards_threads=guards_threads)
    async with replayed_by(recorded) as replay:
        masked = await generate_all(refs, replay.engine)
        recorded = with_masked_children(recorded, generated, masked)
    async with replayed_by(recorded) as replay:
        recorded = with_masked_digests(recorded, before, await all_current_digests(refs, replay.engine))
    kept = pack_world(recorded)
    async with replayed_by(unpack_world(kept, "what was kept")) as replay:
        replayed = await replay.preview_all(lambda _: None)
    texts = replaced_texts(generated, masked)
    require_same_report(found, replayed, lambda value: replace_texts(masker.mask(value), texts))
    return WorldRecording(kept, len(recorded.resources), len(http_recording.responses), replayed)


def require_same_report(found: PreviewReport, replayed: PreviewReport, masked: Callable[[Json], Json]) -> None:
    """Bug unless the recording gives the report of the world itself, apart from masked secrets."""
    pairs = zip(found.found, replayed.found, strict=True)
    different = [str(one.ref) for one, other in pairs if not same(masked(found.data_of(one)), replayed.data_of(other))]
    if different:
        names = ", ".join(different[:3]) + (f" and {len(different) - 3} more" if len(different) > 3 else "")
        raise Bug(f"{names}: differs when it is replayed, so that nothing was kept: try again, or report it")


def _header(settings: AppSettings, session: PreviewSession) -> WorldHeader:
    snapshot, scheme = session.snapshot, settings.store.partition(":")[0]
    return WorldHeader(
        __version__,
        session.engine.clock.now(),
        scheme,
        snapshot.revision,
        snapshot.collects,
        snapshot.is_whole,
        session.cluster(),
        dict(session.http_recording.environment),
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
    """The engine with other variants of some kinds: each by its name, as `stateless`, `stateful` or a revision."""
    kinds = dict(engine.kinds)
    names = {key[1].lower(): key for key in kinds}
    for name, word in words.items():
        key = names.get(name.lower())
        if key is None:
            raise UserError(f"no kind {name!r} can be handled otherwise: `setpoint kinds` lists those that can")
        kinds[key] = kind_variant(kinds[key], word)
    return replace(engine, kinds=kinds)


def kind_variant(kind: AnyKind, word: str) -> AnyKind:
    """The variant of a kind that `word` names; UserError when the kind does not have it."""
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

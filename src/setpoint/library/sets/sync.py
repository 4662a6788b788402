"""Keeps sets as their sources have them, in a process that runs controllers. START HERE: `SetSync.run`.

All sets of a process are declared in one commit: each of them, or none. What is left of an earlier version is pruned
once what is declared now has had a step.
"""

import logging
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.context import EngineContext
from setpoint.engine.dependency_graph import deletion_order, dependencies_among
from setpoint.engine.resource import DEFAULT_NAMESPACE, Resource, ResourceRef
from setpoint.engine.sets.declare import prune, set_store_of
from setpoint.engine.sets.resource_set import SetRecord, SetState, is_leaving, require_set_name, set_of, short_revision
from setpoint.errors import ManifestInvalid, NotReady, SetpointError, StoreError, UserError
from setpoint.library.manifests.checks import warn_about_manifests
from setpoint.library.sets.declaring import (
    PlannedVersions,
    SetVersion,
    declare_versions,
    plan_versions,
    prune_protection,
    require_source,
)
from setpoint.library.sets.folder_source import FolderSource
from setpoint.library.sets.git_source import GitSource
from setpoint.library.sets.snapshot import Source, read_snapshot

_log: Final = logging.getLogger(__name__)

# What another writer changed in the store is declared again after so long, and a version that was refused is tried.
_AGAIN_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 15.0
# What left a set is pruned after so long, if not every resource that is declared has had a step by then.
_STEP_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A set, and where its manifests are."""

    name: str
    source: Source


def named_sources(folders: Sequence[str], repositories: Sequence[str], name: str | None) -> Sequence[NamedSource]:
    """A set for each folder and repository, called `name` or as its source is; ManifestInvalid for two of one name."""
    sources: list[Source] = [*(FolderSource(Path(one)) for one in folders), *map(GitSource.parse, repositories)]
    if name is not None and len(sources) > 1:
        raise ManifestInvalid(f"--set {name}: there are {len(sources)} sources, and each is a set: leave it out")
    found: dict[str, Source] = {}
    for source in sources:
        own = require_set_name(source.default_name if name is None else name)
        if own in found:
            raise ManifestInvalid(f"{found[own].address} and {source.address} are both called {own}: rename a folder")
        found[own] = source
    return [NamedSource(*one) for one in found.items()]


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """How often sources are looked at, and what is allowed; see `SetScope`."""

    poll: float = 2.0
    namespace: str = DEFAULT_NAMESPACE
    adopts: bool = False
    allow_empty: bool = False


@dataclass(slots=True)
class SourceFigures:
    """What is measured of a source: when it was last declared as it is, and when it last could not be."""

    last_good: float = 0.0
    last_failed: float = 0.0
    failures: int = 0
    resources: int = 0


class SetSync:
    """Declares sets whenever their sources change, and prunes what left them."""

    def __init__(self, sources: Sequence[NamedSource], engine: EngineContext, options: SyncOptions) -> None:
        self.figures = {one.name: SourceFigures() for one in sources}
        self._sources = tuple(sources)
        self._engine = engine
        self._options = options
        # What each place looked like last, and when the versions on record were last declared, or refused.
        self._seen: Mapping[str, str] = {}
        self._handled: Mapping[str, str] | None = None
        self._due = 0.0
        # The last good versions, from this process on, and when they were declared.
        self._good: PlannedVersions | None = None
        self._declared_at = 0.0
        # A process that was killed may have left something to prune.
        self._is_pruning = True

    async def check(self) -> None:
        """UserError for a set that has another source, or for a new one whose source cannot be read."""
        known = {one.name: one for one in await self._records()}
        for one in self._sources:
            if one.name in known:
                require_source(known[one.name], one.source.address, adopts=self._options.adopts)
                continue
            try:
                await one.source.look()
            except SetpointError as error:
                raise UserError(f"the set {one.name}: {error}") from error

    async def run(self) -> None:
        """Does so without an end."""
        while True:
            try:
                await self.tick()
            except SetpointError as error:
                _log.warning("sets cannot be declared now", extra={"why": str(error)})
            except Exception as error:  # noqa: BLE001 - a bug must not end the process, nor leave the world as it is
                _log.exception("declaring sets broke")
                await self._tell_of_bug(error)
            await self._engine.clock.sleep(self._options.poll)

    async def _tell_of_bug(self, error: Exception) -> None:
        """Puts on record that no version is declared now, and why."""
        self._handled = None
        with suppress(SetpointError):
            await self._fail(f"a bug of setpoint ({type(error).__name__}): what was declared stands; see its log")

    async def tick(self) -> None:
        """Looks at the sources once, declares what changed, and goes on with pruning."""
        seen = await self._look()
        if seen is not None:
            is_settled = self._is_settled(seen)
            self._seen = seen
            is_due = self._engine.clock.monotonic() >= self._due
            if is_settled and (seen != self._handled or is_due):
                await self._declare(seen)
        await self._prune()

    # --- Declaring ----------------------------------------------------------------------------------------------------

    async def _look(self) -> Mapping[str, str] | None:
        """What each place looks like: once for all sets that are read from there. None when one cannot be read."""
        seen = dict[str, str]()
        for one in self._sources:
            if one.source.place in seen:
                continue
            try:
                seen[one.source.place] = await one.source.look()
            except SetpointError as error:
                # Whatever it looks like next is to be handled.
                self._handled = None
                await self._fail(str(error), at_fault=one.name)
                return None
        return seen

    def _is_settled(self, seen: Mapping[str, str]) -> bool:
        """Whether no source looks other than last time that may be half-written."""
        places = {one.source.place for one in self._sources if one.source.settles}
        return all(seen[place] == self._seen.get(place) for place in places)

    async def _declare(self, seen: Mapping[str, str]) -> None:
        versions = await self._read(seen)
        if versions is None:
            return
        self._handled, self._due = seen, self._engine.clock.monotonic() + _RETRY_SECONDS
        try:
            planned = await plan_versions(versions, self._engine, adopts=self._options.adopts)
            before = await self._records()
            declared = await declare_versions(planned, self._engine, before)
        except StoreError:
            self._due = 0.0
            raise
        except SetpointError as error:
            revisions = {one.name: one.revision for one in versions}
            await self._fail(str(error), revisions=revisions)
            return
        self._succeed(planned, len(declared.changed), {one.name for one in before if one.state is SetState.FAILED})

    async def _read(self, seen: Mapping[str, str]) -> Sequence[SetVersion] | None:
        """The versions of all sets; None when one cannot be read, or is being written."""
        versions = list[SetVersion]()
        for one in self._sources:
            # Of a folder it is known once all of it is read.
            revision = "" if one.source.settles else seen[one.source.place]
            try:
                snapshot = await one.source.snapshot(seen[one.source.place])
                revision = snapshot.revision
                read = await read_snapshot(snapshot, self._options.namespace, allow_empty=self._options.allow_empty)
            except NotReady as error:
                _log.debug("source is being written", extra={"set": one.name, "why": str(error)})
                return None
            except SetpointError as error:
                self._handled, self._due = seen, self._engine.clock.monotonic() + _RETRY_SECONDS
                await self._fail(str(error), at_fault=one.name, revisions={one.name: revision})
                return None
            for what in snapshot.ignored if seen != self._handled else ():
                _log.warning("source has a part that is not read", extra={"set": one.name, "what": what})
            versions.append(SetVersion(one.name, one.source.address, revision, read))
        return versions

    def _succeed(self, planned: PlannedVersions, changed: int, refused: Set[str]) -> None:
        clock, plan = self._engine.clock, planned.plan
        is_new = self._good is None or [one.revision for one in planned.versions] != [
            one.revision for one in self._good.versions
        ]
        if is_new or changed:
            warn_about_manifests(planned.checked.manifests, self._engine, _warn)
            self._declared_at = clock.monotonic()
        for version in planned.versions:
            if not is_new and not changed and version.name not in refused:
                continue
            leaving = sum(name == version.name for name in plan.pruned.values())
            count = len(version.read.manifests)
            revision = short_revision(version.revision)
            figures = {"set": version.name, "revision": revision, "resources": count, "leaving": leaving}
            _log.info("declared", extra={**figures, "changed": changed})
        for ref, (name, why) in plan.kept.items():
            _log.warning("left its set, and is kept", extra={"ref": str(ref), "set": name, "why": why})
        # A resource that is still being deleted is declared as soon as it is gone.
        self._due = clock.monotonic() + (self._options.poll if plan.postponed else _AGAIN_SECONDS)
        self._good, self._is_pruning = planned, True
        for version in planned.versions:
            figures_of = self.figures[version.name]
            figures_of.last_good, figures_of.resources = _unix(clock.now()), len(version.read.manifests)

    async def _fail(self, error: str, *, at_fault: str = "", revisions: Mapping[str, str] | None = None) -> None:
        """Puts on record why the newest versions are refused. The last good ones stand."""
        now, known = self._engine.clock.now(), {one.name: one for one in await self._records()}
        for one in self._sources:
            text = error if at_fault in ("", one.name) else f"it is declared together with the set {at_fault}: {error}"
            before = known.get(one.name, SetRecord(one.name, one.source.address))
            revision = (revisions or {}).get(one.name, "")
            figures = self.figures[one.name]
            figures.last_failed, figures.failures = _unix(now), figures.failures + 1
            if (before.state, before.error, before.failed_revision) == (SetState.FAILED, text, revision):
                continue
            _log.error("refused", extra={"set": one.name, "revision": short_revision(revision), "why": text})
            record = msgspec.structs.replace(
                before, state=SetState.FAILED, error=text, failed_revision=revision, failed_at=now
            )
            await set_store_of(self._engine.store).keep_set(record)

    async def _records(self) -> Sequence[SetRecord]:
        return await set_store_of(self._engine.store).sets()

    # --- Pruning ------------------------------------------------------------------------------------------------------

    async def _prune(self) -> None:
        """Deletes what left the last good versions, dependants first; what is kept has left its set."""
        if not self._is_pruning:
            return
        resources = {one.ref: one for one in (await self._engine.store.list()).resources}
        leaving = {
            ref: one
            for ref, one in resources.items()
            if set_of(one.annotations) in self.figures and is_leaving(one.annotations)
        }
        revisions = {one.name: one.revision for one in await self._records()}
        if not leaving:
            self._is_pruning = False
        elif self._has_stepped(resources):
            for ref in _deletable(leaving, self._engine):
                if not prune_protection(leaving[ref], self._engine):
                    name = set_of(leaving[ref].annotations)
                    await prune(leaving[ref], revisions.get(name, ""), self._engine.store, self._engine.clock)
                    _log.info("pruned", extra={"ref": str(ref), "set": name})

    def _has_stepped(self, resources: Mapping[ResourceRef, Resource]) -> bool:
        """Whether each resource that is declared has had a step as it is declared now, or was given the time for it."""
        if self._good is None or self._engine.clock.monotonic() >= self._declared_at + _STEP_SECONDS:
            return True
        found = (resources[ref] for ref in self._good.order if ref in resources)
        return all(one.status.get("observedGeneration") == one.generation for one in found)


def _deletable(leaving: Mapping[ResourceRef, Resource], engine: EngineContext) -> Sequence[ResourceRef]:
    """Those that no other depends on that is still there. What is only stored, such as a Secret, goes last."""
    reconciled = {ref: one for ref, one in leaving.items() if ref.group_kind in engine.resource_types}
    group = reconciled or leaving
    order = deletion_order(dependencies_among(group.values(), engine))
    return [ref for ref, first in order.items() if not first and not group[ref].is_deleting]


def _warn(text: str) -> None:
    _log.warning("manifest", extra={"why": text})


def _unix(now: str) -> float:
    return datetime.fromisoformat(now).timestamp()

"""The calls of a session that only read or plan: what is on record, its changes, the graph, and the plan of all."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from setpoint.app import AppSettings, default_namespace
from setpoint.app.kinds import catalogue_versions
from setpoint.core.secret_fields import SecretFields
from setpoint.engine.context import EngineContext
from setpoint.engine.owners.children import is_unreconciled
from setpoint.engine.ports import (
    EventRecord,
    ResourceChange,
    ResourceChangeType,
    ResourceQuery,
    not_served,
    unserved_kinds,
)
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import ManifestInvalid, StoreError
from setpoint.library.declared import DeclaredChange, DeclaredResource, ResourceListing
from setpoint.library.session_engines import SessionEngines
from setpoint.library.targets import (
    Named,
    Selection,
    Target,
    get_declared,
    is_kind_word,
    matches_targets,
    named_refs,
    parse_target,
    ref_of_target,
    require_served,
    require_targets_found,
    select,
)

# What a command that only reads the store does without is imported where it is used.
if TYPE_CHECKING:
    from setpoint.engine.dependency_graph import DependencyGraph
    from setpoint.library.command_record import CommandObserver
    from setpoint.library.inspection.fields import FieldListing
    from setpoint.library.inspection.graph import ResourceGraph
    from setpoint.library.inspection.history import HistoryListing
    from setpoint.library.inspection.looks import Look
    from setpoint.library.inspection.records import EventListing, Inspection, ResourceDescription, StepExplanation
    from setpoint.library.inspection.store_plan import StorePlan
    from setpoint.library.manifests.validation import ManifestValidation
    from setpoint.library.sets.listing import SetListing
    from setpoint.preview import WorldRecording


class SessionReads:
    """The part of a `Session` that changes nothing, neither in the store nor in a service."""

    def __init__(
        self,
        settings: AppSettings,
        namespace: str | None = None,
        *,
        owns_process: bool = False,
        engines: SessionEngines | None = None,
    ) -> None:
        """`engines` are those of a process that has a store open already, or of a recorded world."""
        self.settings = settings
        self.namespace = namespace or default_namespace(settings)
        self._engines = engines or SessionEngines(settings, owns_process=owns_process)

    def __repr__(self) -> str:
        return f"<session on {self.settings.store}>"

    @property
    def is_running(self) -> bool:
        """Whether controllers of this session take steps."""
        return False

    # --- Resources ----------------------------------------------------------------------------------------------------

    async def get(self, target: Target, *, show_secrets: bool = False) -> DeclaredResource:
        """The resource as it is on record; ManifestInvalid when it is not declared."""
        async with self._engines.reading() as engine:
            found = await get_declared(ref_of_target(target, self.namespace, engine), engine)
            return declared(found, _secrets(engine, are_shown=show_secrets))

    async def list(
        self,
        *targets: str,
        all_namespaces: bool = False,
        show_secrets: bool = False,
        ignore_not_found: bool = False,
    ) -> ResourceListing:
        """The resources of the namespace, sorted: all, or those of each KIND and KIND/NAME."""
        async with self._engines.reading() as engine:
            wanted = [parse_target(target, engine) for target in targets]
            listing = await engine.store.list(self._query(all_namespaces=all_namespaces))
            found = [one for one in listing.resources if matches_targets(one, wanted)]
            found += await self._unlisted(targets, found, engine)
            require_served((kind for kind, _ in wanted), engine)
            # Of the catalogue a cluster has what it uses.
            if not wanted and (missing := unserved_kinds(engine.store) - catalogue_versions().keys()):
                self.settings.warn(str(not_served(missing)))
            if not ignore_not_found:
                require_targets_found(wanted, found)
            secrets = _secrets(engine, are_shown=show_secrets)
            shown = tuple(declared(one, secrets) for one in found)
        return ResourceListing(shown, listing.revision)

    async def looks(self, resources: Sequence[Resource]) -> "Mapping[ResourceRef, Look]":
        """When the live object of each was looked at, when it is next, and whether it had drifted."""
        from setpoint.library.inspection.looks import read_looks

        return await read_looks(resources, self._engines.file)

    async def watch(
        self,
        *targets: str,
        since: Revision | None = None,
        all_namespaces: bool = False,
        show_secrets: bool = False,
    ) -> AsyncGenerator[DeclaredChange]:
        """Every change of the resources from now on, or after the revision of a listing or of an earlier change.

        It ends when the session closes. RevisionExpired when the changes since then are no longer kept: list again.
        """
        is_new = await self._engines.wait_for_file()
        if self._engines.closed.is_set():
            return
        async with self._engines.reading() as engine:
            wanted = [parse_target(target, engine) for target in targets]
            secrets = _secrets(engine, are_shown=show_secrets)
            async with aclosing(self._changes(engine, since, is_new=is_new, all_namespaces=all_namespaces)) as changes:
                async for one in changes:
                    if matches_targets(one.resource, wanted):
                        yield DeclaredChange(one.change, declared(one.resource, secrets), one.revision)

    async def _changes(
        self, engine: EngineContext, since: Revision | None, *, is_new: bool, all_namespaces: bool
    ) -> AsyncGenerator[ResourceChange]:
        """The changes in the store; of one that is new since the watch began, what is there was added."""
        query = self._query(all_namespaces=all_namespaces)
        try:
            if since is None or is_new:
                listing = await engine.store.list(query)
                since = listing.revision
                for one in listing.resources if is_new else ():
                    yield ResourceChange(ResourceChangeType.ADDED, one, since)
            async for change in engine.store.watch(since, query):
                yield change
        except StoreError:
            if not self._engines.closed.is_set():
                raise

    def _query(self, *, all_namespaces: bool) -> ResourceQuery:
        return ResourceQuery(namespace=None if all_namespaces else self.namespace)

    async def _unlisted(
        self, targets: Sequence[str], listed: Sequence[Resource], engine: EngineContext
    ) -> Sequence[Resource]:
        """Named objects without a kind of ours: a cluster has too many of them to list."""
        refs = [ref_of_target(target, self.namespace, engine) for target in targets if target.partition("/")[2]]
        there = {one.ref for one in listed}
        found = [await engine.store.get(ref) for ref in refs if ref not in there and is_unreconciled(ref, engine)]
        return [one for one in found if one is not None]

    # --- What is on record --------------------------------------------------------------------------------------------

    async def describe(self, *what: Named, show_secrets: bool = False) -> "Inspection[ResourceDescription]":
        """Everything on record about the named resources, or all of the namespace; ManifestInvalid without one."""
        from setpoint.library.inspection.records import Inspection, ResourceDescription

        async with self._engines.reading() as engine:
            found, revision = await self._named(self._select(what), engine)
            secrets = _secrets(engine, are_shown=show_secrets)
            described = [
                ResourceDescription(declared(one, secrets), await engine.store.events(one.ref)) for one in found
            ]
        return Inspection(tuple(described), revision)

    async def explain(self, *what: Named) -> "Inspection[StepExplanation]":
        """Why the last step of each did what it did, and when the next one is due; of those named, or of all."""
        from setpoint.library.inspection.records import Inspection, StepExplanation

        async with self._engines.reading() as engine:
            found, revision = await self._named(self._select(what), engine)
            is_resynced = await self._is_resynced(engine)
            explained = [
                StepExplanation.of(one, is_resynced=is_resynced, is_owner=one.ref.group_kind in engine.owners)
                for one in found
            ]
        return Inspection(tuple(explained), revision)

    async def _named(self, selection: Selection, engine: EngineContext) -> tuple[Sequence[Resource], Revision]:
        """The resources that are named, or all of the namespace that have a kind of ours; and the revision."""
        listing = await engine.store.list(ResourceQuery(namespace=selection.namespace))
        listed = {one.ref: one for one in listing.resources}
        refs = named_refs(selection, engine)
        if not refs:
            refs = [ref for ref in listed if ref.group_kind in engine.resource_types]
        return [listed.get(ref) or await get_declared(ref, engine) for ref in refs], listing.revision

    async def _is_resynced(self, engine: EngineContext) -> bool:
        """Whether a controller takes steps by itself, as far as this user can see."""
        from setpoint.library.executors import cluster_has_controller, has_local_daemon

        if self._engines.is_shared:
            return await cluster_has_controller(engine)
        return self.is_running or await has_local_daemon(self.settings)

    async def events(self, *targets: Target, all_namespaces: bool = False) -> "EventListing":
        """The events of the namespace, the oldest first: all, or those of each KIND/NAME, declared or not."""
        from setpoint.library.inspection.records import EventListing

        async with self._engines.reading() as engine:
            query = self._query(all_namespaces=all_namespaces)
            wanted = {ref_of_target(target, query.namespace, engine) for target in targets}
            # The revision is older than the events: a watch shows what follows.
            listing = await engine.store.list(query)
            return EventListing(await _events_of(wanted, query.namespace, engine), listing.revision)

    async def watch_events(
        self, *targets: Target, since: "EventListing | None" = None, all_namespaces: bool = False
    ) -> AsyncGenerator["EventListing"]:
        """New events, as they are recorded: those that are not in `since`, or that follow from now on.

        Each item has what was recorded since the one before. It ends when the session closes.
        """
        from setpoint.library.inspection.records import EventListing

        if since is None:
            since = await self.events(*targets, all_namespaces=all_namespaces)
        namespace, seen = self._query(all_namespaces=all_namespaces).namespace, set(since.events)
        is_new = await self._engines.wait_for_file()
        if self._engines.closed.is_set():
            return
        async with self._engines.reading() as engine:
            wanted = {ref_of_target(target, namespace, engine) for target in targets}
            # Of any namespace: in a cluster, other writers record events as well.
            async with aclosing(self._changes(engine, since.revision, is_new=is_new, all_namespaces=True)) as changes:
                async for change in changes:
                    found = await _events_of(wanted, namespace, engine)
                    new = tuple(one for one in found if one not in seen)
                    seen.update(new)
                    if new:
                        yield EventListing(new, change.revision)

    async def validate(self, *manifests: Named) -> "ManifestValidation":
        """What is wrong with manifests, each mistake with its file and line. No service and no resource is asked for.

        Nothing is raised for a mistake: see `ManifestValidation.is_valid`.
        """
        from setpoint.library.manifests.validation import unreadable, validate_manifests

        try:
            read = self._select(manifests).read
        except ManifestInvalid as error:
            return unreadable(error)
        if read is None:
            raise ManifestInvalid("nothing to validate: hand over manifests")
        async with self._engines.reading() as engine:
            return validate_manifests(read, engine)

    async def history(
        self, target: Target, *, before: int | None = None, most: int = 100, since: str = ""
    ) -> "HistoryListing":
        """What happened to a resource, the newest first: its steps, their requests, drift and refusals.

        Kept by count and age: in a store in a file or in memory by every process, in a cluster by the process that is
        asked. `before` is the number of an entry: those that came before it. Of a resource that is gone, too.
        """
        from setpoint.library.inspection.history import read_history

        async with self._engines.reading() as engine:
            ref, shared = ref_of_target(target, self.namespace, engine), self._engines.is_shared
            return await read_history(ref, engine.store, before=before, most=most, since=since, is_shared=shared)

    async def fields(self, target: Target) -> "FieldListing":
        """Spec, live object and effective desired state of a resource, field by field, with the rule of each.

        The live object is read now. Nothing is written. ManifestInvalid for a resource that is not declared.
        """
        from setpoint.library.inspection.fields import read_fields

        async with self._engines.planning() as engine:
            ref = ref_of_target(target, self.namespace, engine)
            return await read_fields(await get_declared(ref, engine), engine)

    async def sets(self) -> "SetListing":
        """The sets on record: each with its source, its last good revision, and why a newer one was refused."""
        from setpoint.engine.sets.declare import set_store_of
        from setpoint.engine.sets.resource_set import sets_as_they_are
        from setpoint.library.sets.listing import SetListing

        async with self._engines.reading() as engine:
            records = await set_store_of(engine.store).sets()
            return SetListing(sets_as_they_are(records, (await engine.store.list()).resources))

    # --- The whole ----------------------------------------------------------------------------------------------------

    async def graph(self, *what: Named, all_namespaces: bool = False) -> "ResourceGraph":
        """What depends on what, of the resources of the namespace: all, or those of each KIND and KIND/NAME.

        Of manifests, as if they were declared: then of nothing else.
        """
        from setpoint.library.inspection.graph import ResourceGraph

        kinds = [one for one in what if isinstance(one, str) and is_kind_word(one)]
        selection = self._select([one for one in what if not (isinstance(one, str) and is_kind_word(one))])
        if kinds or all_namespaces:
            namespace = None if all_namespaces else selection.namespace
            selection = replace(selection, targets=(*kinds, *selection.targets), namespace=namespace)
        if selection.read is not None and selection.targets and selection not in what:
            names = ", ".join(map(str, selection.targets))
            raise ManifestInvalid(
                f"a graph is of manifests or of what is declared, such as {names}: hand over one of both"
            )
        async with self._engines.reading() as engine:
            return ResourceGraph.of(await _graph_of(selection, engine))

    async def plan_all(
        self,
        *,
        world: str | os.PathLike[str] | None = None,
        variants: Mapping[str, str] | None = None,
        observer: "CommandObserver | None" = None,
    ) -> "StorePlan":
        """The plan of every resource of every namespace, with its cookie and without it. Nothing is written.

        `world` is a file of `record`: then no service is asked. `variants` are kinds that are handled otherwise:
        `stateless`, `stateful` or a revision, by the name of the kind.
        """
        from setpoint.library.command_record import CommandObserver
        from setpoint.library.inspection.store_plan import plan_store

        async with self._engines.previewing(None if world is None else Path(world)) as preview:
            return await plan_store(preview, variants or {}, observer or CommandObserver())

    async def record(self, *, observer: "CommandObserver | None" = None) -> "WorldRecording":
        """A recording of all resources and of what their services answer, without secrets; for `plan_all`."""
        from setpoint.library.command_record import CommandObserver

        observer = observer or CommandObserver()
        with observer.running():
            return await self._engines.record(observer.previewed)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[EngineContext]:
        """The engine itself, to read what these methods do not show."""
        async with self._engines.reading() as engine:
            yield engine

    def _select(self, what: Sequence[Named]) -> Selection:
        return select(what, self.namespace)


async def _events_of(
    wanted: Collection[ResourceRef], namespace: str | None, engine: EngineContext
) -> tuple[EventRecord, ...]:
    """The events of the wanted resources, or of all, in the namespace, or in any."""
    found = await engine.store.events()
    return tuple(one for one in found if namespace in (None, one.ref.namespace) and (not wanted or one.ref in wanted))


async def _graph_of(selection: Selection, engine: EngineContext) -> "DependencyGraph":
    from setpoint.engine.dependency_graph import dependency_graph

    if selection.read is not None:
        from setpoint.app import overlay_drafts
        from setpoint.library.manifests.checks import dry_run_manifests

        checked = await dry_run_manifests(selection.read, engine)
        engine = await overlay_drafts(engine, checked.drafts)
        found = [await engine.store.get(manifest.ref) for manifest in checked.manifests]
        return await dependency_graph([one for one in found if one is not None], engine)
    words = [parse_target(target, engine) for target in selection.targets if isinstance(target, str)]
    refs = [target for target in selection.targets if isinstance(target, ResourceRef)]
    listing = await engine.store.list(ResourceQuery(namespace=selection.namespace))
    resources = [one for one in listing.resources if (words or not refs) and matches_targets(one, words)]
    require_targets_found(words, resources)
    return await dependency_graph([*resources, *[await get_declared(ref, engine) for ref in refs]], engine)


def _secrets(engine: EngineContext, *, are_shown: bool = False) -> SecretFields | None:
    """What is to be redacted; None where secret values are shown."""
    return None if are_shown else engine.secret_fields


def declared(resource: Resource, secrets: SecretFields | None) -> DeclaredResource:
    """The resource as it is shown: without secret values, unless `secrets` is None."""
    shown = resource.document if secrets is None else secrets.redacted(resource.document)
    return DeclaredResource(resource if shown is resource.document else Resource(shown))

"""Observe, dry run, apply and delete of objects in a cluster. Imported on first use: it needs the Kubernetes client."""

from contextlib import suppress
from dataclasses import field
from typing import Any, Final, NoReturn

import msgspec

from setpoint.clients.kubernetes.requests import ApiWriteOptions as Options
from setpoint.clients.kubernetes.requests import DeleteOptions, DeletePropagation, Endpoint, PatchType
from setpoint.clients.response_bodies import decode_tree
from setpoint.core.decide import Decision
from setpoint.core.plan import Action, PlannedWrite
from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path, remove_at, set_at
from setpoint.engine.kind import Absent, Intent, LiveObservation, Location, Present, Unchanged, Written
from setpoint.engine.ports import Clock
from setpoint.engine.resource import Resource
from setpoint.errors import (
    HeldByOthers,
    KindNotServed,
    OperationRunning,
    RemoteConflict,
    RemoteInvalid,
    RemoteRefused,
    SetpointError,
)
from setpoint.kinds.kubernetes_object.apply_result import (
    apply_changes,
    conflict_error,
    contains,
    creation_changes,
    foreseen_changes,
    foreseen_creation,
    immutable_changes,
    immutable_error,
    immutable_fields_of,
    is_body,
    is_handed_over,
    is_manual_change,
    may_be_forced,
    observation_of,
    parse_field_path,
    require_unclaimed,
    takes_fields,
    unknown_fields_of,
    version_in,
)
from setpoint.kinds.kubernetes_object.clusters import Clusters
from setpoint.kinds.kubernetes_object.deletion import is_deleting, pending_deletion, require_unprotected
from setpoint.kinds.kubernetes_object.field_schemas import is_defined, require_known_fields
from setpoint.kinds.kubernetes_object.location import ObjectLocation, parse_object_location
from setpoint.kinds.kubernetes_object.managed_fields import (
    NO_FIELDS,
    manager_fields,
)
from setpoint.kinds.kubernetes_object.manifest import spec_of
from setpoint.kinds.kubernetes_object.options import (
    ApplyIntent,
    DeletionSettings,
    apply_intent_of,
    deletion_settings_of,
    with_ignored_fields,
)
from setpoint.kinds.kubernetes_object.spec import LiveObject
from setpoint.kinds.kubernetes_object.takeover import content_patch, takeover_patch, with_managers_of
from setpoint.kinds.kubernetes_object.targets import ApplyTarget, TargetFinder, with_all_unknown_fields
from setpoint.kinds.kubernetes_object.tenant_clusters import TenantClusters

# The write that reverts a manual change.
REVERT: Final = "put back"
_objects: Final[msgspec.json.Decoder[dict[str, Json]]] = msgspec.json.Decoder(dict[str, Any])
_UID: Final = Path(("metadata", "uid"))
_NAMESPACE: Final = Path(("metadata", "namespace"))
_RESOURCE_VERSION: Final = Path(("metadata", "resourceVersion"))


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """The writes that a dry run predicts, and the object after them; None for one that is replaced.

    `is_takeover`: fields of other managers become ours with them.
    """

    writes: tuple[PlannedWrite, ...]
    after: Json = None
    is_takeover: bool = False


@dataclass(slots=True)
class RemoteObjects:
    """Requests for objects in clusters."""

    clusters: Clusters | TenantClusters
    clock: Clock
    targets: TargetFinder = field(init=False)

    def __post_init__(self) -> None:
        self.targets = TargetFinder(self.clusters)

    # --- Observing ----------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None) -> Absent | Present[LiveObject] | Unchanged:
        """Reads the object. Where its kind is not served in any version, it is absent."""
        parsed = parse_object_location(location)
        return _observed(await self.targets.read(parsed), parsed, known)

    async def observe_watched(self, location: Location, known: str | None) -> Absent | Present[LiveObject] | Unchanged:
        """The object as the watch of its collection shows it, without a request; read where that is not known.

        What is read here is no news when the watch shows it.
        """
        parsed, watched = parse_object_location(location), self.clusters.watched
        # As for a read: the tenant may not have the cluster, or its account, any more.
        access = await self.clusters.connect(parsed.cluster)
        topic, name = parsed.collection, parsed.name
        current = watched.find(topic, name, access.client.connection)
        if current is not None and current.version is None:
            return Absent()
        if current is not None and current.version is not None and current.version.mark == known:
            return Unchanged()
        if current is not None and current.body is not None:
            return observation_of(current.body, location)
        body = await self.targets.read(parsed)
        if body is not None:
            self._keep(parsed, body)
        return _observed(body, parsed, known)

    def _keep(self, location: ObjectLocation, body: bytes) -> None:
        """Keeps an answer for the next step, where the collection is watched; of a Secret, only which version it is."""
        is_secret = (location.api_version, location.kind) == ("v1", "Secret")
        self.clusters.watched.keep(location.collection, location.name, version_in(body), b"" if is_secret else body)

    async def is_same_object(self, resource: Resource, location: Location) -> bool:
        """Whether the object at `location` is the known one: in another version, or by another ID of its cluster."""
        found = await self.observe(location, None)
        return isinstance(found, Present) and found.live.uid == text_at(resource.status, "object", "uid") != ""

    # --- Foresight ----------------------------------------------------------------------------------------------------

    async def foresee(self, intent: Intent, observed: LiveObservation) -> PlannedWrite | None:
        """The write that is left, by comparison; None where the API server has to tell.

        That is where it depends on other managers, and where lists differ, which only the API server can merge.
        """
        request, location = apply_intent_of(intent), parse_object_location(intent.location)
        if request.ignored_fields or request.takeover.names or request.may_replace:
            return None
        if isinstance(observed, Present):
            live = observed.whole
            is_ours = not is_deleting(live) and request.takeover.applied_to(live) is live
            changes = foreseen_changes(live, request.tree, request.manager) if is_ours else ()
            return PlannedWrite(Action.UPDATE, "update", changes, is_foreseen=True) if changes else None
        target = await self.targets.find_writable(location)
        # Elsewhere an object is claimed only after the API server has shown that the author may create it.
        if not target.served.namespaced or location.namespace != intent.resource.ref.namespace:
            return None
        changes = foreseen_creation(request.tree)
        return PlannedWrite(Action.CREATE, "create", changes, is_foreseen=True) if changes else None

    # --- Dry run ------------------------------------------------------------------------------------------------------

    async def dry_run(self, intent: Intent, observed: LiveObservation, decision: Decision) -> DryRunResult:
        """The writes that are left, and their result, by a dry run of the API server."""
        request, location = apply_intent_of(intent), parse_object_location(intent.location)
        target = await self.targets.find_writable(location)
        live = None if isinstance(observed, Absent) else observed.whole
        await require_known_fields(target.client, target.served, request, live)
        if isinstance(observed, Absent):
            made = decode_tree(_objects, await self._create(target, request, dry_run=True), location.title)
            return DryRunResult((PlannedWrite(Action.CREATE, "create", creation_changes(made)),), made)
        if is_deleting(live):
            raise pending_deletion(live, location, request.deletion, self.clock.now())
        if not request.force_conflicts:
            require_unclaimed(live, request.manager, location)
        return await self._dry_run_update(target, request, live, decision)

    async def _dry_run_update(
        self, target: ApplyTarget, request: ApplyIntent, live: Json, decision: Decision
    ) -> DryRunResult:
        taken = request.takeover.applied_to(live)
        body, name, is_revert = _apply_body(request, taken), "update", False
        try:
            try:
                is_revert = may_be_forced(taken, request.manager, decision)
                answer = await self._apply(target, request, body, dry_run=True, force=is_revert)
            except HeldByOthers as error:
                if is_manual_change(error, live, decision):
                    name = REVERT
                elif not is_handed_over(error, request.takeover.names):
                    raise
                answer = await self._apply(target, request, body, dry_run=True, force=True)
            after: Json = decode_tree(_objects, answer, target.location.title)
            if taken is not live:
                after = await self._after_takeover(target, request, taken, after)
        except RemoteInvalid as error:
            fields = immutable_fields_of(error)
            if not fields or not request.may_replace:
                _refuse(error, target.location)
            require_unprotected(request.deletion, target.location)
            return DryRunResult((PlannedWrite(Action.REPLACE, "replace", immutable_changes(fields, live, body)),))
        changes = apply_changes(taken, after, request.manager)
        if is_revert and takes_fields(taken, changes, request.manager):
            name = REVERT
        writes = (PlannedWrite(Action.UPDATE, name, changes),) if changes else ()
        return DryRunResult(writes, after, is_takeover=taken is not live)

    async def _after_takeover(self, target: ApplyTarget, request: ApplyIntent, taken: Json, after: Json) -> Json:
        """`after`, a dry run of the apply, as it will be if `taken` comes first, by a dry run of what is removed.

        Defaults take the place of some fields, and an object may need others.
        """
        wanted = request.takeover.left_over(taken, after)
        patch, options = content_patch(taken, wanted), Options(request.manager, dry_run=True)
        if same(content_patch(after, wanted), []):
            return wanted
        answer = await target.client.patch(target.endpoint, patch, PatchType.JSON, options)
        found = decode_tree(_objects, answer, target.location.title)
        return with_managers_of(wanted, found)

    # --- Writing ------------------------------------------------------------------------------------------------------

    async def create(self, intent: Intent) -> Written[LiveObject]:
        """Creates the object, and returns it as the API server has it now, with the fields that it was created with."""
        request, location = apply_intent_of(intent), parse_object_location(intent.location)
        target = await self.targets.find_writable(location)
        answer = await self._create(target, request, dry_run=False)
        self._keep(target.location, answer)
        made = observation_of(answer, target.location.title)
        return Written(made, _is_complete(request, request.tree, made.whole), creation_changes(made.whole))

    async def _create(self, target: ApplyTarget, request: ApplyIntent, *, dry_run: bool) -> bytes:
        """The new object. One that another writer created meanwhile is observed first."""
        # No object has the first resource version: one that exists is a conflict.
        body = request.tree if dry_run else set_at(request.tree, _RESOURCE_VERSION, "1")
        try:
            return await self._apply(target, request, body, dry_run=dry_run)
        except HeldByOthers as error:
            raise RemoteConflict(f"{target.location.title} was created by another writer meanwhile: {error}") from error

    async def update(self, intent: Intent, write: PlannedWrite, live: Json) -> Written[LiveObject]:
        """Sends one write of the plan to that very object, and returns it as the API server has it now."""
        request, location = apply_intent_of(intent), parse_object_location(intent.location)
        if write.action is Action.REPLACE:
            await self._delete(location, live, request.deletion)
            raise OperationRunning(
                f"{location.title} is deleted first, and then created again", after=0, begun=Action.REPLACE.value
            )
        target = await self.targets.find_writable(location)
        taken = await self._take_over(target, request, live)
        body = _apply_body(request, taken)
        named = set_at(body, _UID, text_at(live, "metadata", "uid"))
        if write.is_foreseen:
            named = set_at(named, _RESOURCE_VERSION, text_at(live, "metadata", "resourceVersion"))
        try:
            answer = await self._apply(target, request, named, force=write.name == REVERT)
        except RemoteInvalid as error:
            if str(_UID) in immutable_fields_of(error):
                raise RemoteConflict(f"{location.title} was made again by another writer meanwhile: {error}") from error
            _refuse(error, location)
        self._keep(location, answer)
        after = observation_of(answer, location.title)
        # What a takeover leaves to be removed, only a dry run shows.
        is_complete = taken is live and _is_complete(request, body, after.whole)
        changes = apply_changes(live, after.whole, request.manager) if write.is_foreseen else None
        return Written(after, is_complete, changes)

    async def _take_over(self, target: ApplyTarget, request: ApplyIntent, live: Json) -> Json:
        """The object once the fields of other managers that become ours are ours; RemoteConflict if it has changed."""
        taken = request.takeover.applied_to(live)
        if taken is not live:
            options = Options(request.manager)
            await target.client.patch(target.endpoint, takeover_patch(taken), PatchType.JSON, options)
        return taken

    async def patch(
        self, location: Location, operations: Json, manager: str, *, dry_run: bool = False
    ) -> Present[LiveObject]:
        """Sends a JSON patch to an existing object, and returns it as the API server has it then, or would have it."""
        target = await self.targets.find_writable(parse_object_location(location))
        options = Options(manager, dry_run)
        answer = await target.client.patch(target.endpoint, operations, PatchType.JSON, options)
        return observation_of(answer, target.location.title)

    async def delete(self, location: Location, live: Json, resource: Resource) -> None:
        """Deletes the object; StillWaiting while finalizers hold it."""
        await self._delete(parse_object_location(location), live, deletion_settings_of(resource, spec_of(resource)))

    async def _delete(self, location: ObjectLocation, live: Json, deletion: DeletionSettings) -> None:
        require_unprotected(deletion, location)
        if not is_deleting(live):
            uid, propagation = text_at(live, "metadata", "uid"), DeletePropagation(deletion.propagation)
            # Objects are deleted with their kind: the read that follows shows it.
            with suppress(KindNotServed):
                target = await self.targets.find_any(location)
                if target is not None:
                    await target.client.delete(target.endpoint, DeleteOptions(uid or None, propagation=propagation))
        after = await self.targets.read(location)
        if after is not None:
            raise pending_deletion(decode_tree(_objects, after, location.title), location, deletion, self.clock.now())

    async def _apply(
        self, target: ApplyTarget, request: ApplyIntent, body: Json, *, dry_run: bool = False, force: bool = False
    ) -> bytes:
        """The object after `body` was applied, or would be, as the API server sent it."""
        options, placed = Options(request.manager, dry_run), _with_namespace(body, target)
        try:
            return await target.client.apply(target.endpoint, placed, options, force=force or request.force_conflicts)
        except SetpointError as error:
            if isinstance(error, RemoteConflict):
                self.clusters.watched.doubt(target.location.collection, target.location.name)
            explained = await self._explained(error, target, request, placed)
            if explained is error:
                raise
            raise explained from error

    async def _explained(
        self, error: SetpointError, target: ApplyTarget, request: ApplyIntent, body: Json
    ) -> SetpointError:
        """The error with advice for this kind; the same error where there is none."""
        location = target.location
        match error:
            case HeldByOthers():
                return conflict_error(error, location, request.ignored_fields, request.takeover.names)
            case RemoteInvalid():
                refused = await with_all_unknown_fields(error, target, body)
                fields = [parse_field_path(field) for field in unknown_fields_of(refused)]
                if fields and await is_defined(target.client, target.served, target.served.version, fields):
                    return OperationRunning(f"{location.title} waits for its definition: {refused}", after=1)
                return refused
            case KindNotServed():
                access = await self.clusters.connect(location.cluster)
                access.discovery.forget(location.api_version)
                return OperationRunning(f"{location.title} waits for its kind: {error}", after=1)
            case RemoteRefused() if await self._is_namespace_missing(target):
                return OperationRunning(f"{location.title} waits for its namespace: {error}", after=1)
            case _:
                return error

    async def _is_namespace_missing(self, target: ApplyTarget) -> bool:
        """Whether the namespace does not exist, or is being deleted."""
        if not target.served.namespaced:
            return False
        try:
            found = await target.client.get(Endpoint("", "v1", "namespaces", None, target.location.namespace))
        except RemoteRefused:
            return False
        return found is None or is_deleting(decode_tree(_objects, found, target.location.title))


def _refuse(error: RemoteInvalid, location: ObjectLocation) -> NoReturn:
    fields = immutable_fields_of(error)
    if not fields:
        raise error
    raise immutable_error(error, fields, location) from error


def _observed(
    body: bytes | None, location: ObjectLocation, known: str | None
) -> Absent | Present[LiveObject] | Unchanged:
    if body is None:
        return Absent()
    is_known = known is not None and is_body(body, known, location.api_version)
    return Unchanged() if is_known else observation_of(body, location.location)


def _apply_body(request: ApplyIntent, live: Json) -> Json:
    """The body of an apply to an existing object."""
    return with_ignored_fields(
        request.tree, live, manager_fields(live, request.manager) or NO_FIELDS, request.ignored_fields
    )


def _is_complete(request: ApplyIntent, sent: Json, after: Json) -> bool:
    """Whether an apply to `after`, the object that an apply of `sent` made, would change nothing.

    What the API server has in another form, or left out, is for a dry run to tell.
    """
    if is_deleting(after) or not contains(after, sent):
        return False
    return not request.ignored_fields or same(_apply_body(request, after), sent)


def _with_namespace(body: Json, target: ApplyTarget) -> Json:
    """The body with the namespace, or without it for a cluster-scoped kind."""
    return (
        set_at(body, _NAMESPACE, target.location.namespace) if target.served.namespaced else remove_at(body, _NAMESPACE)
    )

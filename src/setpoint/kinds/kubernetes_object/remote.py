"""Observe, dry run, apply and delete of objects in a cluster. Imported on first use: it needs the Kubernetes client."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import msgspec

from setpoint.clients.http import decode_tree
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.discovery import ApiResource
from setpoint.clients.kubernetes.requests import ApiWriteOptions as Options
from setpoint.clients.kubernetes.requests import DeleteOptions, DeletePropagation, Endpoint, PatchType
from setpoint.core.decide import Decision
from setpoint.core.plan import Action, PlannedWrite
from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import same, sha256_hex
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path, remove_at, set_at
from setpoint.engine.kind import Absent, Intent, LiveObservation, Location, Present, Unchanged
from setpoint.engine.ports import Clock
from setpoint.engine.resource import Resource
from setpoint.errors import (
    HeldByOthers,
    KindNotServed,
    OperationRunning,
    RemoteConflict,
    RemoteInvalid,
    RemoteRefused,
    RemoteUnavailable,
    SetpointError,
)
from setpoint.kinds.kubernetes_object.apply_result import (
    apply_changes,
    conflict_error,
    creation_changes,
    immutable_changes,
    immutable_error,
    immutable_fields_of,
    is_handed_over,
    is_manual_change,
    parse_field_path,
    require_unclaimed,
    unknown_fields_of,
)
from setpoint.kinds.kubernetes_object.clusters import Clusters, ObjectLocation, parse_object_location
from setpoint.kinds.kubernetes_object.deletion import is_deleting, pending_deletion, require_unprotected
from setpoint.kinds.kubernetes_object.field_schemas import is_defined, require_known_fields
from setpoint.kinds.kubernetes_object.managed_fields import (
    NO_FIELDS,
    manager_fields,
    setpoint_projection,
    with_ignored_fields,
)
from setpoint.kinds.kubernetes_object.manifest import spec_of
from setpoint.kinds.kubernetes_object.options import (
    ApplyIntent,
    DeletionSettings,
    apply_intent_of,
    deletion_settings_of,
)
from setpoint.kinds.kubernetes_object.spec import LiveObject
from setpoint.kinds.kubernetes_object.takeover import content_patch, takeover_patch, with_managers_of
from setpoint.kinds.kubernetes_object.tenant_clusters import TenantClusters

# The write that reverts a manual change.
REVERT: Final = "put back"
_objects: Final[msgspec.json.Decoder[dict[str, Json]]] = msgspec.json.Decoder(dict[str, Any])
_UID: Final = Path(("metadata", "uid"))
_NAMESPACE: Final = Path(("metadata", "namespace"))


@dataclass(frozen=True, slots=True)
class ApplyTarget:
    """An object, and how it is reached."""

    location: ObjectLocation
    client: KubernetesClient
    served: ApiResource

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of the object."""
        return self.served.endpoint(self.location.namespace, self.location.name)


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

    # --- Observing ----------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None) -> Absent | Present[LiveObject] | Unchanged:
        """Reads the object. Where its kind is not served in any version, it is absent."""
        body = await self._body(parse_object_location(location))
        if body is None:
            return Absent()
        digest = sha256_hex(body)
        return Unchanged() if digest == known else _observation(decode_tree(_objects, body, location), digest)

    async def is_same_object(self, resource: Resource, location: Location) -> bool:
        """Whether the object at `location` is the known one: in another version, or by another ID of its cluster."""
        found = await self.observe(location, None)
        return isinstance(found, Present) and found.live.uid == text_at(resource.status, "object", "uid") != ""

    async def _body(self, location: ObjectLocation) -> bytes | None:
        try:
            return await self._get(location)
        except KindNotServed:
            # The kind may have been added or removed since the last discovery.
            access = await self.clusters.connect(location.cluster)
            access.discovery.forget(location.api_version)
        return await self._get(location)

    async def _get(self, location: ObjectLocation) -> bytes | None:
        target = await self._find_target(location)
        return None if target is None else await target.client.get(target.endpoint)

    async def _target(self, location: ObjectLocation) -> ApplyTarget:
        access = await self.clusters.connect(location.cluster)
        return ApplyTarget(location, access.client, await access.discovery.find(location.api_version, location.kind))

    async def _find_target(self, location: ObjectLocation) -> ApplyTarget | None:
        """The target, in another version if its own is no longer served; None if the kind is not served at all."""
        try:
            return await self._target(location)
        except KindNotServed as error:
            served = await self._served_versions(location)
            if any(one.api_version == location.api_version for one in served):
                raise OperationRunning(
                    f"{location.title} waits for its kind, which the cluster begins to serve", after=1
                ) from error
        access = await self.clusters.connect(location.cluster)
        return ApplyTarget(location, access.client, served[0]) if served else None

    async def _served_versions(self, location: ObjectLocation) -> list[ApiResource]:
        """The kind in all served versions; RemoteUnavailable if a server that may serve it does not answer."""
        discovery = (await self.clusters.connect(location.cluster)).discovery
        try:
            everything, silent = await discovery.all_resources()
        except KindNotServed as nothing:
            raise RemoteUnavailable(f"{location.title}: this is no API server: {nothing}") from nothing
        group = location.api_version.rpartition("/")[0]
        if group in silent:
            raise RemoteUnavailable(f"{location.title}: no server answers for {group}")
        return [one for one in everything if (one.group, one.kind) == (group, location.kind)]

    # --- Dry run ------------------------------------------------------------------------------------------------------

    async def dry_run(self, intent: Intent, observed: LiveObservation, decision: Decision) -> DryRunResult:
        """The writes that are left, and their result, by a dry run of the API server."""
        request, location = apply_intent_of(intent), parse_object_location(intent.location)
        target = await self._write_target(location)
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
        body, name = _apply_body(request, taken), "update"
        try:
            try:
                answer = await self._apply(target, request, body, dry_run=True)
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

    async def _write_target(self, location: ObjectLocation) -> ApplyTarget:
        """The target of a write: in the version of the manifest only."""
        try:
            return await self._target(location)
        except KindNotServed as error:
            other = await self._find_target(location)
            if other is None:
                raise OperationRunning(f"{location.title} waits for its kind: {error}", after=1) from error
            if other.served.api_version == location.api_version:
                # The kind has been added meanwhile.
                return other
            if await is_defined(other.client, other.served, location.api_version.rpartition("/")[2]):
                raise OperationRunning(
                    f"{location.title} waits for its version, which the cluster begins to serve", after=1
                ) from error
            raise KindNotServed(
                f"{location.title}: the cluster serves {location.kind} in {other.served.api_version}, and no longer in "
                f"{location.api_version}: change apiVersion in the manifest"
            ) from error

    # --- Writing ------------------------------------------------------------------------------------------------------

    async def create(self, intent: Intent) -> Present[LiveObject]:
        """Creates the object, and returns it as the API server has it now."""
        target = await self._write_target(parse_object_location(intent.location))
        answer = await self._create(target, apply_intent_of(intent), dry_run=False)
        return _observation(decode_tree(_objects, answer, target.location.title), sha256_hex(answer))

    async def _create(self, target: ApplyTarget, request: ApplyIntent, *, dry_run: bool) -> bytes:
        """The new object. One that another writer created meanwhile is observed first."""
        try:
            return await self._apply(target, request, request.tree, dry_run=dry_run)
        except HeldByOthers as error:
            raise RemoteConflict(f"{target.location.title} was created by another writer meanwhile: {error}") from error

    async def update(self, intent: Intent, write: PlannedWrite, live: Json) -> Present[LiveObject]:
        """Sends one write of the plan to that very object, and returns it as the API server has it now."""
        request, location = apply_intent_of(intent), parse_object_location(intent.location)
        if write.action is Action.REPLACE:
            await self._delete(location, live, request.deletion)
            raise OperationRunning(
                f"{location.title} is deleted first, and then created again", after=0, begun=Action.REPLACE.value
            )
        target = await self._write_target(location)
        taken = await self._take_over(target, request, live)
        body = set_at(_apply_body(request, taken), _UID, text_at(live, "metadata", "uid"))
        try:
            answer = await self._apply(target, request, body, force=write.name == REVERT)
        except RemoteInvalid as error:
            if str(_UID) in immutable_fields_of(error):
                raise RemoteConflict(f"{location.title} was made again by another writer meanwhile: {error}") from error
            _refuse(error, location)
        return _observation(decode_tree(_objects, answer, location.title), sha256_hex(answer))

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
        target = await self._write_target(parse_object_location(location))
        options = Options(manager, dry_run)
        answer = await target.client.patch(target.endpoint, operations, PatchType.JSON, options)
        return _observation(decode_tree(_objects, answer, target.location.title), sha256_hex(answer))

    async def delete(self, location: Location, live: Json, resource: Resource) -> None:
        """Deletes the object; StillWaiting while finalizers hold it."""
        await self._delete(parse_object_location(location), live, deletion_settings_of(resource, spec_of(resource)))

    async def _delete(self, location: ObjectLocation, live: Json, deletion: DeletionSettings) -> None:
        require_unprotected(deletion, location)
        if not is_deleting(live):
            uid, propagation = text_at(live, "metadata", "uid"), DeletePropagation(deletion.propagation)
            # Objects are deleted with their kind: the read that follows shows it.
            with suppress(KindNotServed):
                target = await self._find_target(location)
                if target is not None:
                    await target.client.delete(target.endpoint, DeleteOptions(uid or None, propagation=propagation))
        after = await self._body(location)
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
                refused = await _with_all_unknown_fields(error, target, body)
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


async def _with_all_unknown_fields(error: RemoteInvalid, target: ApplyTarget, body: Json) -> RemoteRefused:
    """The error with all unknown fields: an apply names only the first one, a dry-run create names all."""
    if not unknown_fields_of(error):
        return error
    try:
        await target.client.create(target.endpoint, body, Options(dry_run=True))
    except RemoteRefused as refused:
        return refused if refused.unknown_fields else error
    except SetpointError:
        return error
    return error


def _refuse(error: RemoteInvalid, location: ObjectLocation) -> NoReturn:
    fields = immutable_fields_of(error)
    if not fields:
        raise error
    raise immutable_error(error, fields, location) from error


def _observation(live: dict[str, Json], digest: str) -> Present[LiveObject]:
    api_version, kind = text_at(live, "apiVersion"), text_at(live, "kind")
    names = {member: text_at(live, "metadata", member) for member in ("namespace", "name", "uid")}
    shown: dict[str, Json] = {
        "apiVersion": api_version,
        "kind": kind,
        **{key: one for key, one in names.items() if one},
    }
    observed = LiveObject(api_version, kind, names["uid"], is_deleting(live), setpoint_projection(live).to_data())
    return Present(observed, digest, text_at(live, "metadata", "resourceVersion") or None, {"object": shown}, live)


def _apply_body(request: ApplyIntent, live: Json) -> Json:
    """The body of an apply to an existing object."""
    return with_ignored_fields(
        request.tree, live, manager_fields(live, request.manager) or NO_FIELDS, request.ignored_fields
    )


def _with_namespace(body: Json, target: ApplyTarget) -> Json:
    """The body with the namespace, or without it for a cluster-scoped kind."""
    return (
        set_at(body, _NAMESPACE, target.location.namespace) if target.served.namespaced else remove_at(body, _NAMESPACE)
    )

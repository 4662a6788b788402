"""Observe, dry run, apply and delete of objects in a cluster. Imported on first use: it needs the Kubernetes client."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import msgspec

from setpoint.clients.http import decode_response
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.discovery import ApiResource
from setpoint.clients.kubernetes.requests import ApiWriteOptions as Options
from setpoint.clients.kubernetes.requests import DeleteOptions, DeletePropagation, Endpoint
from setpoint.core.decide import Decision
from setpoint.core.plan import Action, PlannedWrite
from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import sha256_hex
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
    is_manual_change,
    require_unclaimed,
)
from setpoint.kinds.kubernetes_object.clusters import Clusters, ObjectLocation, parse_object_location
from setpoint.kinds.kubernetes_object.deletion import is_deleting, pending_deletion, require_unprotected
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

# The write that sets again what somebody has changed by hand.
REVERT: Final = "put back"
_objects: Final[msgspec.json.Decoder[dict[str, Json]]] = msgspec.json.Decoder(dict[str, Any])
_UID: Final = Path(("metadata", "uid"))
_NAMESPACE: Final = Path(("metadata", "namespace"))


@dataclass(frozen=True, slots=True)
class ApplyTarget:
    """An object, and the way to it."""

    place: ObjectLocation
    client: KubernetesClient
    served: ApiResource

    @property
    def endpoint(self) -> Endpoint:
        """Where it is."""
        return self.served.endpoint(self.place.namespace, self.place.name)


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """What is left to write, and the object after that; None for one that gives way to another first."""

    writes: tuple[PlannedWrite, ...]
    after: Json = None


@dataclass(slots=True)
class RemoteObjects:
    """What can be asked of the clusters."""

    clusters: Clusters
    clock: Clock

    # --- Looking ------------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None) -> Absent | Present[LiveObject] | Unchanged:
        """A look. Where no such kind is served in any version, there is no such object either."""
        body = await self._body(parse_object_location(location))
        if body is None:
            return Absent()
        mark = sha256_hex(body)
        return Unchanged() if mark == known else _observation(decode_response(_objects, body, location), mark)

    async def is_same_object(self, resource: Resource, location: Location) -> bool:
        """Whether the object there is the one of before: in another version, or by another name of its cluster."""
        look = await self.observe(location, None)
        return isinstance(look, Present) and look.live.uid == text_at(resource.status, "object", "uid") != ""

    async def _body(self, place: ObjectLocation) -> bytes | None:
        try:
            return await self._get(place)
        except KindNotServed:
            # It may have come, or gone, since somebody asked which kinds there are.
            reach = await self.clusters.reach(place.cluster)
            reach.discovery.forget(place.api_version)
        return await self._get(place)

    async def _get(self, place: ObjectLocation) -> bytes | None:
        target = await self._way_to(place)
        return None if target is None else await target.client.get(target.endpoint)

    async def _target(self, place: ObjectLocation) -> ApplyTarget:
        reach = await self.clusters.reach(place.cluster)
        return ApplyTarget(place, reach.client, await reach.discovery.find(place.api_version, place.kind))

    async def _way_to(self, place: ObjectLocation) -> ApplyTarget | None:
        """The way to the object, in another version when its own is served no longer; None for no such kind at all."""
        try:
            return await self._target(place)
        except KindNotServed as error:
            served = await self._served_now(place)
            if any(one.api_version == place.api_version for one in served):
                raise OperationRunning(f"{place.title} waits for its kind, which is just coming", after=1) from error
        reach = await self.clusters.reach(place.cluster)
        return ApplyTarget(place, reach.client, served[0]) if served else None

    async def _served_now(self, place: ObjectLocation) -> list[ApiResource]:
        """The kind in all its versions. From a server that is silent, or is none, nothing is concluded."""
        discovery = (await self.clusters.reach(place.cluster)).discovery
        try:
            everything, silent = await discovery.all_resources()
        except KindNotServed as nothing:
            raise RemoteUnavailable(f"{place.title}: this is no API server: {nothing}") from nothing
        group = place.api_version.rpartition("/")[0]
        if group in silent:
            raise RemoteUnavailable(f"{place.title}: nobody answers for {group}")
        return [one for one in everything if (one.group, one.kind) == (group, place.kind)]

    # --- Rehearsing ---------------------------------------------------------------------------------------------------

    async def forecast(self, intent: Intent, look: LiveObservation, decision: Decision) -> DryRunResult:
        """What is left to write, and what comes of it, by the word of the API server."""
        asked, place = apply_intent_of(intent), parse_object_location(intent.location)
        target = await self._served(place)
        if isinstance(look, Absent):
            made = decode_response(_objects, await self._made(target, asked, is_rehearsal=True), place.title)
            return DryRunResult((PlannedWrite(Action.CREATE, "create", creation_changes(made)),), made)
        live = look.whole
        if is_deleting(live):
            raise pending_deletion(live, place, asked.removal, self.clock.now())
        if not asked.force_conflicts:
            require_unclaimed(live, asked.manager, place)
        return await self._foreseen(target, asked, live, decision)

    async def _foreseen(self, target: ApplyTarget, asked: ApplyIntent, live: Json, decision: Decision) -> DryRunResult:
        body, name = _apply_body(asked, live), "update"
        try:
            try:
                answer = await self._applied(target, asked, body, is_rehearsal=True)
            except HeldByOthers as error:
                if not is_manual_change(error, live, decision):
                    raise
                name = REVERT
                answer = await self._applied(target, asked, body, is_rehearsal=True, force=True)
        except RemoteInvalid as error:
            fields = immutable_fields_of(error)
            if not fields or not asked.may_replace:
                _refuse(error, target.place)
            require_unprotected(asked.removal, target.place)
            return DryRunResult((PlannedWrite(Action.REPLACE, "replace", immutable_changes(fields, live, body)),))
        after = decode_response(_objects, answer, target.place.title)
        changes = apply_changes(live, after, asked.manager)
        return DryRunResult((PlannedWrite(Action.UPDATE, name, changes),) if changes else (), after)

    async def _served(self, place: ObjectLocation) -> ApplyTarget:
        """The way to write it: in the version of its manifest, and no other."""
        try:
            return await self._target(place)
        except KindNotServed as error:
            other = await self._way_to(place)
            if other is None:
                raise OperationRunning(f"{place.title} waits for its kind: {error}", after=1) from error
            if other.served.api_version == place.api_version:
                # It has come meanwhile.
                return other
            raise KindNotServed(
                f"{place.title}: the cluster serves {place.kind} in {other.served.api_version}, and no longer in "
                f"{place.api_version}: change apiVersion in the manifest"
            ) from error

    # --- Writing ------------------------------------------------------------------------------------------------------

    async def create(self, intent: Intent) -> Present[LiveObject]:
        """Creates the object, and returns it as the API server has it now."""
        target = await self._served(parse_object_location(intent.location))
        answer = await self._made(target, apply_intent_of(intent), is_rehearsal=False)
        return _observation(decode_response(_objects, answer, target.place.title), sha256_hex(answer))

    async def _made(self, target: ApplyTarget, asked: ApplyIntent, *, is_rehearsal: bool) -> bytes:
        """The new object. One that another writer created meanwhile is observed first."""
        try:
            return await self._applied(target, asked, asked.tree, is_rehearsal=is_rehearsal)
        except HeldByOthers as error:
            raise RemoteConflict(f"{target.place.title} has come from somewhere else: {error}") from error

    async def update(self, intent: Intent, write: PlannedWrite, live: Json) -> Present[LiveObject]:
        """Sends one write of the plan to that very object, and returns it as the API server has it now."""
        asked, place = apply_intent_of(intent), parse_object_location(intent.location)
        if write.action is Action.REPLACE:
            await self._remove(place, live, asked.removal)
            raise OperationRunning(f"{place.title} gives way to a new one", after=0, begun=Action.REPLACE.value)
        body = set_at(_apply_body(asked, live), _UID, text_at(live, "metadata", "uid"))
        try:
            answer = await self._applied(await self._served(place), asked, body, force=write.name == REVERT)
        except RemoteInvalid as error:
            _refuse(error, place)
        return _observation(decode_response(_objects, answer, place.title), sha256_hex(answer))

    async def delete(self, location: Location, live: Json, resource: Resource) -> None:
        """Removes the object; what holds it is raised."""
        await self._remove(parse_object_location(location), live, deletion_settings_of(resource, spec_of(resource)))

    async def _remove(self, place: ObjectLocation, live: Json, removal: DeletionSettings) -> None:
        require_unprotected(removal, place)
        if not is_deleting(live):
            uid, propagation = text_at(live, "metadata", "uid"), DeletePropagation(removal.propagation)
            # A kind that has gone has taken its objects along: the look that follows tells.
            with suppress(KindNotServed):
                target = await self._way_to(place)
                if target is not None:
                    await target.client.delete(target.endpoint, DeleteOptions(uid or None, propagation=propagation))
        after = await self._body(place)
        if after is not None:
            raise pending_deletion(decode_response(_objects, after, place.title), place, removal, self.clock.now())

    async def _applied(
        self, target: ApplyTarget, asked: ApplyIntent, body: Json, *, is_rehearsal: bool = False, force: bool = False
    ) -> bytes:
        """The object after `body` was applied, or would be, as the API server sent it."""
        options, placed = Options(asked.manager, is_rehearsal), _with_namespace(body, target)
        try:
            return await target.client.apply(target.endpoint, placed, options, force=force or asked.force_conflicts)
        except SetpointError as error:
            told = await self._told(error, target, asked, placed)
            if told is error:
                raise
            raise told from error

    async def _told(self, error: SetpointError, target: ApplyTarget, asked: ApplyIntent, body: Json) -> SetpointError:
        """The error in the words of this kind; the very same where it has none."""
        place = target.place
        match error:
            case HeldByOthers():
                return conflict_error(error, place, asked.ignored_fields)
            case RemoteInvalid():
                return await _with_all_unknown_fields(error, target, body)
            case KindNotServed():
                reach = await self.clusters.reach(place.cluster)
                reach.discovery.forget(place.api_version)
                return OperationRunning(f"{place.title} waits for its kind: {error}", after=1)
            case RemoteRefused() if await self._lacks_namespace(target):
                return OperationRunning(f"{place.title} waits for its namespace: {error}", after=1)
            case _:
                return error

    async def _lacks_namespace(self, target: ApplyTarget) -> bool:
        """Whether it is not there, or goes."""
        if not target.served.namespaced:
            return False
        try:
            found = await target.client.get(Endpoint("", "v1", "namespaces", None, target.place.namespace))
        except RemoteRefused:
            return False
        return found is None or is_deleting(decode_response(_objects, found, target.place.title))


async def _with_all_unknown_fields(error: RemoteInvalid, target: ApplyTarget, body: Json) -> RemoteRefused:
    """An apply names but the first field that does not exist: one that would make the object names them all."""
    if not any("not declared in schema" in message for _, message in error.causes):
        return error
    try:
        await target.client.create(target.endpoint, body, Options(dry_run=True))
    except RemoteRefused as refused:
        return refused if "unknown field" in str(refused) else error
    except SetpointError:
        return error
    return error


def _refuse(error: RemoteInvalid, place: ObjectLocation) -> NoReturn:
    fields = immutable_fields_of(error)
    if not fields:
        raise error
    raise immutable_error(error, fields, place) from error


def _observation(live: dict[str, Json], mark: str) -> Present[LiveObject]:
    api_version, kind = text_at(live, "apiVersion"), text_at(live, "kind")
    names = {member: text_at(live, "metadata", member) for member in ("namespace", "name", "uid")}
    shown: dict[str, Json] = {
        "apiVersion": api_version,
        "kind": kind,
        **{key: one for key, one in names.items() if one},
    }
    look = LiveObject(api_version, kind, names["uid"], is_deleting(live), setpoint_projection(live).to_data())
    return Present(look, mark, text_at(live, "metadata", "resourceVersion") or None, {"object": shown}, live)


def _apply_body(asked: ApplyIntent, live: Json) -> Json:
    """What is sent for an object that is there."""
    return with_ignored_fields(asked.tree, live, manager_fields(live, asked.manager) or NO_FIELDS, asked.ignored_fields)


def _with_namespace(body: Json, target: ApplyTarget) -> Json:
    """With its namespace, as its kind has one or none."""
    return set_at(body, _NAMESPACE, target.place.namespace) if target.served.namespaced else remove_at(body, _NAMESPACE)

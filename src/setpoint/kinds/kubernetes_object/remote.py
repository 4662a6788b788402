"""The verbs of the kind on a real cluster. Loaded by those who have something to ask of one."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import msgspec

from setpoint.clients.kube_discovery import Served
from setpoint.clients.kube_endpoints import Deletion as DeleteOptions
from setpoint.clients.kube_endpoints import Endpoint, Propagation
from setpoint.clients.kube_endpoints import Write as Options
from setpoint.clients.kube_pages import decoded
from setpoint.clients.kubernetes import KubernetesClient
from setpoint.core.canonical import body_digest
from setpoint.core.decide import Decision
from setpoint.core.kubernetes import text_at
from setpoint.core.paths import Path, remove_at, set_at
from setpoint.core.plan import Action, Write
from setpoint.core.values import Json
from setpoint.engine.kind import Absent, Intent, Location, Look, Present, Unmoved
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
from setpoint.kinds.kubernetes_object.asking import Asked, asked_by
from setpoint.kinds.kubernetes_object.changes import between, born, named
from setpoint.kinds.kubernetes_object.clusters import Clusters
from setpoint.kinds.kubernetes_object.conflicts import conflict, fixed_fields, immutable, is_by_hand, require_free
from setpoint.kinds.kubernetes_object.declared import Removal, removal_of
from setpoint.kinds.kubernetes_object.departures import is_deleting, require_unprotected, still_there
from setpoint.kinds.kubernetes_object.left_alone import without_left_alone
from setpoint.kinds.kubernetes_object.manifest import spec_of
from setpoint.kinds.kubernetes_object.ownership import fields_of, kept
from setpoint.kinds.kubernetes_object.place import Place, place_at
from setpoint.kinds.kubernetes_object.projection import NO_FIELDS
from setpoint.kinds.kubernetes_object.spec import LiveObject

# The write that sets again what somebody has changed by hand.
PUT_BACK: Final = "put back"
_objects: Final[msgspec.json.Decoder[dict[str, Json]]] = msgspec.json.Decoder(dict[str, Any])
_UID: Final = Path(("metadata", "uid"))
_NAMESPACE: Final = Path(("metadata", "namespace"))


@dataclass(frozen=True, slots=True)
class Target:
    """An object, and the way to it."""

    place: Place
    client: KubernetesClient
    served: Served

    @property
    def endpoint(self) -> Endpoint:
        """Where it is."""
        return self.served.endpoint(self.place.namespace, self.place.name)


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What is left to write, and the object after that; None for one that gives way to another first."""

    writes: tuple[Write, ...]
    after: Json = None


@dataclass(slots=True)
class Remote:
    """What can be asked of the clusters."""

    clusters: Clusters
    clock: Clock

    # --- Looking ------------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None) -> Absent | Present[LiveObject] | Unmoved:
        """A look. Where no such kind is served in any version, there is no such object either."""
        body = await self._body(place_at(location))
        if body is None:
            return Absent()
        mark = body_digest(body)
        return Unmoved() if mark == known else _seen(decoded(_objects, body, location), mark)

    async def stands_for(self, resource: Resource, location: Location) -> bool:
        """Whether the object there is the one of before: in another version, or by another name of its cluster."""
        look = await self.observe(location, None)
        return isinstance(look, Present) and look.live.uid == text_at(resource.status, "object", "uid") != ""

    async def _body(self, place: Place) -> bytes | None:
        try:
            return await self._get(place)
        except KindNotServed:
            # It may have come, or gone, since somebody asked which kinds there are.
            reach = await self.clusters.reach(place.cluster)
            reach.discovery.forget(place.api_version)
        return await self._get(place)

    async def _get(self, place: Place) -> bytes | None:
        target = await self._way_to(place)
        return None if target is None else await target.client.get(target.endpoint)

    async def _target(self, place: Place) -> Target:
        reach = await self.clusters.reach(place.cluster)
        return Target(place, reach.client, await reach.discovery.find(place.api_version, place.kind))

    async def _way_to(self, place: Place) -> Target | None:
        """The way to the object, in another version when its own is served no longer; None for no such kind at all."""
        try:
            return await self._target(place)
        except KindNotServed as error:
            served = await self._served_now(place)
            if any(one.api_version == place.api_version for one in served):
                raise OperationRunning(f"{place.title} waits for its kind, which is just coming", after=1) from error
        reach = await self.clusters.reach(place.cluster)
        return Target(place, reach.client, served[0]) if served else None

    async def _served_now(self, place: Place) -> list[Served]:
        """The kind in all its versions. From a server that is silent, or is none, nothing is concluded."""
        discovery = (await self.clusters.reach(place.cluster)).discovery
        try:
            everything, silent = await discovery.everything()
        except KindNotServed as nothing:
            raise RemoteUnavailable(f"{place.title}: this is no API server: {nothing}") from nothing
        group = place.api_version.rpartition("/")[0]
        if group in silent:
            raise RemoteUnavailable(f"{place.title}: nobody answers for {group}")
        return [one for one in everything if (one.group, one.kind) == (group, place.kind)]

    # --- Rehearsing ---------------------------------------------------------------------------------------------------

    async def foresee(self, intent: Intent, look: Look, decision: Decision) -> Foreseen:
        """What is left to write, and what comes of it, by the word of the API server."""
        asked, place = asked_by(intent), place_at(intent.location)
        target = await self._served(place)
        if isinstance(look, Absent):
            made = await self._made(target, asked, is_rehearsal=True)
            return Foreseen((Write(Action.CREATE, "create", born(made)),), made)
        live = look.whole
        if is_deleting(live):
            raise still_there(live, place, asked.removal, self.clock.now())
        if not asked.forces:
            require_free(live, asked.manager, place)
        return await self._foreseen(target, asked, live, decision)

    async def _foreseen(self, target: Target, asked: Asked, live: Json, decision: Decision) -> Foreseen:
        body, name = _sent(asked, live), "update"
        try:
            try:
                after = await self._applied(target, asked, body, is_rehearsal=True)
            except HeldByOthers as error:
                if not is_by_hand(error, live, decision):
                    raise
                name = PUT_BACK
                after = await self._applied(target, asked, body, is_rehearsal=True, force=True)
        except RemoteInvalid as error:
            fields = fixed_fields(error)
            if not fields or not asked.may_replace:
                _refuse(error, target.place)
            require_unprotected(asked.removal, target.place)
            return Foreseen((Write(Action.REPLACE, "replace", named(fields, live, body)),))
        changes = between(live, after, asked.manager)
        return Foreseen((Write(Action.UPDATE, name, changes),) if changes else (), after)

    async def _served(self, place: Place) -> Target:
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

    async def create(self, intent: Intent) -> None:
        """Makes the object."""
        await self._made(await self._served(place_at(intent.location)), asked_by(intent), is_rehearsal=False)

    async def _made(self, target: Target, asked: Asked, *, is_rehearsal: bool) -> Json:
        """The new object. One that somebody made meanwhile is looked at first."""
        try:
            return await self._applied(target, asked, asked.tree, is_rehearsal=is_rehearsal)
        except HeldByOthers as error:
            raise RemoteConflict(f"{target.place.title} has come from somewhere else: {error}") from error

    async def update(self, intent: Intent, write: Write, live: Json) -> None:
        """Sends one write of the plan to that very object."""
        asked, place = asked_by(intent), place_at(intent.location)
        if write.action is Action.REPLACE:
            await self._remove(place, live, asked.removal)
            raise OperationRunning(f"{place.title} gives way to a new one", after=0, begun=Action.REPLACE.value)
        body = set_at(_sent(asked, live), _UID, text_at(live, "metadata", "uid"))
        try:
            await self._applied(await self._served(place), asked, body, force=write.name == PUT_BACK)
        except RemoteInvalid as error:
            _refuse(error, place)

    async def delete(self, location: Location, live: Json, resource: Resource) -> None:
        """Removes the object; what holds it is raised."""
        await self._remove(place_at(location), live, removal_of(resource, spec_of(resource)))

    async def _remove(self, place: Place, live: Json, removal: Removal) -> None:
        require_unprotected(removal, place)
        if not is_deleting(live):
            uid, propagation = text_at(live, "metadata", "uid"), Propagation(removal.propagation)
            # A kind that has gone has taken its objects along: the look that follows tells.
            with suppress(KindNotServed):
                target = await self._way_to(place)
                if target is not None:
                    await target.client.delete(target.endpoint, DeleteOptions(uid or None, propagation=propagation))
        after = await self._body(place)
        if after is not None:
            raise still_there(decoded(_objects, after, place.title), place, removal, self.clock.now())

    async def _applied(
        self, target: Target, asked: Asked, body: Json, *, is_rehearsal: bool = False, force: bool = False
    ) -> Json:
        """The object after `body` was applied, or would be."""
        options, placed = Options(asked.manager, is_rehearsal), _placed(body, target)
        try:
            answer = await target.client.apply(target.endpoint, placed, options, force=force or asked.forces)
        except SetpointError as error:
            told = await self._told(error, target, asked, placed)
            if told is error:
                raise
            raise told from error
        return decoded(_objects, answer, target.place.title)

    async def _told(self, error: SetpointError, target: Target, asked: Asked, body: Json) -> SetpointError:
        """The error in the words of this kind; the very same where it has none."""
        place = target.place
        match error:
            case HeldByOthers():
                return conflict(error, place, asked.left_alone)
            case RemoteInvalid():
                return await _all_that_is_wrong(error, target, body)
            case KindNotServed():
                reach = await self.clusters.reach(place.cluster)
                reach.discovery.forget(place.api_version)
                return OperationRunning(f"{place.title} waits for its kind: {error}", after=1)
            case RemoteRefused() if await self._lacks_namespace(target):
                return OperationRunning(f"{place.title} waits for its namespace: {error}", after=1)
            case _:
                return error

    async def _lacks_namespace(self, target: Target) -> bool:
        """Whether it is not there, or goes."""
        if not target.served.namespaced:
            return False
        try:
            found = await target.client.get(Endpoint("", "v1", "namespaces", None, target.place.namespace))
        except RemoteRefused:
            return False
        return found is None or is_deleting(decoded(_objects, found, target.place.title))


async def _all_that_is_wrong(error: RemoteInvalid, target: Target, body: Json) -> RemoteRefused:
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


def _refuse(error: RemoteInvalid, place: Place) -> NoReturn:
    fields = fixed_fields(error)
    if not fields:
        raise error
    raise immutable(error, fields, place) from error


def _seen(live: dict[str, Json], mark: str) -> Present[LiveObject]:
    api_version, kind = text_at(live, "apiVersion"), text_at(live, "kind")
    names = {member: text_at(live, "metadata", member) for member in ("namespace", "name", "uid")}
    shown: dict[str, Json] = {
        "apiVersion": api_version,
        "kind": kind,
        **{key: one for key, one in names.items() if one},
    }
    look = LiveObject(api_version, kind, names["uid"], is_deleting(live), kept(live).to_data())
    return Present(look, mark, text_at(live, "metadata", "resourceVersion") or None, {"object": shown}, live)


def _sent(asked: Asked, live: Json) -> Json:
    """What is sent for an object that is there."""
    return without_left_alone(asked.tree, live, fields_of(live, asked.manager) or NO_FIELDS, asked.left_alone)


def _placed(body: Json, target: Target) -> Json:
    """With its namespace, as its kind has one or none."""
    return set_at(body, _NAMESPACE, target.place.namespace) if target.served.namespaced else remove_at(body, _NAMESPACE)

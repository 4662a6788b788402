"""Writes notes as Events, and reads them back."""

import logging
from typing import Final

from setpoint.clients.kube_endpoints import Endpoint, Patch, Selection
from setpoint.clients.kubernetes import KubernetesClient
from setpoint.engine.ports import Note
from setpoint.engine.resource import ResourceRef
from setpoint.errors import AlreadyExists, RemoteConflict, RemoteError
from setpoint.stores.kubernetes.authors import ENGINE
from setpoint.stores.kubernetes.events import COMPONENT, Told, counted_up, event_for, event_in, name_of, told_by
from setpoint.stores.kubernetes.served import Territory

_log: Final = logging.getLogger(__name__)
_EVENTS: Final = Endpoint("", "v1", "events")
_OURS: Final = f"source={COMPONENT}"
# Somebody else counts up the same: seldom, and never for long.
_TRIES: Final = 5


class NoteKeeper:
    """The notes of a store."""

    def __init__(self, client: KubernetesClient, territory: Territory) -> None:
        self._client = client
        self._territory = territory

    async def note(self, note: Note) -> None:
        """A new Event, or one more of the same.

        One that the cluster does not take, such as in a namespace that is being deleted, is told in the log and given
        up: what it is about is in the status, and the step that tells it goes on.
        """
        try:
            await self._note(note)
        except RemoteError as error:
            _log.warning("event not written", extra={"ref": str(note.ref), "reason": note.reason, "why": str(error)})

    async def _note(self, note: Note) -> None:
        place = _EVENTS.named(name_of(note), note.ref.namespace)
        for _ in range(_TRIES):
            raw = await self._client.get(place)
            try:
                if raw is None:
                    await self._client.create(place, event_for(note, self._version_of(note.ref)), ENGINE)
                else:
                    await self._client.patch(place, counted_up(event_in(raw), note), Patch.MERGE, ENGINE)
            except (AlreadyExists, RemoteConflict):
                continue
            return

    async def notes(self, ref: ResourceRef | None) -> tuple[Note, ...]:
        """Those of one resource, or all, oldest first."""
        place = self._territory.namespace if ref is None else ref.namespace
        endpoint = Endpoint("", "v1", "events", place)
        fields = _OURS
        if ref is not None:
            fields = f"{_OURS},involvedObject.kind={ref.kind},involvedObject.name={ref.name}"
        found: list[Told] = []
        async for page in self._client.pages(endpoint, Selection(fields=fields)):
            found = [] if page.is_first else found
            found += [told_by(event_in(item)) for item in page.items]
        found.sort(key=lambda one: (one.note.at, one.order))
        return tuple(one.note for one in found if ref is None or one.note.ref == ref)

    def _version_of(self, ref: ResourceRef) -> str:
        kind = self._territory.kinds.get((ref.group, ref.kind))
        return "v1" if kind is None else kind.version

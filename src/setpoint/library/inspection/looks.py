"""When live objects were looked at, when they are next, and whether another writer had changed them.

A step that finds nothing to do commits nothing, so the store does not have its time: the process that runs on the store
is asked. Without one there is what is on record, and no time is made up.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from setpoint.core.conditions import ConditionReason, ConditionType
from setpoint.core.decide import Decision, DecisionReason
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.conditions import condition_of
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import ENGINE_STATE, StoredState
from setpoint.errors import SetpointError

if TYPE_CHECKING:
    from setpoint.clients.admin_api import ResourceLook

# The member of `status.setpoint` with a look: it is shown, and not stored.
LOOK: Final = "look"
# A process that is stopped, or busy, delays a listing by no more than this.
_SECONDS: Final = 1.0
_DRIFTED: Final = (Decision.DRIFTED.value, Decision.BOTH.value)


class Drift(StrEnum):
    """What became of the change of another writer that the last step found."""

    NONE = ""
    CORRECTED = "corrected"
    # The resource is only observed, or the correction waits for its time.
    WITHHELD = "withheld"
    # The other writer keeps changing it back.
    CONTESTED = "contested"


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of the looks at one live object; times are RFC 3339, and empty where they are unknown."""

    drift: Drift = Drift.NONE
    last: str = ""
    next: str = ""

    @staticmethod
    def on_record(resource: Resource) -> "Look":
        """What the status says: the drift that the last step found, and when that was."""
        step = StoredState.of(resource).step or {}
        return Look(drift_on_record(resource, step), last_look_on_record(resource, step))

    def to_data(self) -> JsonObject:
        """What is known, as JSON."""
        members = {"drifted": self.drift.value, "last": self.last, "next": self.next}
        return {name: text for name, text in members.items() if text}

    def shown_in(self, resource: Resource) -> Resource:
        """The resource with this in its status, at `status.setpoint.look`."""
        data, ours = self.to_data(), resource.status.get(ENGINE_STATE, {})
        if not data or not isinstance(ours, Mapping):
            return resource
        status: dict[str, Json] = {**resource.status, ENGINE_STATE: {**ours, LOOK: data}}
        return Resource({**resource.document, "status": status})


def last_look_on_record(resource: Resource, step: JsonObject) -> str:
    """When the last step was that is on record, `step` or one that only observed; empty before there is one."""
    at, ready = step.get("at"), condition_of(resource, ConditionType.READY)
    times = [at if isinstance(at, str) else ""]
    if ready is not None and ready.reason == ConditionReason.OBSERVED:
        # Such a step writes no record but this condition.
        times.append(ready.last_transition_time)
    return max(times)


def drift_on_record(resource: Resource, step: JsonObject) -> Drift:
    """What became of the drift that the last step found, whose record is `step`."""
    contested, ready = condition_of(resource, ConditionType.CONTESTED), condition_of(resource, ConditionType.READY)
    if contested is not None and contested.status == "True":
        return Drift.CONTESTED
    if ready is not None and ready.reason == ConditionReason.OBSERVED:
        return Drift.NONE if ready.status == "True" else Drift.WITHHELD
    if step.get("decision") not in _DRIFTED and step.get("reason") != DecisionReason.DELETED:
        return Drift.NONE
    if step.get("writes"):
        return Drift.CORRECTED
    return Drift.WITHHELD if step.get("withheld") else Drift.NONE


async def read_looks(resources: Sequence[Resource], store: Path | None) -> Mapping[ResourceRef, Look]:
    """The looks at each: by the process that owns the file `store`, if one answers; else what is on record."""
    found = {one.ref: Look.on_record(one) for one in resources}
    for said in await _said_by_process(found, store):
        name: Any = said.name
        ref = ResourceRef(name.group, name.kind, name.namespace, name.name)
        if (look := found.get(ref)) is not None:
            # A step on record may be that of a command, after the process looked.
            found[ref] = replace(look, last=max(look.last, said.last), next=said.next)
    return found


async def next_looks(refs: Iterable[ResourceRef], store: Path) -> Mapping[ResourceRef, str]:
    """When the next steps are due, by the process that owns the file `store`; empty where none answers."""
    found = {}
    for said in await _said_by_process(refs, store):
        name: Any = said.name
        found[ResourceRef(name.group, name.kind, name.namespace, name.name)] = said.next
    return {ref: time for ref, time in found.items() if time}


async def _said_by_process(refs: Iterable[ResourceRef], store: Path | None) -> Sequence["ResourceLook"]:
    """What the process says of the first of them, in one request; nothing where none answers in time."""
    if store is None or not store.exists():
        return ()
    from setpoint.clients.admin_api import MOST_LOOKS, AdminClient, ResourceName, find_socket

    if (address := find_socket(store)) is None:
        return ()
    names = [ResourceName(*ref) for ref, _ in zip(refs, range(MOST_LOOKS), strict=False)]
    client = AdminClient(address)
    try:
        async with asyncio.timeout(_SECONDS):
            return await client.looks(names)
    except (SetpointError, TimeoutError):
        # It ended, or is of a version that cannot be asked.
        return ()
    finally:
        await client.close()

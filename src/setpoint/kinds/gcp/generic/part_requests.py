"""Writes of parts of an object: the stages of a plan, one for each method that sets a part, and its request."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from setpoint.catalogue.parts import PartMethod, member_path, part_methods, switch_members
from setpoint.catalogue.rows import KindFacts
from setpoint.clients.google.calls import GoogleCall
from setpoint.core.plan import PlannedWrite, PlanOptions, WriteStage
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.kind import Intent, Location
from setpoint.engine.resource import Resource
from setpoint.errors import ImmutableFieldChanged, OperationRunning
from setpoint.kinds.gcp.generic.members import kept, without_nulls, word_of
from setpoint.kinds.gcp.generic.requests import (
    GoogleRequest,
    is_set_later,
    live_members,
    members_of,
    object_call,
    update,
)

ALLOW_STOPPING: Final = "cnrm.cloud.google.com/allow-stopping-for-update"
_UPDATE: Final = "update"
_FINGERPRINTS: Final = ("fingerprint", "labelFingerprint")
_STOPPED: Final = ("TERMINATED", "STOPPED")


def sending_of(row: KindFacts) -> PlanOptions:
    """How changes are sent: what a method of its own sets in a write of its own, the rest in one update.

    An object is switched on or off last: some of its parts can only change while it is off.
    """
    stages = [WriteStage(method.name, method.paths) for method in part_methods(row)]
    stages += [WriteStage(name, (Path(("spec", name)),)) for name, facts in row.fields.items() if facts.toggle]
    if row.updates_singly:
        stages += [WriteStage(f"{_UPDATE} {name}", (Path(("spec", name)),)) for name in row.fields]
    later = tuple(Path(("spec", name)) for name in row.fields if is_set_later(row, name))
    growing = tuple(Path(("spec", name)) for name, facts in row.fields.items() if facts.grows)
    return PlanOptions(tuple(stages), resend=growing, after_creation=later)


def request_of(
    row: KindFacts, intent: Intent, wanted: JsonObject, write: PlannedWrite, live: Mapping[str, Any]
) -> GoogleRequest:
    """The request that sends a write of the plan."""
    if write.name.partition(" ")[0] == _UPDATE:
        return update(row, intent, wanted, write, live)
    if write.name in row.fields and row.fields[write.name].toggle:
        return _switch(row, intent.location, wanted, write.name)
    method = next(one for one in part_methods(row) if one.name == write.name)
    after = without_nulls(members_of(row, wanted, write))
    return _part_request(row, intent.location, after, method, live)


def _switch(row: KindFacts, location: Location, wanted: JsonObject, field: str) -> GoogleRequest:
    spec = wanted["spec"]
    assert isinstance(spec, Mapping)
    method = row.fields[field].toggle[word_of(spec.get(field) or False)]
    return GoogleRequest("POST", method_call(row, location, method), {})


def _part_request(
    row: KindFacts, location: Location, after: Mapping[str, Any], method: PartMethod, live: Mapping[str, Any]
) -> GoogleRequest:
    """The request of a method that sets parts; what the row does not model of them keeps its live value."""
    before = live_members(row, live)
    values = {
        name: kept(value_at(live, part), value_at(before, part), value_at(after, part))
        for part, name in method.parts.items()
    }
    for part, name in method.parts.items():
        if values[name] is None:
            values[name] = _switched_off(row, part)
    if row.labels in method.parts and values[method.parts[row.labels]] is None:
        values[method.parts[row.labels]] = {}
    if method.is_update:
        call, wrap = object_call(row, location), method.facts.wrap
        body = _nested(values)
        return GoogleRequest(method.facts.verb, call, {wrap: body} if wrap else body)
    query = {name: word_of(values.pop(name)) for name in method.facts.query if name in values}
    whole = values.pop("", None) or {}
    body = {**whole, **_nested(values), **_precondition(method, live)}
    return GoogleRequest(method.facts.verb, method_call(row, location, method.name, query), body)


def _switched_off(row: KindFacts, part: str) -> dict[str, bool] | None:
    """What switches a part off that is on by being there; None for any other."""
    fields = (facts for name, facts in row.fields.items() if ".".join(member_path(name, facts)) == part)
    return next((dict(off) for facts in fields if (off := switch_members(facts))), None)


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """An object with each value at its dotted path."""
    found: dict[str, Any] = {}
    for path, value in values.items():
        *above, last = path.split(".")
        target = found
        for step in above:
            target = target.setdefault(step, {})
        target[last] = value
    return found


def must_stop_for(row: KindFacts, write: PlannedWrite, live: Mapping[str, Any]) -> bool:
    """Whether the object has to be stopped before the write, and is not. OperationRunning while it is being stopped."""
    method = row.other_methods.get(write.name)
    if method is None or not method.stopped or live.get("status") in _STOPPED:
        return False
    if live.get("status") == "STOPPING":
        raise OperationRunning(f"{live.get('name')} is being stopped", after=1)
    return True


def may_stop(resource: Resource) -> bool:
    """Whether the author lets the object be stopped for a change."""
    return resource.annotations.get(ALLOW_STOPPING) == "true"


def require_stoppable(row: KindFacts, intent: Intent, writes: Sequence[PlannedWrite], live: Mapping[str, Any]) -> None:
    """ImmutableFieldChanged for a change of an object that runs, and that the author does not let be stopped."""
    if may_stop(intent.resource) or intent.resource.spec.get("desiredStatus") == "TERMINATED":
        return
    for write in writes:
        if must_stop_for(row, write, live):
            paths = tuple(str(change.path) for change in write.changes)
            raise ImmutableFieldChanged(
                f"{', '.join(paths)} cannot change while {intent.location} runs: set spec.desiredStatus to TERMINATED,"
                f' or the annotation {ALLOW_STOPPING}: "true", by which it is stopped and started again',
                paths,
            )


def _precondition(method: PartMethod, live: Mapping[str, Any]) -> Mapping[str, Any]:
    """The version of the part that a request changes, as the live object has it."""
    part = live.get(method.facts.field) if method.facts.field else live
    known = part if isinstance(part, Mapping) else {}
    named = ("fingerprint",) if method.facts.field else method.facts.sends
    return {name: known[name] for name in _FINGERPRINTS if name in named and name in known}


def value_at(tree: Any, path: str) -> Any:  # noqa: ANN401 - JSON
    """What is at a dotted path, in which a number is a position in a list; None when there is nothing."""
    for step in path.split("."):
        if isinstance(tree, list) and step.isdecimal():
            tree = tree[int(step)] if int(step) < len(tree) else None
        else:
            tree = tree.get(step) if isinstance(tree, Mapping) else None
    return tree


def method_call(row: KindFacts, location: Location, method: str, query: Mapping[str, str] | None = None) -> GoogleCall:
    """A method of the object's own: after a slash or a colon, as its path has it."""
    call = object_call(row, location)
    path = row.other_methods[method].path if method in row.other_methods else f":{method}"
    if path.endswith(f":{method}"):
        return GoogleCall(call.service, call.parts, query or {}, method=method)
    parts = call.parts
    # Older methods of Compute leave `global` out.
    if parts[2:3] == ("global",) and not {"global", "regions", "zones"} & set(path.split("/")):
        parts = (*parts[:2], *parts[3:])
    return GoogleCall(call.service, (*parts, method), query or {})

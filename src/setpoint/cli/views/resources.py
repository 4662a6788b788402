"""Resources as text: the table of `get`, the description of one, and the explanation of its last step."""

import datetime
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from setpoint.cli.views.plan import is_owner_plan, plan_from_record, plan_rows, value_text
from setpoint.cli.views.table import TextTable, one_line
from setpoint.core.conditions import Condition, ConditionReason, ConditionType
from setpoint.core.decide import Cookie
from setpoint.core.redaction import REDACTED
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.yaml_documents import write_document
from setpoint.core.wait.outputs import Known, Null, Unknown, from_data
from setpoint.engine.conditions import condition_of
from setpoint.engine.owners.children import LAST_GENERATED
from setpoint.engine.ports import EventRecord
from setpoint.engine.references import OUTPUT
from setpoint.engine.requeue import DEFAULT_RESYNC_SECONDS, RESYNC_INTERVAL, jittered_resync, resync_seconds
from setpoint.engine.resource import Resource
from setpoint.engine.state import StoredState, outputs_in

_COLUMNS: Final = ("KIND", "NAMESPACE", "NAME", "READY", "REASON", "AGE")
_WIDE_COLUMNS: Final = ("LOCATION", "MESSAGE")


class ResourceTable:
    """A line for each resource, however often it is asked for more of them; `outputs`: and what each offers."""

    def __init__(
        self, looked_after: Container[tuple[str, str]] | None = None, *, wide: bool, outputs: bool = False
    ) -> None:
        # None for a table of nothing but resources that somebody looks after.
        self._looked_after = looked_after
        self._is_wide = wide
        self._has_outputs = outputs
        offered = ("OUTPUT",) if outputs else ()
        self._columns = TextTable(*_COLUMNS, *offered, *(_WIDE_COLUMNS if wide else ()))

    def lines(self, resources: Iterable[Resource], now: datetime.datetime) -> Text:
        """The resources, the first time below the header."""
        return self._columns.lines(self._row(resource, now) for resource in resources)

    def _row(self, resource: Resource, now: datetime.datetime) -> tuple[Sequence[str], str]:
        ready = ready_condition(resource)
        # What is only read by others, or made by an owner, has no steps of its own.
        is_seen = self._looked_after is None or (resource.ref.group, resource.ref.kind) in self._looked_after
        unseen = ("Unknown", "NotLookedAt") if is_seen else ("-", "-")
        words = (ready.status, ready.reason) if ready else unseen
        words = ("False", str(ConditionReason.DELETED)) if is_deleted(resource) else words
        offered = (output_word(resource, wide=self._is_wide),) if self._has_outputs else ()
        more = (StoredState.of(resource).location or "", _messages(resource)) if self._is_wide else ()
        names = (resource.ref.kind, resource.ref.namespace, resource.ref.name)
        cells = (*names, *words, age_of(resource, now), *offered, *more)
        return cells, "dim" if is_deleted(resource) else _colour(ready)


def as_deleted(resource: Resource, now: datetime.datetime) -> Resource:
    """A resource that was deleted, as Kubernetes shows one: marked for deletion, and nothing holds it back."""
    metadata: Any = resource.document["metadata"]
    kept = {name: value for name, value in metadata.items() if name != "finalizers"}
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return Resource({**resource.document, "metadata": {"deletionTimestamp": stamp, **kept}})


def is_deleted(resource: Resource) -> bool:
    """Whether this is what is left of a resource that was deleted."""
    return resource.is_deleting and not resource.finalizers


def ready_condition(resource: Resource) -> Condition | None:
    """The Ready condition, if a step has been taken."""
    return condition_of(resource, ConditionType.READY)


def _contested(resource: Resource) -> str:
    """The fields that somebody else changes again and again, if there are any."""
    return _condition_message(resource, ConditionType.CONTESTED)


def _condition_message(resource: Resource, type_: str) -> str:
    """What a condition says that is there and holds."""
    found = condition_of(resource, type_)
    return found.message if found and found.status == "True" else ""


def _messages(resource: Resource) -> str:
    ready, contested = ready_condition(resource), _contested(resource)
    return ". ".join(message for message in (ready.message if ready else "", contested) if message)


def age_of(resource: Resource, now: datetime.datetime) -> str:
    """How long ago the resource was declared: 5s, 12m, 3h, 8d."""
    metadata: Any = resource.document.get("metadata", {})
    try:
        born = datetime.datetime.fromisoformat(str(metadata.get("creationTimestamp")))
    except ValueError:
        return ""
    seconds = max(0, int((now - born).total_seconds()))
    for size, letter in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{letter}"
    return f"{seconds}s"


def redacted_document(resource: Resource) -> JsonObject:
    """The whole resource for people and programs; a Secret without its values."""
    document = resource.document
    data = document.get("data")
    if resource.ref.kind != "Secret" or not isinstance(data, Mapping):
        return document
    return {**document, "data": dict.fromkeys(data, REDACTED)}


def as_yaml(tree: Json) -> str:
    """A tree as YAML, in the order it has; what we read from it is the same again."""
    return write_document(tree)


def description_of(resource: Resource, notes: Iterable[EventRecord], now: datetime.datetime) -> RenderableType:
    """Everything about one resource."""
    ready = ready_condition(resource)
    facts = Table.grid(padding=(0, 3))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    memory = StoredState.of(resource)
    for name, value in (
        ("Ready", f"{ready.status} ({ready.reason})" if ready else "not looked at yet"),
        ("Message", ready.message if ready else ""),
        ("Since", ready.last_transition_time if ready else ""),
        ("Contested", _contested(resource)),
        ("Edited", _condition_message(resource, ConditionType.EDITED)),
        ("Warned", _condition_message(resource, ConditionType.WARNED)),
        ("Location", memory.location or ""),
        ("Cookie", str(memory.cookie) if memory.cookie else "none"),
        ("Operation", memory.operation.name if memory.operation else ""),
        ("Server defaults", ", ".join(memory.server_defaults)),
        ("Generation", f"{resource.generation}, observed {resource.status.get('observedGeneration', 'none')}"),
        ("Age", age_of(resource, now)),
        ("Deleting", "yes" if resource.is_deleting else ""),
    ):
        if value:
            facts.add_row(Text(name, style="bold"), Text(one_line(value)))
    parts: list[RenderableType] = [Text(str(resource.ref), style="bold cyan"), facts]
    parts += [Text("\nSpec", style="bold"), Text(as_yaml(resource.spec))] if resource.spec else []
    # Digests say nothing to people.
    outputs = {name: value for name, value in outputs_of(resource).items() if name != LAST_GENERATED}
    parts += [Text("Outputs", style="bold"), Text(as_yaml(outputs))] if outputs else []
    return Group(*parts, _events_of_one(notes))


def outputs_of(resource: Resource) -> JsonObject:
    """What the status shows of the live object."""
    return outputs_in(resource.status)


class EventTable:
    """A line for each note on whatever there is, oldest first, however often it is asked for more of them."""

    def __init__(self) -> None:
        self._columns = TextTable("WHEN", "TYPE", "REASON", "RESOURCE", "COUNT", "MESSAGE")

    def lines(self, notes: Iterable[EventRecord]) -> Text:
        """The notes, the first time below the header."""
        return self._columns.lines(
            ((note.at, note.severity, note.reason, str(note.ref), str(note.count), note.message), "") for note in notes
        )


def _events_of_one(notes: Iterable[EventRecord]) -> Text:
    return TextTable("WHEN", "TYPE", "REASON", "COUNT", "MESSAGE").lines(
        ((note.at, note.severity, note.reason, str(note.count), note.message), "") for note in notes
    )


def event_data(note: EventRecord) -> Json:
    """A note for programs."""
    ref: Json = {"kind": note.ref.kind, "namespace": note.ref.namespace, "name": note.ref.name}
    rest: dict[str, Json] = {"severity": note.severity, "reason": note.reason, "message": note.message}
    return {"at": note.at, "resource": ref, "count": note.count, **rest}


def explanation_data(resource: Resource) -> Json:
    """The record of the last step for programs; null when none has been taken."""
    ref = resource.ref
    step = StoredState.of(resource).step
    return {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name, "step": step, "moved": moved_digests(step)}


def moved_digests(step: JsonObject | None) -> list[Json]:
    """Which digests were others than when intent and live last agreed."""
    cookies = step.get("cookie") if step else None
    if not isinstance(cookies, Mapping):
        return []
    before, after = Cookie.parse(cookies.get("before")), Cookie.parse(cookies.get("after"))
    if before is None or after is None:
        return []
    sides = {"intent": before.intent != after.intent, "live": before.live != after.live}
    return [side for side, moved in sides.items() if moved]


def explanation_of(resource: Resource, *, looks_again: bool = False) -> RenderableType:
    """Why the last step that did or found something did what it did, and what happens next."""
    step: Any = StoredState.of(resource).step
    ready = ready_condition(resource)
    if not step and ready is None:
        return Text(f"{resource.ref}: no step has been taken yet; `setpoint reconcile` takes one")
    return Group(
        Text(f"{resource.ref}", style="bold cyan"),
        *(_step_lines(step) if step else [Text("no step has come as far as a plan yet")]),
        Text(f"now: {ready.reason}, {one_line(ready.message)}" if ready else "now: not looked at"),
        Text(f"next look: {_next_resync(resource, looks_again=looks_again)}", style="dim"),
    )


def _next_resync(resource: Resource, *, looks_again: bool) -> str:
    if not looks_again:
        return "with the next `setpoint apply` or `setpoint reconcile`"
    ready = ready_condition(resource)
    mean = resync_seconds(resource.annotations)
    if mean == 0 and ready is not None and ready.status == "True":
        return f"when somebody edits it or asks: {RESYNC_INTERVAL} is 0"
    seconds = jittered_resync(resource.ref, mean or DEFAULT_RESYNC_SECONDS)
    return f"by the running process, at the latest {seconds:.0f} s after the last; at once after an edit"


def _step_lines(step: Mapping[str, Any]) -> list[Text]:
    lines = [Text(f"{step['at']}, by {step['trigger']}: {step['decision']}")]
    plan = plan_from_record(step)
    if is_owner_plan(plan):
        wrote = [] if plan.writes else [Text("  wrote nothing", style="green")]
        return [*lines, plan_rows(plan), *wrote]
    for write in step["writes"]:
        lines.append(Text(f"  wrote: {write['name']}", style="yellow"))
        lines += [Text(f"    {_change_text(change)}") for change in write["changes"]]
    if not step["writes"]:
        lines.append(Text("  wrote nothing", style="green"))
    lines += [Text(f"  withheld: {_change_text(change)}", style="yellow") for change in step.get("withheld", ())]
    return lines + [Text(f"  kept: {_change_text(change)}", style="dim") for change in step["kept"]]


def _change_text(change: Mapping[str, Json]) -> str:
    before = value_text(change["before"]) if "before" in change else "unset"
    after = value_text(change["after"]) if "after" in change else "unset"
    moved = before if before == after else f"{before} → {after}"
    return f"{change['path']}: {moved} ({change['rule']})"


def _colour(ready: Condition | None) -> str:
    if ready is None or ready.status == "Unknown":
        return "dim"
    return "" if ready.status == "True" else "yellow"


def has_output(resource: Resource) -> bool:
    """Whether it is one of those that can offer anything."""
    return OUTPUT in resource.status


def output_word(resource: Resource, *, wide: bool) -> str:
    """The state, and what is behind it: the only value of a short one; all of it, or why there is none, when `wide`."""
    if not has_output(resource):
        return "-"
    match from_data(resource.status[OUTPUT]):
        case Null():
            return "null"
        case Unknown(reason, since):
            return f"unknown since {since}: {reason}" if wide else "unknown"
        case Known(value):
            return _known(value, wide=wide)


def _known(value: Json, *, wide: bool) -> str:
    leaves = list(_leaf_values(value))
    if len(leaves) == 1:
        return f"known: {value_text(leaves[0])}"
    return f"known: {value_text(value)}" if wide else "known"


def _leaf_values(value: Json) -> Iterator[Json]:
    """What stands at the ends; null only marks a place in a list."""
    if isinstance(value, Mapping):
        for one in value.values():
            yield from _leaf_values(one)
    elif isinstance(value, list):
        for one in value:
            yield from _leaf_values(one)
    elif value is not None:
        yield value

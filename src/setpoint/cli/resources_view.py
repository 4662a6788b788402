"""Resources as people read them: a table, the whole of one, why the last step did what it did."""

import datetime
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from setpoint.cli.columns import Columns, one_line
from setpoint.cli.outputs_view import output_word
from setpoint.cli.show import is_of_owner, plan_of, plan_rows, value_text
from setpoint.core.conditions import Condition, find_condition, from_data
from setpoint.core.cookie import Cookie
from setpoint.core.diff import REDACTED
from setpoint.core.values import Json
from setpoint.core.yaml_documents import write_document
from setpoint.engine.cadence import INTERVAL, MEAN_SECONDS, mean_seconds, spread
from setpoint.engine.family import LAST_GENERATED
from setpoint.engine.family_news import EDITED, WARNED
from setpoint.engine.ports import Note
from setpoint.engine.remembered import Remembered, outputs_in
from setpoint.engine.report import CONTESTED
from setpoint.engine.resource import Resource, Tree

_COLUMNS: Final = ("KIND", "NAMESPACE", "NAME", "READY", "REASON", "AGE")
_MORE_COLUMNS: Final = ("LOCATION", "MESSAGE")


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
        self._columns = Columns(*_COLUMNS, *offered, *(_MORE_COLUMNS if wide else ()))

    def lines(self, resources: Iterable[Resource], now: datetime.datetime) -> Text:
        """The resources, the first time below the header."""
        return self._columns.lines(self._row(resource, now) for resource in resources)

    def _row(self, resource: Resource, now: datetime.datetime) -> tuple[Sequence[str], str]:
        ready = ready_of(resource)
        # What is only read by others, or made by an owner, has no steps of its own.
        is_seen = self._looked_after is None or (resource.ref.group, resource.ref.kind) in self._looked_after
        unseen = ("Unknown", "NotLookedAt") if is_seen else ("-", "-")
        words = (ready.status, ready.reason) if ready else unseen
        words = ("False", "Deleted") if is_gone(resource) else words
        offered = (output_word(resource, wide=self._is_wide),) if self._has_outputs else ()
        more = (Remembered.of(resource).location or "", _messages(resource)) if self._is_wide else ()
        names = (resource.ref.kind, resource.ref.namespace, resource.ref.name)
        cells = (*names, *words, age_of(resource, now), *offered, *more)
        return cells, "dim" if is_gone(resource) else _colour(ready)


def gone(resource: Resource, now: datetime.datetime) -> Resource:
    """A resource that was deleted, as Kubernetes shows one: marked for deletion, and nothing holds it back."""
    metadata: Any = resource.document["metadata"]
    kept = {name: value for name, value in metadata.items() if name != "finalizers"}
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return Resource({**resource.document, "metadata": {"deletionTimestamp": stamp, **kept}})


def is_gone(resource: Resource) -> bool:
    """Whether this is what is left of a resource that was deleted."""
    return resource.is_deleting and not resource.finalizers


def ready_of(resource: Resource) -> Condition | None:
    """The Ready condition, if a step has been taken."""
    return find_condition(from_data(resource.status.get("conditions")), "Ready")


def _contested(resource: Resource) -> str:
    """The fields that somebody else changes again and again, if there are any."""
    return _said(resource, CONTESTED)


def _said(resource: Resource, type_: str) -> str:
    """What a condition says that is there and holds."""
    found = find_condition(from_data(resource.status.get("conditions")), type_)
    return found.message if found and found.status == "True" else ""


def _messages(resource: Resource) -> str:
    ready, contested = ready_of(resource), _contested(resource)
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


def shown_tree(resource: Resource) -> Tree:
    """The whole resource for people and programs; a Secret without its values."""
    document = resource.document
    data = document.get("data")
    if resource.ref.kind != "Secret" or not isinstance(data, Mapping):
        return document
    return {**document, "data": dict.fromkeys(data, REDACTED)}


def as_yaml(tree: Json) -> str:
    """A tree as YAML, in the order it has; what we read from it is the same again."""
    return write_document(tree)


def description_of(resource: Resource, notes: Iterable[Note], now: datetime.datetime) -> RenderableType:
    """Everything about one resource."""
    ready = ready_of(resource)
    facts = Table.grid(padding=(0, 3))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    memory = Remembered.of(resource)
    for name, value in (
        ("Ready", f"{ready.status} ({ready.reason})" if ready else "not looked at yet"),
        ("Message", ready.message if ready else ""),
        ("Since", ready.last_transition_time if ready else ""),
        ("Contested", _contested(resource)),
        ("Edited", _said(resource, EDITED)),
        ("Warned", _said(resource, WARNED)),
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
    return Group(*parts, _notes_on_one(notes))


def outputs_of(resource: Resource) -> Tree:
    """What the status shows of the live object."""
    return outputs_in(resource.status)


class NotesTable:
    """A line for each note on whatever there is, oldest first, however often it is asked for more of them."""

    def __init__(self) -> None:
        self._columns = Columns("WHEN", "TYPE", "REASON", "RESOURCE", "COUNT", "MESSAGE")

    def lines(self, notes: Iterable[Note]) -> Text:
        """The notes, the first time below the header."""
        return self._columns.lines(
            ((note.at, note.severity, note.reason, str(note.ref), str(note.count), note.message), "") for note in notes
        )


def _notes_on_one(notes: Iterable[Note]) -> Text:
    return Columns("WHEN", "TYPE", "REASON", "COUNT", "MESSAGE").lines(
        ((note.at, note.severity, note.reason, str(note.count), note.message), "") for note in notes
    )


def note_data(note: Note) -> Json:
    """A note for programs."""
    ref: Json = {"kind": note.ref.kind, "namespace": note.ref.namespace, "name": note.ref.name}
    rest: dict[str, Json] = {"severity": note.severity, "reason": note.reason, "message": note.message}
    return {"at": note.at, "resource": ref, "count": note.count, **rest}


def explanation_data(resource: Resource) -> Json:
    """The record of the last step for programs; null when none has been taken."""
    ref = resource.ref
    step = Remembered.of(resource).step
    return {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name, "step": step, "moved": moved_of(step)}


def moved_of(step: Tree | None) -> list[Json]:
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
    step: Any = Remembered.of(resource).step
    ready = ready_of(resource)
    if not step and ready is None:
        return Text(f"{resource.ref}: no step has been taken yet; `setpoint reconcile` takes one")
    return Group(
        Text(f"{resource.ref}", style="bold cyan"),
        *(_step_lines(step) if step else [Text("no step has come as far as a plan yet")]),
        Text(f"now: {ready.reason}, {one_line(ready.message)}" if ready else "now: not looked at"),
        Text(f"next look: {_next_look(resource, looks_again=looks_again)}", style="dim"),
    )


def _next_look(resource: Resource, *, looks_again: bool) -> str:
    if not looks_again:
        return "with the next `setpoint apply` or `setpoint reconcile`"
    ready = ready_of(resource)
    mean = mean_seconds(resource.annotations)
    if mean == 0 and ready is not None and ready.status == "True":
        return f"when somebody edits it or asks: {INTERVAL} is 0"
    seconds = spread(resource.ref, mean or MEAN_SECONDS)
    return f"by the running process, at the latest {seconds:.0f} s after the last; at once after an edit"


def _step_lines(step: Mapping[str, Any]) -> list[Text]:
    lines = [Text(f"{step['at']}, by {step['trigger']}: {step['decision']}")]
    plan = plan_of(step)
    if is_of_owner(plan):
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

"""The plan for one child: the write that brings it up to date, its field changes and the merge report."""

from dataclasses import replace
from typing import Final

from setpoint.core.diff import FieldChange, diff, redact_changes
from setpoint.core.merge.children import Child, ChildUpdate, ChildUpdatePolicy, child_update
from setpoint.core.merge.merge_report import FieldResolution, Resolution
from setpoint.core.merge.threeway import LastGenerated
from setpoint.core.owner_references import OwnerRef, Ownership, controller_of, ownership, with_owner_reference
from setpoint.core.plan import Action, PlannedWrite
from setpoint.core.schema.policy import Rule
from setpoint.core.unstructured import display_name, group_kind, text_at
from setpoint.core.values.canonical import canonical
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.errors import DependencyInvalid, DependencyNotReady

_RULES: Final = {
    Resolution.REVERTED: Rule.MANAGED,
    Resolution.RETIRED: Rule.RETIRED,
    Resolution.PRESERVED: Rule.EDITED,
    Resolution.CONFLICTING: Rule.CONFLICTING,
}
# Members that identify an object: a plan of its creation leaves them out.
_IDENTITY_FIELDS: Final = ("apiVersion", "kind", "metadata")
_MAX_TEXT: Final = 200
_TRUNCATED_TEXT: Final = 60


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """One child: its desired document, the write that brings it there, and the merge report.

    `write` is None when nothing changes. The paths of its changes, and of `kept`, begin with the child's key.
    """

    child: Child
    document: JsonObject
    write: PlannedWrite | None = None
    resolutions: tuple[FieldResolution, ...] = ()
    kept: tuple[FieldChange, ...] = ()


def plan_child(child: Child, live: JsonObject | None, owner: JsonObject, last: LastGenerated | None) -> ChildPlan:
    """The plan for `child` with the live object `live`; DependencyInvalid when another owner controls it.

    DependencyNotReady when a deleted owner of the same name still controls it.
    """
    if live is None:
        return ChildPlan(child, child.object, PlannedWrite(Action.CREATE, child.key, _creation_changes(child)))
    match ownership(live, owner):
        case Ownership.OTHER_OWNER if child.update_policy is not ChildUpdatePolicy.CREATE_ONLY:
            raise _owned_elsewhere(live, owner)
        case Ownership.OURS:
            return _plan_update(child, live, child_update(child, with_owner_reference(live, owner), last))
        case Ownership.UNOWNED if child.can_adopt:
            return _plan_update(child, live, child_update(child, with_owner_reference(live, owner), last))
        case _:
            return ChildPlan(child, live)


def _owned_elsewhere(live: JsonObject, owner: JsonObject) -> DependencyNotReady:
    controller = controller_of(live)
    own_ref = OwnerRef(*group_kind(owner), text_at(owner, "metadata", "namespace"), text_at(owner, "metadata", "name"))
    if controller == own_ref:
        return DependencyNotReady(
            f"{display_name(live)} is left of an earlier {own_ref}: it is made anew once it is gone; "
            "delete it if that takes long"
        )
    return DependencyInvalid(
        f"{display_name(live)} belongs to {controller}: delete it there, or give this one another name"
    )


def _plan_update(child: Child, live: JsonObject, update: ChildUpdate) -> ChildPlan:
    kept = redact_changes(_kept_fields(child, live, update.resolutions), live)
    plan = ChildPlan(child, update.object, None, update.resolutions, _below_child_key(child, kept))
    if update.object is live:
        return plan
    changes = redact_changes((_with_rule(one, update.resolutions) for one in diff(live, update.object)), live)
    return replace(plan, write=PlannedWrite(Action.UPDATE, child.key, _below_child_key(child, changes)))


def _creation_changes(child: Child) -> tuple[FieldChange, ...]:
    contents = {name: value for name, value in child.object.items() if name not in _IDENTITY_FIELDS}
    made = redact_changes(diff({name: {} for name in contents}, contents), child.object)
    return _below_child_key(child, tuple(replace(one, before=MISSING, rule=Rule.GENERATED) for one in made))


def _with_rule(change: FieldChange, resolutions: tuple[FieldResolution, ...]) -> FieldChange:
    about = (one for one in resolutions if one.path.covers(change.path) or change.path.covers(one.path))
    rules = [_RULES[one.resolution] for one in about if one.resolution in (Resolution.REVERTED, Resolution.RETIRED)]
    return replace(change, rule=rules[0] if rules else Rule.GENERATED)


def _kept_fields(child: Child, live: JsonObject, resolutions: tuple[FieldResolution, ...]) -> list[FieldChange]:
    seen = child.view.read(live)
    edits = (one for one in resolutions if one.resolution in (Resolution.PRESERVED, Resolution.CONFLICTING))
    return [FieldChange(one.path, value := _held_at(seen, one.path), value, _RULES[one.resolution]) for one in edits]


def _held_at(seen: Json, path: Path) -> Json | Missing:
    """The value at `path`; an entry of a list of texts is its own value."""
    value, step = get_at(seen, path), path.steps[-1]
    around = get_at(seen, path.parent)
    return step if isinstance(around, list | tuple) and isinstance(step, str) and step in around else value


def _below_child_key(child: Child, changes: tuple[FieldChange, ...]) -> tuple[FieldChange, ...]:
    return tuple(
        replace(
            one,
            path=Path((child.key, *one.path.steps)),
            before=_shortened(one.before),
            after=_shortened(one.after),
        )
        for one in changes
    )


def _shortened(value: Json | Missing) -> Json | Missing:
    """A long value is truncated: plans are shown to the operator and stored in the status."""
    if isinstance(value, Missing):
        return value
    text = value if isinstance(value, str) else canonical(value).decode()
    return f"{text[:_TRUNCATED_TEXT]}… ({len(text)} characters)" if len(text) > _MAX_TEXT else value

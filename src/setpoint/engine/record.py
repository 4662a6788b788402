"""What a step leaves behind for people: the record that `setpoint explain` shows, and its note."""

from setpoint.core.cookie import Cookie
from setpoint.core.decide import Decision
from setpoint.core.plan import Action, Plan
from setpoint.core.values import Json
from setpoint.engine.report import listed
from setpoint.engine.resource import Tree
from setpoint.engine.scene import Moment


def record_of(scene: Moment, plan: Plan, at: Cookie | None = None) -> Tree | None:
    """The last step that did or found something; an idle one, or one that waits on, changes nothing."""
    last, before = scene.remembered.step, scene.remembered.cookie
    if last is not None and not plan.writes and (_is_idle(scene, plan) or _waits_on(last, plan)):
        return last
    digests: dict[str, Json] = {"before": _text(before), "after": _text(at)}
    return {"at": scene.world.clock.now(), "trigger": scene.trigger, "cookie": digests, **plan.to_data()}


def _is_idle(scene: Moment, plan: Plan) -> bool:
    is_end_of_another = scene.remembered.attempt is not None
    # An owner may have to wait before it can make anything.
    is_look = is_end_of_another or plan.decision in (Decision.IN_SYNC, Decision.FIRST_LOOK, Decision.CREATE)
    return is_look and not plan.withheld


def _waits_on(last: Tree, plan: Plan) -> bool:
    """Whether the same is withheld for the same reason, whatever others have made of it since."""
    return bool(plan.withheld) and last.get("because") == plan.because


def _text(cookie: Cookie | None) -> str | None:
    return None if cookie is None else str(cookie)


def is_of_creation(step: Tree | None) -> bool:
    """Whether a record is of a step that made an object."""
    match step:
        case {"writes": [{"action": Action.CREATE}, *_]}:
            return True
        case _:
            return False


def told(plan: Plan) -> tuple[str, str]:
    """What a step did: the reason and the fields, values left out."""
    fields = listed(str(change.path) for change in plan.changes)
    created = plan.writes[0].action is Action.CREATE
    if created:
        # One that an earlier step began, and could not tell of, has no fields left to name.
        return "Created", f"created with {fields}" if fields else "created"
    return "Updated", f"{plan.decision.value}: set {fields}"

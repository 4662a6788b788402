"""What a step leaves behind for people: the record that `setpoint explain` shows, and its note."""

from setpoint.core.cookie import Cookie
from setpoint.core.decide import Decision
from setpoint.core.plan import Action, Plan
from setpoint.core.values import Json
from setpoint.engine.report import listed
from setpoint.engine.resource import Tree
from setpoint.engine.scene import Scene


def record_of(scene: Scene, plan: Plan, at: Cookie | None = None) -> Tree | None:
    """The last step that did or found something; an idle one, or one that waits on, changes nothing."""
    last, before = scene.remembered.step, scene.remembered.cookie
    if last is not None and not plan.writes and (_is_idle(scene, plan) or _waits_on(last, plan)):
        return last
    digests: dict[str, Json] = {"before": _text(before), "after": _text(at)}
    return {"at": scene.world.clock.now(), "trigger": scene.trigger, "cookie": digests, **plan.to_data()}


def _is_idle(scene: Scene, plan: Plan) -> bool:
    is_end_of_another = scene.remembered.attempt is not None
    is_look = is_end_of_another or plan.decision in (Decision.IN_SYNC, Decision.FIRST_LOOK)
    return is_look and not plan.withheld


def _waits_on(last: Tree, plan: Plan) -> bool:
    """Whether the same is withheld for the same reason, whatever others have made of it since."""
    return bool(plan.withheld) and last.get("because") == plan.because


def _text(cookie: Cookie | None) -> str | None:
    return None if cookie is None else str(cookie)


def told(plan: Plan) -> tuple[str, str]:
    """What a step did: the reason and the fields, values left out."""
    fields = listed(str(change.path) for change in plan.changes)
    created = plan.writes[0].action is Action.CREATE
    return ("Created", f"created with {fields}") if created else ("Updated", f"{plan.decision.value}: set {fields}")

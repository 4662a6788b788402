"""The plan of one step: what differs, less what was tried already."""

from collections.abc import Iterable
from dataclasses import replace

from setpoint.core.canonical import digest
from setpoint.core.cookie import Cookie
from setpoint.core.decide import Decision
from setpoint.core.diff import FieldChange
from setpoint.core.overlay import Declared, overlay
from setpoint.core.paths import Path
from setpoint.core.plan import Plan, plan_fields
from setpoint.core.policy import Rule
from setpoint.core.values import MISSING, Missing
from setpoint.engine.kind import Absent, Intent, Look
from setpoint.engine.remembered import Remembered
from setpoint.engine.resource import Tree
from setpoint.engine.scene import Scene


def live_digest(look: Look) -> str | Missing:
    """The digest of what the kind models of the live object; MISSING when it is not there."""
    return MISSING if isinstance(look, Absent) else digest(look.live)


def wanted_tree(intent: Intent, look: Look, scene: Scene) -> Tree:
    """The effective desired state."""
    return overlay(*_sides(intent, look, scene))


def plan_for(decision: Decision, intent: Intent, look: Look, scene: Scene) -> Plan:
    """What this step has to send; nothing when both digests match, or none moved since the service did not follow."""
    if decision is Decision.IN_SYNC or is_stuck(intent, look, scene.remembered):
        return Plan(decision)
    known, versions = scene.remembered.secrets, intent.resolved.versions
    rotated = tuple(Path.parse(name) for name, version in versions.items() if known.get(name) != version)
    sending = replace(scene.kind.sending(intent), resend=rotated)
    plan = plan_fields(decision, *_sides(intent, look, scene), sending)
    return plan if isinstance(look, Absent) else _without_tried(plan, intent, scene.remembered)


def residual(intent: Intent, look: Look, scene: Scene) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields that still differ: those the author specified, and those nobody did."""
    sending = replace(scene.kind.sending(intent), resend=())
    changes = plan_fields(Decision.FIRST_LOOK, *_sides(intent, look, scene), sending).changes
    said = [change for change in changes if change.rule is Rule.SPEC]
    return _paths(said), _paths(change for change in changes if change not in said)


def is_stuck(intent: Intent, look: Look, remembered: Remembered) -> bool:
    """Whether everything was sent for this intent, and the live object is what it was when that was of no use."""
    attempt, live = remembered.attempt, live_digest(look)
    if attempt is None or attempt.stuck_at is None or isinstance(live, Missing):
        return False
    return attempt.stuck_at == Cookie(intent.digest, live)


def _sides(intent: Intent, look: Look, scene: Scene) -> tuple[Declared, Tree | Missing]:
    """What is asked for and what is there, in the same terms."""
    if isinstance(look, Absent):
        return intent.declared, MISSING
    view = scene.kind.view(look.live)
    return scene.kind.fitted(intent.declared, view), view


def _without_tried(plan: Plan, intent: Intent, remembered: Remembered) -> Plan:
    """The plan without fields that were sent for this very intent, and those on which the service insists."""
    attempt = remembered.attempt
    # One that got stuck is over: something has moved since, or this plan would not have been asked for.
    going_on = attempt is not None and attempt.intent == intent.digest and attempt.stuck_at is None
    sent = attempt.sent if attempt is not None and going_on else ()

    def is_left(change: FieldChange) -> bool:
        path = str(change.path)
        return path not in sent and (change.rule is Rule.SPEC or path not in remembered.server_defaults)

    writes = (replace(write, changes=tuple(filter(is_left, write.changes))) for write in plan.writes)
    return replace(plan, writes=tuple(write for write in writes if write.changes))


def _paths(changes: Iterable[FieldChange]) -> tuple[str, ...]:
    return tuple(str(change.path) for change in changes)

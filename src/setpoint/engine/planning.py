"""The plan of one step: what differs, less what was tried already, and what is contested and has to wait."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from setpoint.core.canonical import digest
from setpoint.core.cookie import Cookie
from setpoint.core.decide import Decision
from setpoint.core.diff import FieldChange
from setpoint.core.overlay import Declared, overlay
from setpoint.core.paths import Path
from setpoint.core.plan import Action, Hold, Plan, Write, plan_fields
from setpoint.core.policy import Rule
from setpoint.core.shape import unit_at
from setpoint.core.values import MISSING, Missing
from setpoint.engine import report
from setpoint.engine.abilities import Rehearsable
from setpoint.engine.contest import Contest
from setpoint.engine.kind import Absent, Intent, Look
from setpoint.engine.remembered import Remembered
from setpoint.engine.resource import Tree
from setpoint.engine.scene import Scene


def live_digest(look: Look) -> str | Missing:
    """The digest of what the kind models of the live object; MISSING when it is not there."""
    return MISSING if isinstance(look, Absent) else digest(look.live)


def wanted_tree(intent: Intent, look: Look, scene: Scene) -> Tree:
    """The effective desired state; where the service says what would change, what the author asks for."""
    if isinstance(scene.kind, Rehearsable):
        return intent.declared.tree
    return overlay(*_sides(intent, look, scene))


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the intent as far as it is followed now: what is withheld is left to others meanwhile."""

    plan: Plan
    followed: Intent


def planned_for(decision: Decision, intent: Intent, look: Look, scene: Scene) -> Planned:
    """What this step has to send; contested fields whose time has not come are withheld, unless somebody asked."""
    plan = plan_for(decision, intent, look, scene)
    waiting = () if isinstance(look, Absent) or scene.asked else _waiting(plan, scene)
    if not waiting:
        return Planned(plan, intent)
    paths = {contest.path for contest in waiting}
    contested = {change.path: _unit(intent, change, scene) for change in plan.changes if str(change.path) in paths}
    rest = _without(contested, plan, intent, look, scene)
    left = {change.path for change in rest.plan.changes}
    withheld = tuple(change for change in plan.changes if change.path not in left)
    because = report.not_yet(_paths(withheld), _first_time(waiting))
    held = replace(rest.plan, kept=plan.kept, withheld=withheld, because=because, held=Hold.CONTESTED)
    return replace(rest, plan=held)


def _unit(intent: Intent, change: FieldChange, scene: Scene) -> Path:
    """What has to be left alone for the field to be."""
    is_typed = not isinstance(scene.kind, Rehearsable)
    return unit_at(intent.declared.shape, change.path) if is_typed else change.path


def _waiting(plan: Plan, scene: Scene) -> tuple[Contest, ...]:
    contests = scene.remembered.contests
    return contests.waiting(plan.changes, scene.world.clock.now()) if contests.fields else ()


def _without(contested: Mapping[Path, Path], whole: Plan, intent: Intent, look: Look, scene: Scene) -> Planned:
    """The rest of the plan when each contested field is unmanaged for now; by its value, where that cannot be."""
    policy = intent.declared.policy
    unmanaged = replace(policy, unmanaged=(*policy.unmanaged, *contested.values()))
    declared = replace(intent.declared, policy=unmanaged)
    followed = replace(intent, declare=lambda: declared)
    plan = plan_for(whole.decision, followed, look, scene)
    still = {change.path for change in plan.changes} & contested.keys()
    if not still:
        return Planned(plan, followed)
    # Inside a value that is one unit, a field cannot be left alone: then the unit is.
    wider = {path: place.parent if path in still else place for path, place in contested.items()}
    return _without(wider, whole, intent, look, scene)


def _first_time(waiting: Iterable[Contest]) -> str:
    return min(contest.not_before for contest in waiting)


def mark_of(look: Look) -> str:
    """What tells this state of the live object from the one before, as well as can be."""
    return "" if isinstance(look, Absent) else look.body or digest(look.live)


def plan_for(decision: Decision, intent: Intent, look: Look, scene: Scene) -> Plan:
    """What this step has to send; nothing when both digests match, or none moved since the service did not follow."""
    if decision is Decision.IN_SYNC or is_stuck(intent, look, scene.remembered):
        return Plan(decision)
    if scene.rehearsed is not None:
        return _as_rehearsed(decision, intent, look, scene)
    known, versions = scene.remembered.secrets, intent.resolved.versions
    rotated = tuple(Path.parse(name) for name, version in versions.items() if known.get(name) != version)
    sending = replace(scene.kind.sending(intent), resend=rotated)
    plan = plan_fields(decision, *_sides(intent, look, scene), sending)
    return plan if isinstance(look, Absent) else _without_tried(plan, intent, scene.remembered)


async def rehearse(decision: Decision, intent: Intent, look: Look, scene: Scene) -> Scene:
    """The scene with what the service says is left to write, where it can say so and anything may be."""
    kind = scene.kind
    if not isinstance(kind, Rehearsable) or decision is Decision.IN_SYNC:
        return scene
    return replace(scene, rehearsed=await kind.rehearse(intent, look, decision))


def _as_rehearsed(decision: Decision, intent: Intent, look: Look, scene: Scene) -> Plan:
    plan = Plan(decision, _rehearsed(intent, scene))
    return plan if isinstance(look, Absent) else _without_tried(plan, intent, scene.remembered)


def _rehearsed(intent: Intent, scene: Scene) -> tuple[Write, ...]:
    """What is left to write, without what is nobody's business by the intent."""
    others = intent.declared.policy.unmanaged

    def is_ours(change: FieldChange) -> bool:
        return not any(path.covers(change.path) for path in others)

    return _only(is_ours, scene.rehearsed or ())


def _only(is_wanted: Callable[[FieldChange], bool], writes: Iterable[Write]) -> tuple[Write, ...]:
    """The writes with these changes alone; one that has none left is not sent. Making an object always is."""
    cut = (replace(write, changes=tuple(filter(is_wanted, write.changes))) for write in writes)
    return tuple(write for write in cut if write.changes or write.action is Action.CREATE)


def residual(intent: Intent, look: Look, scene: Scene) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The fields that still differ: those the author specified; and those nobody did, each with its value's digest."""
    if scene.rehearsed is not None:
        return _paths(Plan(Decision.FIRST_LOOK, _rehearsed(intent, scene)).changes), {}
    sending = replace(scene.kind.sending(intent), resend=())
    changes = plan_fields(Decision.FIRST_LOOK, *_sides(intent, look, scene), sending).changes
    said = [change for change in changes if change.rule is Rule.SPEC]
    return _paths(said), {str(change.path): _value_of(change) for change in changes if change not in said}


def _value_of(change: FieldChange) -> str:
    """What stands for the live value: what the service insists on is one value, not the field."""
    return digest([] if isinstance(change.before, Missing) else [change.before])[:16]


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
        insists = remembered.server_defaults.get(path) == _value_of(change)
        return path not in sent and (change.rule is Rule.SPEC or not insists)

    return replace(plan, writes=_only(is_left, plan.writes))


def _paths(changes: Iterable[FieldChange]) -> tuple[str, ...]:
    return tuple(str(change.path) for change in changes)

"""The end of a step that is done: the cookie, the outputs, Ready; or what still differs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from setpoint.core.canonical import digest
from setpoint.core.cookie import Cookie
from setpoint.core.decide import Decision
from setpoint.core.plan import Plan
from setpoint.engine import report
from setpoint.engine.contest import Contests
from setpoint.engine.kind import Look, Present, Reconciliation
from setpoint.engine.looking import body_to_keep, rest
from setpoint.engine.planning import Planned, residual
from setpoint.engine.record import record_of, told
from setpoint.engine.remembered import Attempt, Remembered
from setpoint.engine.report import Ready
from setpoint.engine.scene import Outcome, Scene, Settled, Stopped
from setpoint.engine.waiting import waited
from setpoint.errors import SetpointError, StillWaiting


@dataclass(frozen=True, slots=True)
class _Left:
    """What still differs: fields that the author specified, fields that nobody did, and whether some have to wait."""

    said: tuple[str, ...]
    unsaid: Mapping[str, str]
    waits: bool


async def settle(scene: Scene, look: Look, plan: Plan, planned: Planned) -> Outcome:
    """On record that nothing is left to do now. `plan` is what the step began with, `planned` what it ended with."""
    assert isinstance(look, Present)
    # What was withheld in the end is what is still to be put back.
    plan = replace(plan, withheld=planned.plan.withheld, because=planned.plan.because, held=planned.plan.held)
    intent, left = planned.followed, _left(scene, look, planned)
    at = Cookie(intent.digest, digest(look.live))
    wait = waited(scene, intent, look)
    ready = _ready(left, plan)
    trouble = wait.trouble if wait is not None and ready is report.UP_TO_DATE else None
    if wait is not None and trouble is not None:
        ready = wait.ready
    found = _after(scene, left, at)
    remembered = replace(
        found,
        body=body_to_keep(scene, found, look),
        operation=None,
        secrets=intent.resolved.versions,
        step=record_of(scene, plan, at),
        contests=_done(scene),
        creating=None,
        wait=None if wait is None else wait.memory,
    )
    shown = look.outputs if wait is None else {**look.outputs, **wait.shown}
    scene = await replace(scene, remembered=remembered).tell(ready, shown)
    if ready is report.UP_TO_DATE and _is_stateful(scene):
        rest(scene, intent, look.body, _until(scene))
    if plan.writes:
        await scene.note(*told(plan))
    if trouble is not None:
        return Stopped(_with_what_was_begun(trouble, plan))
    return Settled(plan, ready, _again(scene, plan))


def _with_what_was_begun(trouble: SetpointError, plan: Plan) -> SetpointError:
    if isinstance(trouble, StillWaiting) and plan.writes:
        return StillWaiting(str(trouble), trouble.left, plan.writes[0].action.value)
    return trouble


def _left(scene: Scene, look: Look, planned: Planned) -> _Left:
    """On the fast path nothing can differ but what was accepted before."""
    if planned.plan.decision is Decision.IN_SYNC:
        return _Left((), scene.remembered.server_defaults, waits=False)
    return _Left(*residual(planned.followed, look, scene), waits=bool(planned.plan.withheld))


def _ready(left: _Left, plan: Plan) -> Ready:
    if left.said:
        return report.not_converged(left.said)
    return report.contested(plan.because) if left.waits else report.UP_TO_DATE


def _after(scene: Scene, left: _Left, at: Cookie) -> Remembered:
    """The memory of what was found: a cookie only where nothing differs that somebody minds."""
    before = scene.remembered
    if left.said:
        attempt = replace(before.attempt or Attempt(at.intent), intent=at.intent)
        # With something left to send, the attempt is not over yet.
        return replace(before, attempt=attempt if left.waits else replace(attempt, stuck_at=at), cookie=None)
    if left.waits:
        # The cookie of before stays: it says that the author has not moved, and matches once the field is as it was.
        return replace(before, attempt=None, server_defaults=left.unsaid)
    return replace(before, attempt=None, cookie=at if _is_stateful(scene) else None, server_defaults=left.unsaid)


def _done(scene: Scene) -> Contests:
    contests = scene.remembered.contests
    return contests.done(scene.world.clock.now()) if contests.fields else contests


def _is_stateful(scene: Scene) -> bool:
    return scene.kind.reconciliation is Reconciliation.STATEFUL


def _until(scene: Scene) -> float:
    """When there is something to forget."""
    contests, clock = scene.remembered.contests, scene.world.clock
    quiet_in = contests.quiet_in(clock.now()) if contests.fields else None
    return inf if quiet_in is None else clock.monotonic() + quiet_in


def _again(scene: Scene, plan: Plan) -> float | None:
    """The seconds until the first of what is withheld may be put back."""
    if not plan.withheld:
        return None
    return scene.remembered.contests.next_in(plan.withheld, scene.world.clock.now())

"""What the next step of a resource would write, told twice: by its cookie, and by comparing everything.

A cookie saves work and must never hide a difference. What it hides is masked; what it merely could not vouch for any
more, though nothing is to be written, costs one close look and no more.
"""

import logging
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from setpoint.core.cookie import Cookie
from setpoint.core.decide import Decision
from setpoint.core.plan import Hold, Plan
from setpoint.core.values import Json
from setpoint.engine.drafts import Drafts
from setpoint.engine.kind import Reconciliation
from setpoint.engine.reconcile import preview
from setpoint.engine.remembered import Remembered
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.scene import Management, World, management_of
from setpoint.engine.standing import Standing, standing_of
from setpoint.errors import Bug, NotReady, RemoteRefused, SetpointError, UserError

_log: Final = logging.getLogger(__name__)


class Finding(StrEnum):
    """What became of a resource under both looks, the quietest first."""

    IN_SYNC = "in sync"
    # The cookie cannot vouch for it any more, and nothing is to be written: a close look, and it is fast again.
    ONE_TIME = "one-time"
    # Something differs and is not written: by the author's word, because others contest it, or because it is of no use.
    HELD = "held"
    # What it needs is not there yet; then it is written.
    WAITING = "waiting"
    WRITES = "writes"
    # Nothing is to be written, and the look after the next is a close one again.
    UNSETTLED = "unsettled"
    # The cookie says that nothing is to be done, and there is.
    MASKED = "masked"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Previewed:
    """One resource: what was found, both plans, and why there is none where there is none.

    `plan` is what the next step would do; `whole` is what it would do without a cookie. Where only that is missing,
    `trouble` is why the service, or the kind, would refuse it.
    """

    ref: ResourceRef
    finding: Finding
    plan: Plan | None = None
    whole: Plan | None = None
    trouble: str = ""

    @property
    def told(self) -> Plan | None:
        """The plan that somebody should look at."""
        return self.whole if self.finding is Finding.MASKED else self.plan

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that would be written, that are held back, or that a cookie hides."""
        told = self.told
        changes = () if told is None else (*told.changes, *told.withheld)
        return tuple(dict.fromkeys(str(change.path) for change in changes))

    @property
    def is_left_alone(self) -> bool:
        """Whether nothing is written, now or once its time has come."""
        is_observed = self.plan is not None and self.plan.held is Hold.OBSERVED
        return self.finding in (Finding.IN_SYNC, Finding.ONE_TIME) or (self.finding is Finding.HELD and is_observed)

    def to_data(self) -> dict[str, Json]:
        """All of it as plain JSON: stable member names, what there is none of left out."""
        group, kind, namespace, name = self.ref
        data: dict[str, Json] = {"group": group, "kind": kind, "namespace": namespace, "name": name}
        data |= {"finding": self.finding.value, "fields": list(self.fields)}
        if self.plan is None:
            return {**data, "error": self.trouble}
        data["plan"] = self.plan.to_data()
        if self.whole is None:
            return {**data, "withoutCookieError": self.trouble}
        # What would be done without a cookie is told where it is something else.
        return data if _does_the_same(self.plan, self.whole) else {**data, "withoutCookie": self.whole.to_data()}


async def preview_both_ways(ref: ResourceRef, world: World) -> Previewed:
    """Both plans of `ref`, and what they come to. Whatever stops them is a finding: others are looked at still."""
    try:
        plan = await preview(ref, world)
        try:
            whole = await preview(ref, world, trusting=False)
        except (UserError, RemoteRefused) as error:
            # To find that out, something had to differ.
            return Previewed(ref, _without_whole(plan), plan, None, str(error))
        return Previewed(ref, await _finding(ref, world, plan, whole), plan, whole)
    except NotReady as error:
        return Previewed(ref, Finding.WAITING, trouble=str(error))
    except SetpointError as error:
        return Previewed(ref, Finding.FAILED, trouble=str(error))
    except Exception as error:  # noqa: BLE001 - ours to mend, and no reason to leave the others out
        _log.exception("preview broke", extra={"ref": str(ref)})
        # Without its text, which may hold what nobody should see.
        bug = Bug(f"{type(error).__name__} in the preview of {ref}: a bug of ours; the log has its traceback")
        return Previewed(ref, Finding.FAILED, trouble=str(bug))


def _without_whole(plan: Plan) -> Finding:
    """What it means that the step could do something, or nothing, and that without a cookie it could not."""
    if plan.writes:
        return Finding.WRITES
    return Finding.HELD if plan.withheld else Finding.MASKED


def _does_the_same(one: Plan, other: Plan) -> bool:
    return one.writes == other.writes and one.withheld == other.withheld


async def _finding(ref: ResourceRef, world: World, plan: Plan, whole: Plan) -> Finding:
    if plan.writes:
        return Finding.WRITES
    if plan.decision is Decision.IN_SYNC:
        return Finding.MASKED if whole.writes or whole.withheld else Finding.IN_SYNC
    if plan.withheld:
        return Finding.HELD
    resource = await world.store.get(ref)
    if resource is None or resource.is_deleting:
        return Finding.IN_SYNC
    return await _after_a_close_look(resource, world)


async def _after_a_close_look(resource: Resource, world: World) -> Finding:
    """What it means that nothing is to be written though no cookie said so."""
    seen = await standing_of(resource, world)
    attempt = Remembered.of(resource).attempt
    if attempt is not None and attempt.stuck_at is not None and attempt.stuck_at == seen.cookie:
        # All of it was sent, and the service did not keep it: nothing is sent again until something moves.
        return Finding.HELD
    if seen.cookie is None or not _keeps_a_cookie(resource, world):
        return Finding.IN_SYNC
    return Finding.ONE_TIME if await _is_fast_after(seen, resource, world) else Finding.UNSETTLED


def _keeps_a_cookie(resource: Resource, world: World) -> bool:
    if management_of(resource.annotations) is not Management.FULL:
        return False
    kind = world.kinds.get((resource.ref.group, resource.ref.kind))
    return kind is None or kind.reconciliation is Reconciliation.STATEFUL


async def _is_fast_after(seen: Standing, resource: Resource, world: World) -> bool:
    """Whether the cookie that the next step makes vouches for what the step after it sees."""
    settled = with_cookie(resource, seen.cookie, seen.body)
    second = replace(world, store=Drafts(world.store, {resource.ref: settled}))
    return (await preview(resource.ref, second)).decision is Decision.IN_SYNC


def with_cookie(resource: Resource, cookie: Cookie | None, body: str | None = None) -> Resource:
    """The resource as if its last step had left this cookie, and nothing else to do."""
    memory = replace(Remembered.of(resource), cookie=cookie, body=body, attempt=None)
    return Resource({**resource.document, "status": memory.into(resource.status, with_cookie=True)})

"""Previews: what the next step of a resource would write, planned with its cookie and without it.

A cookie saves work and must never hide a difference. What it hides is reported as masked; a cookie that no longer
matches though nothing is to be written costs one full comparison. Previews read through an overlay store, which
refuses writes.
"""

import logging
from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Final

from setpoint.core.decide import Cookie, Decision
from setpoint.core.plan import Hold, Plan
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, Missing
from setpoint.engine import conditions
from setpoint.engine.context import EngineContext
from setpoint.engine.intent import resolve_ignoring_readiness
from setpoint.engine.kind import Absent, Reconciliation, observe_decoded
from setpoint.engine.management import Management, management_of
from setpoint.engine.owners.children import observe_children
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.state import ENGINE_STATE, StoredState
from setpoint.engine.step.outcomes import AdoptedObject
from setpoint.engine.step.plan import live_digest
from setpoint.engine.step.reconcile import preview
from setpoint.engine.step.store_decorators import OverlayStore
from setpoint.errors import Bug, NotReady, RemoteRefused, SetpointError, UserError


@dataclass(frozen=True, slots=True)
class CurrentDigests:
    """The digests of intent and live object now, whatever is on record. `live` is None when there is no object."""

    intent: str
    live: str | None
    body: str | None = None
    # The version of each secret, by its field.
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def cookie(self) -> Cookie | None:
        """The cookie of both."""
        return None if self.live is None else Cookie(self.intent, self.live)


async def current_digests(resource: Resource, engine: EngineContext) -> CurrentDigests:
    """The current digests of `resource`. Its dependencies have to exist, and count as ready."""
    owner = engine.owners.get(resource.ref.group_kind)
    if owner is not None:
        observation = await observe_children(resource, owner, engine)
        live = observation.live_digest
        return CurrentDigests(observation.intent, None if isinstance(live, Missing) else live)
    engine = await engine.for_namespace(resource.ref.namespace)
    intent = await resolve_ignoring_readiness(resource, engine)
    observed = await observe_decoded(intent.location, engine.kind_of(resource))
    if isinstance(observed, Absent):
        return CurrentDigests(intent.digest, None, None, intent.resolved.versions)
    live = live_digest(observed)
    assert not isinstance(live, Missing)
    return CurrentDigests(intent.digest, live, observed.body, intent.resolved.versions)


_log: Final = logging.getLogger(__name__)


class PreviewFinding(StrEnum):
    """What both previews of a resource come to, the least important first."""

    IN_SYNC = "in sync"
    # The cookie does not match any more, and nothing is to be written: one full comparison, and it matches again.
    ONE_TIME = "one-time"
    # Something differs and is not written: it is unmanaged, oscillates, or did not converge.
    HELD = "held"
    # It waits for a dependency, and is written after that.
    WAITING = "waiting"
    WRITES = "writes"
    # Nothing is to be written, and the next cookie will not match either.
    UNSETTLED = "unsettled"
    # The cookie matches, and hides a difference.
    MASKED = "masked"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PreviewResult:
    """The preview of one resource: the finding, and both plans, or the error that prevents one.

    `plan` is that of the next step; `whole` is the plan without a cookie. Where only that is missing, `trouble` is the
    error with which the service, or the kind, would refuse it.
    """

    ref: ResourceRef
    finding: PreviewFinding
    plan: Plan | None = None
    whole: Plan | None = None
    trouble: str = ""

    @property
    def shown(self) -> Plan | None:
        """The plan to show."""
        return self.whole if self.finding is PreviewFinding.MASKED else self.plan

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that would be written, that are held back, or that a cookie hides."""
        shown = self.shown
        changes = () if shown is None else (*shown.changes, *shown.withheld)
        return tuple(dict.fromkeys(str(change.path) for change in changes))

    @property
    def writes_nothing(self) -> bool:
        """Whether nothing is written, neither now nor after a backoff."""
        is_observed = self.plan is not None and self.plan.held is Hold.OBSERVED
        return self.finding in (PreviewFinding.IN_SYNC, PreviewFinding.ONE_TIME) or (
            self.finding is PreviewFinding.HELD and is_observed
        )

    def to_data(self) -> dict[str, Json]:
        """The result as JSON with stable member names; what is empty is left out."""
        group, kind, namespace, name = self.ref
        data: dict[str, Json] = {"group": group, "kind": kind, "namespace": namespace, "name": name}
        data |= {"finding": self.finding.value, "fields": list(self.fields)}
        if self.plan is None:
            return {**data, "error": self.trouble}
        data["plan"] = self.plan.to_data()
        if self.whole is None:
            return {**data, "withoutCookieError": self.trouble}
        # The plan without a cookie is shown where it differs.
        return data if _does_the_same(self.plan, self.whole) else {**data, "withoutCookie": self.whole.to_data()}


async def preview_with_and_without_cookie(ref: ResourceRef, engine: EngineContext) -> PreviewResult:
    """Both plans of `ref`, and the finding. An error is a finding, too, so that other resources are previewed."""
    try:
        plan = await preview(ref, engine)
        try:
            whole = await preview(ref, engine, trust_cookie=False)
        except (UserError, RemoteRefused) as error:
            # Only a difference can lead to this error.
            return PreviewResult(ref, _without_whole(plan), plan, None, str(error))
        return PreviewResult(ref, await _finding(ref, engine, plan, whole), plan, whole)
    except NotReady as error:
        return PreviewResult(ref, PreviewFinding.WAITING, trouble=str(error))
    except SetpointError as error:
        return PreviewResult(ref, PreviewFinding.FAILED, trouble=str(error))
    except Exception as error:  # noqa: BLE001 - a bug, and no reason to leave out other resources
        _log.exception("preview broke", extra={"ref": str(ref)})
        # Without its text, which may contain a secret.
        bug = Bug(f"{type(error).__name__} in the preview of {ref}: a bug of ours; the log has its traceback")
        return PreviewResult(ref, PreviewFinding.FAILED, trouble=str(bug))


def _without_whole(plan: Plan) -> PreviewFinding:
    """The finding when the plan without a cookie is refused."""
    if plan.writes:
        return PreviewFinding.WRITES
    return PreviewFinding.HELD if plan.withheld else PreviewFinding.MASKED


def _does_the_same(one: Plan, other: Plan) -> bool:
    return one.writes == other.writes and one.withheld == other.withheld


async def _finding(ref: ResourceRef, engine: EngineContext, plan: Plan, whole: Plan) -> PreviewFinding:
    if plan.writes:
        return PreviewFinding.WRITES
    if plan.decision is Decision.IN_SYNC:
        return PreviewFinding.MASKED if whole.writes or whole.withheld else PreviewFinding.IN_SYNC
    if plan.withheld:
        return PreviewFinding.HELD
    resource = await engine.store.get(ref)
    if resource is None or resource.is_deleting:
        return PreviewFinding.IN_SYNC
    return await _finding_without_cookie(resource, engine)


async def _finding_without_cookie(resource: Resource, engine: EngineContext) -> PreviewFinding:
    """The finding when nothing is to be written, and the cookie does not match."""
    seen = await current_digests(resource, engine)
    attempt = StoredState.of(resource).attempt
    if attempt is not None and attempt.unconverged_at is not None and attempt.unconverged_at == seen.cookie:
        # Everything was sent, and the service did not converge: nothing is sent again until something changes.
        return PreviewFinding.HELD
    if seen.cookie is None or not _keeps_a_cookie(resource, engine):
        return PreviewFinding.IN_SYNC
    return PreviewFinding.ONE_TIME if await _is_fast_after(seen, resource, engine) else PreviewFinding.UNSETTLED


def _keeps_a_cookie(resource: Resource, engine: EngineContext) -> bool:
    if management_of(resource.annotations) is not Management.FULL:
        return False
    kind = engine.kinds.get(resource.ref.group_kind)
    return kind is None or kind.reconciliation is Reconciliation.STATEFUL


async def _is_fast_after(seen: CurrentDigests, resource: Resource, engine: EngineContext) -> bool:
    """Whether the cookie that the next step makes matches in the step after it."""
    settled = with_cookie(resource, seen.cookie, seen.body)
    second = replace(engine, store=OverlayStore(engine.store, {resource.ref: settled}))
    return (await preview(resource.ref, second)).decision is Decision.IN_SYNC


def with_cookie(resource: Resource, cookie: Cookie | None, body: str | None = None) -> Resource:
    """The resource as if its last step had settled with this cookie."""
    state = replace(StoredState.of(resource), cookie=cookie, body=body, attempt=None)
    return Resource({**resource.document, "status": state.into(resource.status, with_cookie=True)})


# --- After an adoption ------------------------------------------------------------------------------------------------


def as_adopted(resource: Resource, adopts: AdoptedObject) -> Resource:
    """The resource as it is once its step has adopted an object: what others take from it is on record."""
    ready = conditions.UP_TO_DATE
    status: dict[str, Json] = {
        **adopts.outputs,
        "observedGeneration": resource.generation,
        "conditions": [{"type": "Ready", "status": ready.status, "reason": ready.reason}],
        ENGINE_STATE: {"location": adopts.location},
    }
    return Resource({**resource.document, "status": status})

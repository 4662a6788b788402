"""The plan of the fleet, made in the background once it is asked for: what the next step of each resource would do."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Final, Literal, TypeAlias

from msgspec import UNSET

from setpoint.core.diff import FieldChange
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Missing
from setpoint.dashboard.access.viewer import Scope, SeesScope, Viewer
from setpoint.dashboard.api.models import PlanProgress
from setpoint.dashboard.api.resource_models import FieldChangeModel, FleetPlan, PlanCounts, PlannedResource
from setpoint.dashboard.views.rows import id_of
from setpoint.dashboard.views.visibility import visibility_of
from setpoint.engine.ports import Clock
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.preview import PreviewFinding, PreviewResult
from setpoint.errors import SetpointError
from setpoint.library.command_record import CommandObserver
from setpoint.library.inspection.store_plan import StorePlan
from setpoint.library.session_reads import SessionReads

_log: Final = logging.getLogger(__name__)
# A plan that takes longer is given up.
_MAX_SECONDS: Final = 1800
_Action: TypeAlias = Literal["create", "update", "delete", "nothing", "failed"]


@dataclass(frozen=True, slots=True)
class MadePlan:
    """A plan that was made, and when."""

    at: str
    plan: StorePlan


@dataclass(slots=True)
class PlanMaker:
    """Makes plans of all resources, one at a time. `changed` is called as it goes on."""

    session: SessionReads
    clock: Clock
    changed: Callable[[], None]
    # How long a plan is not made anew: in a cluster each user may ask for one.
    kept_seconds: float = 0.0
    made: MadePlan | None = None
    error: str = ""
    is_cancelled: bool = False
    # How many resources of each scope are to be planned, and how many are: rights are asked for these.
    _expected: Counter[Scope] = field(default_factory=Counter)
    _done: Counter[Scope] = field(default_factory=Counter)
    _task: "asyncio.Task[None] | None" = field(default=None)
    # Who asked for it, and when.
    _asked: Viewer | None = None
    _asked_at: float = float("-inf")

    @property
    def is_running(self) -> bool:
        """Whether a plan is being made."""
        return self._task is not None and not self._task.done()

    def progress(self, sees: SeesScope) -> PlanProgress | None:
        """How far it is, of the scopes that may be shown; None when none is being made."""
        if not self.is_running:
            return None
        done, total = (sum(number for one, number in counts.items() if sees(one)) for counts in self._counts)
        return PlanProgress(done=done, total=total)

    @property
    def _counts(self) -> tuple[Counter[Scope], Counter[Scope]]:
        return self._done, self._expected

    def start(self, viewer: Viewer) -> None:
        """Starts a plan, unless one is being made, or has just been made."""
        now = self.clock.monotonic()
        if self.is_running or now - self._asked_at < self.kept_seconds:
            return
        self._expected.clear()
        self._done.clear()
        self.error, self.is_cancelled, self._asked, self._asked_at = "", False, viewer, now
        self._task = asyncio.create_task(self._make())
        # Even of one that is cancelled before it begins.
        self._task.add_done_callback(lambda _: self.changed())

    def cancel(self, viewer: Viewer) -> bool:
        """Ends a plan that is being made; False when another user asked for it."""
        if self.is_running and not (viewer.is_unrestricted or self._is_of(viewer)):
            return False
        if self.is_running and self._task is not None:
            self._task.cancel()
            self.is_cancelled = True
            # It may be asked for again at once.
            self._asked_at = float("-inf")
        return True

    def _is_of(self, viewer: Viewer) -> bool:
        return self._asked is not None and self._asked.user == viewer.user

    async def close(self) -> None:
        """Ends a plan that is being made."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _make(self) -> None:
        at = self.clock.now()
        try:
            async with asyncio.timeout(_MAX_SECONDS):
                plan = await self.session.plan_all(observer=_Progress(self._expect, self._advance))
            self.made = MadePlan(at, plan)
        except SetpointError as error:
            self.error = str(error)
            _log.warning("plan of the dashboard failed", extra={"why": str(error)})
        except TimeoutError:
            self.error = f"the plan took longer than {_MAX_SECONDS} seconds: make it by `setpoint plan --all`"
        except Exception:  # noqa: BLE001 - a bug must not end the process
            _log.exception("plan of the dashboard broke")
            self.error = "a bug of ours: the log of the process has its traceback"

    def _expect(self, refs: Iterable[ResourceRef]) -> None:
        self._expected.update(map(Scope.of, refs))
        self.changed()

    def _advance(self, ref: ResourceRef) -> None:
        self._done[Scope.of(ref)] += 1
        self.changed()

    async def shown_to(self, viewer: Viewer) -> FleetPlan:
        """The plan of what a viewer may see."""
        # As it is before rights are asked for: a plan may end meanwhile.
        made, is_running, error = self.made, self.is_running, self._error_for(viewer)
        results = () if made is None else made.plan.results
        visible = await visibility_of(viewer, {*(Scope.of(one.ref) for one in results), *self._expected})
        shown = [planned_resource(one) for one in results if visible.sees(one.ref)]
        counts: Counter[str] = Counter(one.action for one in shown)
        progress = self.progress(visible.sees_scope) or PlanProgress(done=len(shown), total=len(shown))
        return FleetPlan(
            made_at=None if made is None else made.at,
            is_running=is_running,
            done=progress.done,
            total=progress.total,
            counts=PlanCounts(**counts),
            resources=tuple(shown),
            error=error,
            is_cancelled=self.is_cancelled,
        )

    def _error_for(self, viewer: Viewer) -> str | None:
        """Why there is no newer plan; to a restricted viewer nothing that may name what is not theirs."""
        if self.is_cancelled:
            return "the plan was cancelled"
        if not self.error or viewer.is_unrestricted:
            return self.error or None
        return "the plan was not finished: the operator finds the reason in the log of the process"


class _Progress(CommandObserver):
    """Counts the resources that are planned."""

    def __init__(self, expect: Callable[[Iterable[ResourceRef]], None], advance: Callable[[ResourceRef], None]) -> None:
        self._expect = expect
        self._advance = advance

    def expected(self, refs: Iterable[ResourceRef]) -> None:
        """See CommandObserver."""
        self._expect(refs)

    def previewed(self, found: PreviewResult) -> None:
        """See CommandObserver."""
        self._advance(found.ref)


def planned_resource(one: PreviewResult) -> PlannedResource:
    """What the next step of a resource would do; plans have no secret values."""
    plan = one.shown
    changes = () if plan is None else (*plan.changes, *plan.withheld)
    return PlannedResource(
        id=id_of(one.ref),
        action=_action(one),
        decision="" if plan is None else plan.decision.value,
        finding=one.finding.value,
        fields=tuple(map(change_model, changes)),
        error=one.trouble or None,
    )


def change_model(change: FieldChange) -> FieldChangeModel:
    """A planned change of a field."""
    before, after = (UNSET if isinstance(side, Missing) else side for side in (change.before, change.after))
    return FieldChangeModel(path=str(change.path), before=before, after=after, why=change.rule.value)


def _action(one: PreviewResult) -> _Action:
    if one.finding in (PreviewFinding.FAILED, PreviewFinding.MASKED, PreviewFinding.UNSETTLED):
        return "failed"
    if one.plan is None or not one.plan.writes:
        return "nothing"
    action = one.plan.writes[0].action.value
    return "create" if action == "create" else "delete" if action == "delete" else "update"

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
from setpoint.dashboard.access.viewer import Scope, Viewer
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
    progress: PlanProgress | None = None
    made: MadePlan | None = None
    error: str = ""
    # Whose scopes it has: rights are asked for these.
    _task: "asyncio.Task[None] | None" = field(default=None)

    @property
    def is_running(self) -> bool:
        """Whether a plan is being made."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Starts a plan, unless one is being made."""
        if not self.is_running:
            self.progress, self.error = PlanProgress(done=0, total=0), ""
            self._task = asyncio.create_task(self._make())

    async def close(self) -> None:
        """Ends a plan that is being made."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _make(self) -> None:
        at = self.clock.now()
        try:
            plan = await self.session.plan_all(observer=_Progress(self._advance))
            self.made = MadePlan(at, plan)
        except SetpointError as error:
            self.error = str(error)
        except Exception:  # noqa: BLE001 - a bug must not end the process
            _log.exception("plan of the dashboard broke")
            self.error = "a bug of ours: the log of the process has its traceback"
        finally:
            self.progress = None
            self.changed()

    def _advance(self, done: int, total: int) -> None:
        self.progress = PlanProgress(done=done, total=total)
        self.changed()

    async def shown_to(self, viewer: Viewer) -> FleetPlan:
        """The plan of what a viewer may see."""
        results = () if self.made is None else self.made.plan.results
        visible = await visibility_of(viewer, {Scope.of(one.ref) for one in results})
        shown = [planned_resource(one) for one in results if visible.sees(one.ref)]
        counts: Counter[str] = Counter(one.action for one in shown)
        progress = self.progress or PlanProgress(done=len(shown), total=len(shown))
        is_hidden = not viewer.is_unrestricted
        return FleetPlan(
            made_at=None if self.made is None else self.made.at,
            is_running=self.is_running,
            done=progress.done,
            total=progress.total,
            counts=PlanCounts(**counts),
            resources=tuple(shown),
            error=None if is_hidden or not self.error else self.error,
        )


class _Progress(CommandObserver):
    """Counts the resources that are planned."""

    def __init__(self, advance: Callable[[int, int], None]) -> None:
        self._advance = advance
        self._done = self._total = 0

    def expected(self, refs: Iterable[ResourceRef]) -> None:
        """See CommandObserver."""
        self._total = len(list(refs))
        self._advance(0, self._total)

    def previewed(self, found: PreviewResult) -> None:
        """See CommandObserver."""
        self._done += 1
        self._advance(self._done, self._total)


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

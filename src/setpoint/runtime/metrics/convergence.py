"""Measures the time from an edit to Ready, and from the last in-sync observation to drift."""

from typing import Protocol

from setpoint.core.decide import Decision
from setpoint.core.plan import Hold
from setpoint.engine.kind import ResourceType
from setpoint.engine.ports import Clock
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Settled, StepOutcome


class ControllerMetrics(Protocol):
    """What is measured of a controller, besides its steps and its queue. Kinds are given by name."""

    def add_kind(self, kind: ResourceType) -> None:
        """Resources of this kind are reconciled from now on."""
        ...

    def converged(self, kind: str, seconds: float) -> None:
        """A resource got ready so long after an edit."""
        ...

    def drifted(self, kind: str, seconds: float) -> None:
        """Drift was corrected so long after the last in-sync observation: at most as old as that."""
        ...

    def listed(self, kind: str, ending: str, resyncs: int) -> None:
        """A listing ended with this result, and saved so many resyncs."""
        ...


class ConvergenceTracker:
    """Tracks the edits and in-sync observations of the resources of one kind."""

    def __init__(self, kind: str, metrics: ControllerMetrics, clock: Clock) -> None:
        self._kind = kind
        self._metrics = metrics
        self._clock = clock
        # When the first pending edit was seen; when the resource was last seen in sync.
        self._edited_at: dict[ResourceRef, float] = {}
        self._in_sync_at: dict[ResourceRef, float] = {}
        # When a step last looked at the live object, and found it otherwise: of few resources.
        self._looked_at: dict[ResourceRef, float] = {}

    @property
    def seen(self) -> int:
        """How many resources this process has seen in sync at least once."""
        return len(self._in_sync_at)

    def is_new(self, ref: ResourceRef) -> bool:
        """Whether this process has never seen it in sync."""
        return ref not in self._in_sync_at

    def last_look(self, ref: ResourceRef) -> float | None:
        """When this process last looked at the live object and got an answer; None when it has not yet."""
        seen, looked = self._in_sync_at.get(ref), self._looked_at.get(ref)
        return max(seen, looked) if seen is not None and looked is not None else looked if seen is None else seen

    def edited(self, ref: ResourceRef) -> None:
        """Its author changed it."""
        self._edited_at.setdefault(ref, self._clock.monotonic())

    def seen_in_sync(self, ref: ResourceRef, at: float) -> None:
        """It was seen in sync at that time."""
        self._in_sync_at[ref] = at

    def step_finished(self, ref: ResourceRef, outcome: StepOutcome) -> None:
        """A step ended."""
        if not isinstance(outcome, Settled):
            return
        now = self._clock.monotonic()
        if outcome.ready.status != "True":
            # Of a paused resource nothing is read.
            if outcome.plan.held is not Hold.PAUSED:
                self._looked_at[ref] = now
            return
        self._looked_at.pop(ref, None)
        edited = self._edited_at.pop(ref, None)
        if edited is not None:
            self._metrics.converged(self._kind, now - edited)
        seen = self._in_sync_at.get(ref)
        if outcome.plan.decision is Decision.DRIFTED and seen is not None:
            self._metrics.drifted(self._kind, now - seen)
        self._in_sync_at[ref] = now

    def listed(self, ending: str, resyncs: int) -> None:
        """A listing ended with this result, and saved so many resyncs."""
        self._metrics.listed(self._kind, ending, resyncs)

    def forget(self, ref: ResourceRef) -> None:
        """It is gone."""
        self._edited_at.pop(ref, None)
        self._in_sync_at.pop(ref, None)
        self._looked_at.pop(ref, None)

"""Measures the time from an edit to Ready, and from the last in-sync observation to drift."""

from typing import Protocol

from setpoint.core.decide import Decision
from setpoint.engine.context import Settled, StepOutcome
from setpoint.engine.ports import Clock
from setpoint.engine.resource import ResourceRef


class ControllerMetrics(Protocol):
    """What is measured of a controller, besides its steps and its queue."""

    def converged(self, kind: str, seconds: float) -> None:
        """An edit was carried out that long after it was heard of."""
        ...

    def drifted(self, kind: str, seconds: float) -> None:
        """Drift was found at most that long after it came to be."""
        ...

    def listed(self, kind: str, ending: str, looks: int) -> None:
        """A listing ended like that, and made so many looks needless."""
        ...


class ConvergenceTracker:
    """The ages of the resources of one kind, by its name."""

    def __init__(self, kind: str, measures: ControllerMetrics, clock: Clock) -> None:
        self._kind = kind
        self._measures = measures
        self._clock = clock
        # When the first edit was heard of that is not carried out yet; when a look last found everything in order.
        self._edited: dict[ResourceRef, float] = {}
        self._in_order: dict[ResourceRef, float] = {}

    def is_new(self, ref: ResourceRef) -> bool:
        """Whether this process has never found it in order."""
        return ref not in self._in_order

    def edited(self, ref: ResourceRef) -> None:
        """Its author changed something."""
        self._edited.setdefault(ref, self._clock.monotonic())

    def seen_in_sync(self, ref: ResourceRef, at: float) -> None:
        """It was seen to be in order at that time."""
        self._in_order[ref] = at

    def step_finished(self, ref: ResourceRef, outcome: StepOutcome) -> None:
        """A step came to its end."""
        if not (isinstance(outcome, Settled) and outcome.ready.status == "True"):
            return
        now = self._clock.monotonic()
        edited = self._edited.pop(ref, None)
        if edited is not None:
            self._measures.converged(self._kind, now - edited)
        seen = self._in_order.get(ref)
        if outcome.plan.decision is Decision.DRIFTED and seen is not None:
            self._measures.drifted(self._kind, now - seen)
        self._in_order[ref] = now

    def listed(self, ending: str, looks: int) -> None:
        """A listing ended like that, and made so many looks needless."""
        self._measures.listed(self._kind, ending, looks)

    def forget(self, ref: ResourceRef) -> None:
        """It is gone."""
        self._edited.pop(ref, None)
        self._in_order.pop(ref, None)

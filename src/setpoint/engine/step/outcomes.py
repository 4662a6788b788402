"""What a step may end in, and a step stopped before its first write."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from setpoint.core.plan import Plan
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.conditions import ReadyCondition
from setpoint.engine.resource import ResourceRef
from setpoint.errors import SetpointError


@dataclass(frozen=True, slots=True)
class Settled:
    """Nothing is left to do now. `plan` is what the step found and did.

    `requeue_after`: the seconds until the next step is due, before the next resync.
    """

    plan: Plan
    ready: ReadyCondition
    requeue_after: float | None = None
    # Children that are reconciled here, and are due now.
    due_children: tuple[ResourceRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Stopped:
    """The step ended early; the class of `error` decides the retry."""

    error: SetpointError
    # As above.
    due_children: tuple[ResourceRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Gone:
    """The resource does not exist any more, or is not held by a finalizer of the engine any more."""


StepOutcome: TypeAlias = Settled | Stopped | Gone


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step stopped before its first write: its plan, and the function that executes it.

    A preview reads `plan`; a step continues with `execute`. Nothing was written to make one.
    """

    plan: Plan
    execute: Callable[[], Awaitable[StepOutcome]]


@dataclass(frozen=True, slots=True)
class FailedStep:
    """A step that cannot be planned because of `error`. `execute` puts that on record and raises it, as a rule."""

    error: SetpointError
    execute: Callable[[], Awaitable[StepOutcome]]


StepPlan: TypeAlias = PlannedStep | FailedStep

"""What a step may end in, and a step stopped before its first write; and who is told of outcomes, as traces."""

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeAlias

from setpoint.core.plan import Plan
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.conditions import ReadyCondition
from setpoint.engine.kind import Location
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
class AdoptedObject:
    """What is on record of an object once its resource has adopted it: the location, and what the status shows."""

    location: Location
    outputs: JsonObject


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step stopped before its first write: its plan, and the function that executes it.

    A preview reads `plan`; a step continues with `execute`. Nothing was written to make one. `adopts` is the object
    that the step adopts, and that dependants can refer to after it.
    """

    plan: Plan
    execute: Callable[[], Awaitable[StepOutcome]]
    adopts: AdoptedObject | None = None


@dataclass(frozen=True, slots=True)
class FailedStep:
    """A step that cannot be planned because of `error`. `execute` puts that on record and raises it, as a rule."""

    error: SetpointError
    execute: Callable[[], Awaitable[StepOutcome]]


StepPlan: TypeAlias = PlannedStep | FailedStep


# --- Traces ---------------------------------------------------------------------------------------------------------

P = ParamSpec("P")
# Told the outcome of a step in a word, the decision, and the name of the error if there was one.
StepEnd = Callable[[str, str, str], None]


class StepTracer(Protocol):
    """Records steps as spans."""

    def step(self, ref: ResourceRef, trigger: str) -> AbstractContextManager[StepEnd]:
        """A span around a step; requests inside belong to it."""
        ...


@dataclass(slots=True)
class _Installed:
    tracer: StepTracer | None = None


_installed = _Installed()


def install_step_tracer(tracer: StepTracer | None) -> None:
    """From now on steps are told to this tracer, or to none."""
    _installed.tracer = tracer


def traced(step: "Callable[P, Coroutine[Any, Any, StepOutcome]]") -> "Callable[P, Coroutine[Any, Any, StepOutcome]]":
    """The step, told to the tracer if there is one."""

    @wraps(step)
    def run(*arguments: P.args, **options: P.kwargs) -> Coroutine[Any, Any, StepOutcome]:
        tracer = _installed.tracer
        if tracer is None:
            return step(*arguments, **options)
        ref = arguments[0]
        assert isinstance(ref, ResourceRef)
        return _run(tracer, ref, str(options.get("trigger", "")), lambda: step(*arguments, **options))

    return run


async def _run(
    tracer: StepTracer, ref: ResourceRef, trigger: str, take: Callable[[], Coroutine[Any, Any, StepOutcome]]
) -> StepOutcome:
    with tracer.step(ref, trigger) as end:
        outcome = await take()
        match outcome:
            case Settled():
                end("settled", outcome.plan.decision, "")
            case Gone():
                end("gone", "", "")
            case _:
                end(outcome.error.retry.name.lower(), "", type(outcome.error).__name__)
    return outcome

"""The metrics of steps: what is measured, as a protocol, and every counter of what steps do.

To count something else that steps do: define a `StepCount`, add it to `STEP_COUNTS`, and call `StepMetrics.count`
where it happens. The metrics page shows it from the first step of a kind on.
"""

from typing import Final, Protocol

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.kind import Reconciliation, ResourceType


@dataclass(frozen=True, slots=True)
class StepCount:
    """A counter of what steps do, by kind: its name on the metrics page, the label with the kind, and the help text."""

    name: str
    label: str
    help: str


TERMINAL_ERRORS: Final = StepCount(
    "controller_runtime_terminal_reconcile_errors_total",
    "controller",
    "Steps that failed in a way that only the author can mend.",
)
BUGS: Final = StepCount("controller_runtime_reconcile_panics_total", "controller", "Steps that met a bug of ours.")
STEP_COUNTS: Final = (TERMINAL_ERRORS, BUGS)


class StepMetrics(Protocol):
    """The metrics of steps."""

    def count(self, count: StepCount, kind: str) -> None:
        """A step of this kind did what `count` counts."""
        ...

    def step_finished(self, kind: str, outcome: str, decision: str, seconds: float) -> None:
        """A step of this kind ended in that time with `outcome`: settled, gone, or the retry of its error.

        `decision` is empty when it did not get that far.
        """
        ...


class NoMetrics:
    """Metrics that are not collected."""

    def count(self, count: StepCount, kind: str) -> None:
        """See StepMetrics."""

    def step_finished(self, kind: str, outcome: str, decision: str, seconds: float) -> None:
        """See StepMetrics."""


def is_stateless(kind: ResourceType) -> bool:
    """Whether it is a kind without cookies: its steps neither hit nor miss one."""
    return getattr(kind, "reconciliation", None) is Reconciliation.STATELESS

"""Whether a Trustee is ready: told from its live Deployment."""

from enum import StrEnum
from typing import NamedTuple

from setpoint.core.kubernetes import count_at, title
from setpoint.core.rollout import rollout_left
from setpoint.engine.resource import Tree


class Readiness(StrEnum):
    """What is to be said of it, in one word."""

    READY = "Ready"
    SCALED_TO_ZERO = "ScaledToZero"
    ROLLING_OUT = "RollingOut"
    ABSENT = "DeploymentAbsent"


class Verdict(NamedTuple):
    """A word, and the same in a sentence."""

    readiness: Readiness
    message: str

    @property
    def is_ready(self) -> bool:
        """Whether clients are served by what was asked for."""
        return self.readiness is Readiness.READY


def readiness(live: Tree | None) -> Verdict:
    """All pods that were asked for run what was asked for: an old status says nothing about a new spec."""
    if live is None:
        return Verdict(Readiness.ABSENT, "the Deployment is not there yet")
    left = rollout_left(live)
    if left is not None:
        return Verdict(Readiness.ROLLING_OUT, f"{title(live)}: {left}")
    if count_at(live, "spec", "replicas", absent=1) == 0:
        return Verdict(Readiness.SCALED_TO_ZERO, f"{title(live)} is scaled to zero: nobody is served")
    return Verdict(Readiness.READY, "Trustee deployment is ready")

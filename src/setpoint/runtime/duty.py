"""What is this process's to do: everything, or the shards that it holds."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from setpoint.engine.resource import ResourceRef
from setpoint.engine.scene import Outcome
from setpoint.errors import LeaseLost, SetpointError
from setpoint.runtime.holding import Step
from setpoint.runtime.replica import Replica


@dataclass(frozen=True, slots=True)
class Duty:
    """Without a replica, everything; `stop` ends the process."""

    stop: Callable[[SetpointError], None]
    replica: Replica | None = None

    def covers(self, ref: ResourceRef) -> bool:
        """Whether `ref` is to be looked at here."""
        return self.replica is None or self.replica.holds(ref)

    def take(self, ref: ResourceRef, step: Step) -> Awaitable[Outcome]:
        """What the step for `ref` comes to; LeaseLost when it is not to be taken here, or not any more."""
        return step() if self.replica is None else self.replica.take(ref, step)

    def end(self, error: SetpointError) -> None:
        """A step may not go on because of `error`. After a lost lease only its shard ends, until it is ours again."""
        if self.replica is None or not isinstance(error, LeaseLost):
            self.stop(error)

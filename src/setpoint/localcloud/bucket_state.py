"""Everything Cloud Storage remembers, as plain data."""

from dataclasses import dataclass

from msgspec import Struct, field

from setpoint.localcloud.faults import Faults
from setpoint.localcloud.routes import Call
from setpoint.localcloud.trees import Tree


class Bucket(Struct):
    """A bucket, who owns it, and what it holds: every version of every object, oldest first."""

    project: str
    resource: Tree
    objects: list[Tree] = field(default_factory=list)


class StorageState(Struct):
    """All buckets of all projects: they share one namespace. `count` is the last generation that was given out."""

    buckets: dict[str, Bucket] = field(default_factory=dict)
    count: int = 0


@dataclass(slots=True)
class CloudStorage:
    """The service: what it remembers, and what it was told to do wrong."""

    state: StorageState
    faults: Faults


def next_generation(state: StorageState, call: Call) -> str:
    """A number that was never given out before: microseconds since the epoch, as the real ones are."""
    state.count = max(state.count + 1, int(call.now.timestamp() * 1_000_000))
    return str(state.count)

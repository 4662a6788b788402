"""What a fleet took, with one replica or several: every quantity by its name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from benchmarks.growth.phases import Phase, PhaseUsage
from benchmarks.growth.replica_process import ReplicaUsage
from benchmarks.scenarios import Unit

MEMORY: Final = "memory at the peak, beyond that without resources"
LARGEST: Final = "memory at the peak, largest process"
QUEUE: Final = "longest queue"
BLOCK: Final = "longest block of the event loop"
# Phases that end when everything is in sync; the others last as long as they are told to.
OPEN_PHASES: Final = (Phase.RESTART, Phase.DRIFT, Phase.RECOVERY)


class Quantity(NamedTuple):
    """A value with its unit."""

    value: float
    unit: Unit


@dataclass(frozen=True, slots=True)
class FleetUsage:
    """What a fleet of `count` resources took, in so many processes.

    If not all of them were measured, the others are taken to be like the `replicas` that were.
    """

    count: int
    number: int
    replicas: Sequence[ReplicaUsage]

    @property
    def subject(self) -> str:
        """The heading of its measurements."""
        return f"growth: {self.count:,} resources, {self.processes}"

    @property
    def processes(self) -> str:
        """How many processes it has."""
        return "1 process" if self.number == 1 else f"{self.number} processes"

    @property
    def _share(self) -> float:
        """The resources of the fleet for each that was measured."""
        return self.count / sum(replica.own for replica in self.replicas)

    def cpu(self, phase: Phase) -> float:
        """The CPU seconds of all processes in a phase."""
        return self._share * sum(one.cpu for one in self.phases(phase))

    @property
    def measured_phases(self) -> Sequence[Phase]:
        """The phases that were measured."""
        return tuple(self.replicas[0].phases)

    def phases(self, phase: Phase) -> Sequence[PhaseUsage]:
        """The usage of a phase by each replica."""
        return [replica.phases[phase] for replica in self.replicas]

    @property
    def quantities(self) -> Mapping[str, Quantity]:
        """Every quantity that is measured, by its name: of all replicas together, times of the slowest."""
        return dict(self._quantities())

    def _quantities(self) -> Iterator[tuple[str, Quantity]]:
        for phase in self.measured_phases:
            used = self.phases(phase)
            yield f"{phase}: CPU time", Quantity(self.cpu(phase), Unit.SECONDS)
            if phase in OPEN_PHASES:
                yield f"{phase}: virtual time", Quantity(max(one.seconds for one in used), Unit.SECONDS)
            counts = {
                "requests": sum(one.requests for one in used),
                "requests in the busiest second": sum(one.requests_peak for one in used),
                QUEUE: sum(one.depth for one in used),
            }
            for name, count in counts.items():
                yield f"{phase}: {name}", Quantity(self._share * count, Unit.NUMBER)
        yield (
            BLOCK,
            Quantity(max(one.block for phase in self.measured_phases for one in self.phases(phase)), Unit.SECONDS),
        )
        peaks = [max(one.memory for one in replica.phases.values()) for replica in self.replicas]
        beyond = sum(peaks) - sum(replica.memory_at_start for replica in self.replicas)
        # Every process has the whole fleet in its index, so that this does not go by their shares.
        yield MEMORY, Quantity(beyond * self.number / len(self.replicas), Unit.BYTES)
        yield LARGEST, Quantity(max(peaks), Unit.BYTES)

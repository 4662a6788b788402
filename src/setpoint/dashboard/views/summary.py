"""The overview: how many resources are in each state, which need a person, and what the process does."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.access.viewer import Sees, Viewer
from setpoint.dashboard.api.models import (
    Attention,
    KindCount,
    NamespaceCount,
    ProcessLease,
    ProcessState,
    Row,
    State,
    Summary,
)
from setpoint.dashboard.views.fleet import FleetRows
from setpoint.engine.resource import ResourceRef

_MAX_ATTENTION: Final = 50
# What needs a person first.
_SEVERITY: Final[dict[State, int]] = {"failed": 0, "contested": 1, "notConverged": 2, "blocked": 3, "observed": 4}


class ProcessSource(Protocol):
    """The controller process that serves the page, and those that share its cluster."""

    def state(self) -> ProcessState | None:
        """What this process does; None when no controllers run in it."""
        ...

    @property
    def identity(self) -> str | None:
        """The identity of this process among those of its cluster; None for one that is alone."""
        ...

    async def processes(self, token: str | None) -> Sequence[ProcessLease]:
        """The processes of the cluster; empty for a store that a single process has.

        The others are asked with the token of a user who may see the processes.
        """
        ...

    @property
    def activity(self) -> object:
        """What changes when a process did something."""
        ...

    def seconds_until_step(self, ref: ResourceRef) -> float | None:
        """The seconds until this process takes the next step of a resource by itself; None when it will not."""
        ...

    def rescheduled(self) -> Mapping[ResourceRef, float | None]:
        """See StepSource."""
        ...

    async def others(self, refs: Collection[ResourceRef], tokens: Collection[str]) -> Mapping[ResourceRef, str]:
        """See StepSource."""
        ...


class NoProcess:
    """For a page that is served beside the controllers."""

    def state(self) -> ProcessState | None:
        """See ProcessSource."""
        return None

    @property
    def identity(self) -> str | None:
        """See ProcessSource."""
        return None

    async def processes(self, token: str | None) -> Sequence[ProcessLease]:
        """See ProcessSource."""
        return ()

    @property
    def activity(self) -> object:
        """See ProcessSource."""
        return None

    def seconds_until_step(self, ref: ResourceRef) -> float | None:
        """See ProcessSource."""
        return None

    def rescheduled(self) -> Mapping[ResourceRef, float | None]:
        """See StepSource."""
        return {}

    async def others(self, refs: Collection[ResourceRef], tokens: Collection[str]) -> Mapping[ResourceRef, str]:
        """See StepSource."""
        return {}


def summarize(
    rows: Iterable[Row], process: ProcessState | None = None, processes: Sequence[ProcessLease] = ()
) -> Summary:
    """The summary of these rows."""
    by_kind: dict[tuple[str, str], Counter[State]] = {}
    namespaces: Counter[str] = Counter()
    pressing: list[Row] = []
    for row in rows:
        by_kind.setdefault((row.kind, row.group), Counter())[row.state] += 1
        namespaces[row.namespace] += 1
        if row.state in _SEVERITY and (row.state != "observed" or row.drifted):
            pressing.append(row)
    states: Counter[State] = Counter()
    for counts in by_kind.values():
        states.update(counts)
    pressing.sort(key=lambda row: (_SEVERITY[row.state], row.since or "", row.id))
    return Summary(
        total=states.total(),
        by_state=dict(states),
        by_kind=tuple(
            KindCount(kind=kind, group=group, total=counts.total(), by_state=dict(counts))
            for (kind, group), counts in sorted(by_kind.items())
        ),
        by_namespace=tuple(NamespaceCount(namespace=one, total=total) for one, total in sorted(namespaces.items())),
        attention=tuple(
            Attention(id=row.id, state=row.state, reason=row.reason, message=row.message, since=row.since)
            for row in pressing[:_MAX_ATTENTION]
        ),
        process=process,
        processes=tuple(processes),
    )


@dataclass(slots=True)
class Summaries:
    """Summaries of what each viewer sees; the one of everything is made once for all streams."""

    rows: FleetRows
    process: ProcessSource
    _number: int = -1
    _everything: Summary | None = None

    async def of(self, viewer: Viewer, sees: Sees) -> Summary:
        """The summary for a viewer: counts of what it sees, and the processes, which take a right of their own."""
        summary = self._whole() if viewer.is_unrestricted else self._part(sees)
        if not await viewer.sees_processes():
            return summary
        processes = await self.process.processes(viewer.token)
        return _with_process(summary, self.process.state(), processes)

    def _part(self, sees: Sees) -> Summary:
        return summarize(found.row for ref in self.rows if sees(ref) and (found := self.rows.get(ref)))

    def _whole(self) -> Summary:
        if self._everything is None or self._number != self.rows.number:
            number = self.rows.number
            self._everything = summarize(found.row for ref in self.rows if (found := self.rows.get(ref)))
            self._number = number
        return self._everything


def _with_process(summary: Summary, process: ProcessState | None, processes: Sequence[ProcessLease]) -> Summary:
    if process is None and not processes:
        return summary
    return Summary(
        total=summary.total,
        by_state=summary.by_state,
        by_kind=summary.by_kind,
        by_namespace=summary.by_namespace,
        attention=summary.attention,
        process=process,
        processes=tuple(processes),
    )


def is_news(before: Summary | None, after: Summary) -> bool:
    """Whether a summary says something new: that the process is a second older is none."""
    return before is None or _without_uptime(before) != _without_uptime(after)


def _without_uptime(summary: Summary) -> tuple[object, ...]:
    process = summary.process
    running = None if process is None else process.activity
    counts = (summary.total, summary.by_state, summary.by_kind, summary.by_namespace, summary.attention)
    others = (
        (one.identity, one.shards, None if one.state is None else one.state.activity) for one in summary.processes
    )
    return (*counts, running, tuple(others))

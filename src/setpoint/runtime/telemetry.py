"""What is measured of a process that goes on for ever, and the page that Prometheus reads.

A step only counts. Names, labels and text come when somebody asks for the page.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Protocol, TypeAlias

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from setpoint.clients.budgets import Budgets
from setpoint.clients.budgets import Snapshot as BudgetsSnapshot
from setpoint.core.decide import Decision
from setpoint.engine.kind import Reconciliation
from setpoint.engine.scene import World
from setpoint.engine.shelf import Listable
from setpoint.errors import Retry
from setpoint.runtime.catalogue import CONVERGENCE_BOUNDS, DRIFT_BOUNDS, STEP_BOUNDS
from setpoint.runtime.collectors import (
    Census,
    ControllerFigures,
    KindKey,
    ReplicaFigures,
    api_figures,
    by_metric,
    controller_figures,
    counter,
    families,
    read_controller,
    read_replica,
    replica_figures,
    resource_figures,
)
from setpoint.runtime.controller import Controller
from setpoint.runtime.durations import Distribution, Durations
from setpoint.runtime.exposition import page_of
from setpoint.runtime.heads import Heads
from setpoint.runtime.lister import Ending
from setpoint.runtime.replica import Replica
from setpoint.runtime.workqueue_metrics import Figure, Sort

# What controller-runtime calls the end of a step. A step that stopped for any other reason failed.
_RESULTS: Final = {
    "settled": "success",
    "gone": "success",
    Retry.ON_CHANGE.name.lower(): "requeue_after",
    Retry.STEP_AGAIN.name.lower(): "requeue",
}
_ERROR: Final = "error"
_EVERY_RESULT: Final = ("success", _ERROR, "requeue", "requeue_after")
_TERMINAL: Final = Retry.ON_EDIT.name.lower()
_BUG: Final = Retry.BUG.name.lower()


# How many requests there were, by method, host and code.
RequestCounts: TypeAlias = Mapping[tuple[str, str, str], int]


class Watched(Protocol):
    """What a manager shows of itself."""

    @property
    def replica(self) -> Replica | None:
        """Its part among others, if there are any."""
        ...

    @property
    def world(self) -> World:
        """The kinds that it keeps."""
        ...

    @property
    def heads(self) -> Heads:
        """All resources."""
        ...

    @property
    def controllers(self) -> Mapping[KindKey, Controller]:
        """One for each kind."""
        ...


class _Tally:
    """Steps of one kind that came to the same; their durations are counted with those of the whole kind."""

    __slots__ = ("number", "times")

    def __init__(self, times: Durations) -> None:
        self.number = 0
        self.times = times


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is measured, at one moment. `steps` are counted by kind, outcome and decision."""

    kinds: tuple[str, ...]
    with_cookies: frozenset[str]
    steps: Mapping[tuple[str, str, str], int]
    times: Mapping[str, Distribution]
    convergence: Mapping[str, Distribution]
    drift: Mapping[str, Distribution]
    # By kind and how they ended; the looks that they made needless, by kind. Only of kinds that can be listed.
    listings: Mapping[tuple[str, str], int]
    listed_looks: Mapping[str, int]
    controllers: tuple[ControllerFigures, ...]
    resources: Census
    replica: ReplicaFigures | None
    apis: tuple[BudgetsSnapshot, ...]
    # By method, host and code.
    requests: RequestCounts


class Telemetry:
    """The Metrics of an engine and the Measures of its controllers, for one event loop."""

    def __init__(self, budgets: Sequence[Budgets] = (), requests: Sequence[RequestCounts] = ()) -> None:
        self._budgets = tuple(budgets)
        self._requests = tuple(requests)
        self._watched: Watched | None = None
        self._steps: dict[tuple[str, str, str], _Tally] = {}
        self._times: dict[str, Durations] = {}
        self._convergence: dict[str, Durations] = {}
        self._drift: dict[str, Durations] = {}
        self._listings: Counter[tuple[str, str]] = Counter()
        self._listed_looks: Counter[str] = Counter()
        # Never the global one: two of us in one process do not meet.
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        GCCollector(registry=self._process)

    def watch(self, manager: Watched) -> None:
        """From now on the page shows this manager's controllers and resources as well."""
        self._watched = manager

    # --- What happens --------------------------------------------------------------------------------------------

    def stepped(self, kind: str, outcome: str, decision: str, seconds: float) -> None:
        """See Metrics. `outcome` is settled, gone, or the retry that the error of a stopped step asks for."""
        key = (kind, outcome, decision)
        tally = self._steps.get(key)
        if tally is None:
            tally = self._steps[key] = _Tally(self._times.setdefault(kind, Durations(STEP_BOUNDS)))
        tally.number += 1
        tally.times.add(seconds)

    def converged(self, kind: str, seconds: float) -> None:
        """See Measures."""
        self._convergence.setdefault(kind, Durations(CONVERGENCE_BOUNDS)).add(seconds)

    def drifted(self, kind: str, seconds: float) -> None:
        """See Measures."""
        self._drift.setdefault(kind, Durations(DRIFT_BOUNDS)).add(seconds)

    def listed(self, kind: str, ending: str, looks: int) -> None:
        """See Measures."""
        self._listings[kind, ending] += 1
        self._listed_looks[kind] += looks

    # --- The page ------------------------------------------------------------------------------------------------

    async def page(self, accept: str = "") -> tuple[bytes, str]:
        """The page in the best form that `accept` names, and what that form is called."""
        sorted_figures = await by_metric(picture_figures(self._picture()))
        return await page_of(chain(families(sorted_figures), self._process.collect()), accept)

    def _picture(self) -> Picture:
        manager = self._watched
        declared = {} if manager is None else manager.world.sorts
        replica = None if manager is None else manager.replica
        controllers = () if manager is None else manager.controllers.values()
        seen = {kind for kind, _, _ in self._steps}
        listable = {kind.name for kind in declared.values() if isinstance(kind, Listable)} | set(self._listed_looks)
        handled = {} if manager is None else manager.world.kinds
        stateless = {kind.name for kind in handled.values() if kind.reconciliation is Reconciliation.STATELESS}
        kinds = {name for _, name in declared} | seen
        return Picture(
            kinds=tuple(sorted(kinds)),
            with_cookies=frozenset(kinds - stateless),
            steps={key: tally.number for key, tally in self._steps.items()},
            times=_read(self._times, kinds, STEP_BOUNDS),
            convergence=_read(self._convergence, kinds, CONVERGENCE_BOUNDS),
            drift=_read(self._drift, kinds, DRIFT_BOUNDS),
            listings={(kind, ending): self._listings[kind, ending] for kind in sorted(listable) for ending in Ending},
            listed_looks={kind: self._listed_looks[kind] for kind in sorted(listable)},
            controllers=tuple(map(read_controller, controllers)),
            resources={} if manager is None else dict(manager.heads.numbers),
            replica=None if replica is None else read_replica(replica),
            apis=tuple(budgets.snapshot() for budgets in self._budgets),
            requests=dict(sum(map(Counter, self._requests), Counter())),
        )


def _read(found: Mapping[str, Durations], kinds: set[str], bounds: tuple[float, ...]) -> Mapping[str, Distribution]:
    """One for each kind: of a metric that is there from the start, the first increase can be seen."""
    return {kind: found.get(kind, Durations(bounds)).read() for kind in sorted(kinds | found.keys())}


def picture_figures(picture: Picture) -> Iterator[Figure]:
    """Every figure of ours."""
    yield from _step_figures(picture)
    yield from _decision_figures(picture)
    yield from _listing_figures(picture)
    yield from _histograms("controller_runtime_reconcile_time_seconds", "controller", picture.times)
    yield from _histograms("setpoint_convergence_seconds", "kind", picture.convergence)
    yield from _histograms("setpoint_drift_age_seconds", "kind", picture.drift)
    for controller in picture.controllers:
        yield from controller_figures(controller)
    yield from resource_figures(picture.resources)
    if picture.replica is not None:
        yield from replica_figures(picture.replica)
    for snapshot in picture.apis:
        yield from api_figures(snapshot)
    for (method, host, code), number in picture.requests.items():
        yield counter("rest_client_requests_total", number, code=code, method=method, host=host)


def _step_figures(picture: Picture) -> Iterator[Figure]:
    results: Counter[tuple[str, str]] = Counter()
    outcomes: Counter[tuple[str, str]] = Counter()
    for (kind, outcome, _), number in picture.steps.items():
        results[kind, _RESULTS.get(outcome, _ERROR)] += number
        outcomes[kind, outcome] += number
    for kind in picture.kinds:
        for result in _EVERY_RESULT:
            yield counter("controller_runtime_reconcile_total", results[kind, result], controller=kind, result=result)
        yield counter("controller_runtime_reconcile_errors_total", results[kind, _ERROR], controller=kind)
        yield counter("controller_runtime_terminal_reconcile_errors_total", outcomes[kind, _TERMINAL], controller=kind)
        yield counter("controller_runtime_reconcile_panics_total", outcomes[kind, _BUG], controller=kind)


def _decision_figures(picture: Picture) -> Iterator[Figure]:
    decisions: Counter[tuple[str, str]] = Counter()
    for (kind, _, decision), number in picture.steps.items():
        decisions[kind, decision] += number
    for kind, number in picture.listed_looks.items():
        decisions[kind, Decision.IN_SYNC] += number
    for kind in picture.kinds:
        for decision in Decision:
            yield counter("setpoint_decisions_total", decisions[kind, decision], kind=kind, decision=decision.value)
        if kind in picture.with_cookies:
            hits = decisions[kind, Decision.IN_SYNC]
            misses = sum(decisions[kind, decision] for decision in Decision) - hits
            yield counter("setpoint_cookie_checks_total", hits, kind=kind, result="hit")
            yield counter("setpoint_cookie_checks_total", misses, kind=kind, result="miss")


def _listing_figures(picture: Picture) -> Iterator[Figure]:
    for (kind, ending), number in picture.listings.items():
        yield counter("setpoint_listings_total", number, kind=kind, ending=ending)
    for kind, number in picture.listed_looks.items():
        yield counter("setpoint_listed_looks_total", number, kind=kind)


def _histograms(name: str, label: str, found: Mapping[str, Distribution]) -> Iterator[Figure]:
    for kind, distribution in found.items():
        yield Figure(name, Sort.HISTOGRAM, {label: kind}, distribution)

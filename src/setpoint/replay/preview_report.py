"""The preview of a whole store: the plan of every resource, with its cookie and without it."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

import msgspec

from setpoint.clients.ratelimit.fair_queue import on_behalf_of
from setpoint.clients.write_guard import BlockedWrite, BlockedWrites
from setpoint.core.values.canonical import digest
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.engine.context import EngineContext
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.preview import PreviewFinding, PreviewResult, preview_with_and_without_cookie
from setpoint.replay.dry_run import dry_run_requests

# Resources that are previewed concurrently: rate limiters bound the requests to each service.
MAX_CONCURRENT: Final = 20


def _ignore_progress(_found: PreviewResult) -> None:
    """The default listener."""


@dataclass(frozen=True, slots=True)
class PreviewReport:
    """The preview of every resource, sorted by ref, and every write that was blocked meanwhile."""

    found: tuple[PreviewResult, ...] = ()
    blocked: tuple[BlockedWrite, ...] = ()
    # Requests that a recorded world has no response for.
    missed: tuple[str, ...] = ()
    # The requests that would be sent for resources with writes, as far as they are known.
    requests: Mapping[ResourceRef, tuple[BlockedWrite, ...]] = field(default_factory=dict)
    # The number of resources by kind and finding.
    counts: Mapping[str, Mapping[PreviewFinding, int]] = field(init=False)

    def __post_init__(self) -> None:
        kinds: dict[str, Counter[PreviewFinding]] = {}
        for one in self.found:
            kinds.setdefault(one.ref.kind, Counter())[one.finding] += 1
        object.__setattr__(self, "counts", kinds)

    def with_findings(self, *findings: PreviewFinding) -> tuple[PreviewResult, ...]:
        """The previews with one of these findings."""
        return tuple(one for one in self.found if one.finding in findings)

    def to_data(self) -> dict[str, Json]:
        """The report as JSON, with stable member names: the same world gives the same bytes."""
        return {
            "summary": {
                kind: {finding.value: counts[finding] for finding in PreviewFinding if counts[finding]}
                for kind, counts in sorted(self.counts.items())
            },
            "resources": [self.data_of(one) for one in self.found],
            "blocked": [_blocked_data(one) for one in self.blocked],
            "missed": list(self.missed),
        }

    def data_of(self, one: PreviewResult) -> dict[str, Json]:
        """The preview of one resource, with its requests, as JSON."""
        requests = self.requests.get(one.ref, ())
        return {**one.to_data(), "requests": [_request_data(each) for each in requests]} if requests else one.to_data()


async def preview_all(
    refs: Iterable[ResourceRef],
    engine: EngineContext,
    blocked_writes: BlockedWrites,
    on_preview: Callable[[PreviewResult], None] = _ignore_progress,
    *,
    lists: bool = False,
) -> PreviewReport:
    """The previews of these resources; `on_preview` is called with each. With `lists`, many are observed together."""
    refs, slots = sorted(refs), asyncio.Semaphore(MAX_CONCURRENT)
    requests = dict[ResourceRef, tuple[BlockedWrite, ...]]()
    planning = await _observed_together(refs, engine) if lists else engine

    async def preview(ref: ResourceRef) -> PreviewResult:
        async with slots:
            with on_behalf_of(ref, failed=False):
                found = await preview_with_and_without_cookie(ref, planning)
                # A step that writes observes by itself.
                requests[ref] = await dry_run_requests(found, engine, blocked_writes)
        on_preview(found)
        return found

    found = await asyncio.gather(*map(preview, refs))
    return PreviewReport(tuple(found), _each_once(blocked_writes.writes), requests=requests)


async def _observed_together(refs: Sequence[ResourceRef], engine: EngineContext) -> EngineContext:
    # Commands that only show a report do without.
    from setpoint.engine.drivers.observe_together import plan_together

    return await plan_together(refs, engine)


def _each_once(writes: Iterable[BlockedWrite]) -> tuple[BlockedWrite, ...]:
    """Each write once, in a stable order: both previews of a resource try the same writes, in any order."""
    found = {digest(msgspec.to_builtins(one)): one for one in writes}
    return tuple(sorted(found.values(), key=lambda one: (str(one), one.caller)))


async def managed_refs(engine: EngineContext) -> Sequence[ResourceRef]:
    """Every resource in the store whose kind or owner is known."""
    listing = await engine.store.list()
    return [one.ref for one in listing.resources if (one.ref.group, one.ref.kind) in engine.resource_types]


def _blocked_data(one: BlockedWrite) -> Json:
    found: Json = msgspec.to_builtins(one)
    return found


def _request_data(one: BlockedWrite) -> Json:
    """A request without its caller, which is the resource. Members are sorted: a file does not keep their order."""
    fields: list[Json] = [*sorted(one.fields)]
    head: dict[str, Json] = {"way": one.way, "method": one.method, "target": one.target}
    return {**head, "body": _in_order(one.body), "fields": fields}


def _in_order(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _in_order(member) for name, member in sorted(value.items())}
    return [_in_order(one) for one in value] if isinstance(value, list | tuple) else value

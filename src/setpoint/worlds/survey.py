"""A look at everything, both ways: what a preview of a whole store comes to."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from setpoint.clients.callers import calling_for
from setpoint.clients.read_only import BlockedWrite, Blocks
from setpoint.core.canonical import digest
from setpoint.core.values import Json
from setpoint.engine.previews import Finding, Previewed, preview_both_ways
from setpoint.engine.resource import ResourceRef
from setpoint.engine.scene import World
from setpoint.worlds.trial import requests_of

# Resources that are looked at together: services share out turns of their own.
AT_ONCE: Final = 20


def _unheard(_found: Previewed) -> None:
    """Nobody waits for it."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What every resource comes to, sorted by ref, and every write that was tried meanwhile."""

    found: tuple[Previewed, ...] = ()
    blocked: tuple[BlockedWrite, ...] = ()
    # What a recorded world was asked for in vain.
    missed: tuple[str, ...] = ()
    # What would be sent for those that would be written to, as far as that is known.
    requests: Mapping[ResourceRef, tuple[BlockedWrite, ...]] = field(default_factory=dict)
    # By kind: how often each finding was made.
    counts: Mapping[str, Mapping[Finding, int]] = field(init=False)

    def __post_init__(self) -> None:
        kinds: dict[str, Counter[Finding]] = {}
        for one in self.found:
            kinds.setdefault(one.ref.kind, Counter())[one.finding] += 1
        object.__setattr__(self, "counts", kinds)

    def with_finding(self, *findings: Finding) -> tuple[Previewed, ...]:
        """Those that one of these was found of."""
        return tuple(one for one in self.found if one.finding in findings)

    def to_data(self) -> dict[str, Json]:
        """The report as plain JSON, with stable member names: the same world gives the same, byte for byte."""
        return {
            "summary": {
                kind: {finding.value: counts[finding] for finding in Finding if counts[finding]}
                for kind, counts in sorted(self.counts.items())
            },
            "resources": [self.data_of(one) for one in self.found],
            "blocked": [_blocked_data(one) for one in self.blocked],
            "missed": list(self.missed),
        }

    def data_of(self, one: Previewed) -> dict[str, Json]:
        """What is found of one resource, as plain JSON."""
        requests = self.requests.get(one.ref, ())
        return {**one.to_data(), "requests": [_request_data(each) for each in requests]} if requests else one.to_data()


async def survey(
    refs: Iterable[ResourceRef], world: World, blocks: Blocks, heard: Callable[[Previewed], None] = _unheard
) -> Survey:
    """What these come to, and what was tried to be written while they were looked at."""
    turns, requests = asyncio.Semaphore(AT_ONCE), dict[ResourceRef, tuple[BlockedWrite, ...]]()

    async def look(ref: ResourceRef) -> Previewed:
        async with turns:
            with calling_for(ref, failed=False):
                found = await preview_both_ways(ref, world)
                requests[ref] = await requests_of(found, world, blocks)
        heard(found)
        return found

    found = await asyncio.gather(*map(look, sorted(refs)))
    return Survey(tuple(found), _each_once(blocks.writes), requests=requests)


def _each_once(writes: Iterable[BlockedWrite]) -> tuple[BlockedWrite, ...]:
    """Both looks try the same; and who tried first depends on who was answered first."""
    found = {digest(msgspec.to_builtins(one)): one for one in writes}
    return tuple(sorted(found.values(), key=lambda one: (str(one), one.caller)))


async def looked_after(world: World) -> Sequence[ResourceRef]:
    """Every resource that a kind or an owner looks after here."""
    listing = await world.store.list()
    return [one.ref for one in listing.resources if (one.ref.group, one.ref.kind) in world.sorts]


def _blocked_data(one: BlockedWrite) -> Json:
    found: Json = msgspec.to_builtins(one)
    return found


def _request_data(one: BlockedWrite) -> Json:
    """Whose it is, is known. A file keeps no order of members."""
    fields: list[Json] = [*sorted(one.fields)]
    head: dict[str, Json] = {"way": one.way, "method": one.method, "target": one.target}
    return {**head, "body": _in_order(one.body), "fields": fields}


def _in_order(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _in_order(member) for name, member in sorted(value.items())}
    return [_in_order(one) for one in value] if isinstance(value, list | tuple) else value

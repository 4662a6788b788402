"""The processes of a soak: started, killed and stopped."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from setpoint.engine.resource import ResourceRef
from setpoint.runtime.sharding.assignment import shard_of
from soak.fleet.author import Author, Edit
from soak.fleet.leases import SHARD, LeaseWatch
from soak.fleet.process import RunProcess
from soak.fleet.subjects import Subject

_TIMEOUT_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.05


class Held(NamedTuple):
    """A process, its name in the leases, and the leases of the shards that it holds."""

    process: RunProcess
    holder: str
    shards: tuple[str, ...]


class Loss(NamedTuple):
    """Processes that were killed, or asked to end, with the shards that they held; and edits made right after."""

    holders: frozenset[str]
    shards: frozenset[str]
    at: float
    edits: tuple[Edit, ...]
    killed: bool


@dataclass(slots=True)
class Fleet:
    """All processes; each runs most of the time."""

    processes: list[RunProcess]
    shards: int
    leases: LeaseWatch
    author: Author
    subjects: tuple[Subject, ...]
    # Whether the leases of killed processes are shortened: where the time that they take to expire is not measured.
    shortens_leases: bool = False
    losses: list[Loss] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)

    async def start(self) -> None:
        """All of them, until every shard is held."""
        for process in self.processes:
            process.begin()
        await self.until_all_run()
        await self.until_all_held()

    async def kill(self, number: int) -> Loss:
        """kill -9 to the processes with most shards; they are started again, and edits are made in their shards."""
        lost = self._busiest()[:number]
        for one in lost:
            one.process.kill()
        at = time.monotonic()
        if self.shortens_leases:
            await self.leases.shorten({one.holder for one in lost})
        for one in lost:
            one.process.begin()
        return await self._lost(lost, at, killed=True)

    async def end_one(self) -> Loss:
        """SIGTERM to the process that holds most shards; it is restarted when the other processes have its work."""
        lost = self._busiest()[:1]
        at = time.monotonic()
        ending = asyncio.create_task(asyncio.to_thread(lost[0].process.stop))
        loss = await self._lost(lost, at, killed=False)
        self.codes.append(await ending)
        lost[0].process.begin()
        return loss

    async def stop(self) -> None:
        """All of them, in good order."""
        self.codes += await asyncio.gather(*(asyncio.to_thread(one.stop) for one in self.processes))

    async def until_all_run(self) -> None:
        """Returns when each process has logged that it runs."""
        await asyncio.gather(*(asyncio.to_thread(one.until_logged, "running") for one in self.processes))

    async def until_all_held(self) -> None:
        """Returns when every shard has a running holder; TimeoutError when that takes too long."""
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while not self._are_all_held():
                await asyncio.sleep(_POLL_SECONDS)

    async def _lost(self, lost: Sequence[Held], at: float, *, killed: bool) -> Loss:
        shards = frozenset(shard for one in lost for shard in one.shards)
        edits = await self.author.edit_idle([one for one in self.subjects if self.lease_of(one) in shards])
        loss = Loss(frozenset(one.holder for one in lost), shards, at, tuple(edits), killed)
        self.losses.append(loss)
        await self.until_all_held()
        return loss

    def lease_of(self, subject: Subject) -> str:
        """The lease of the shard that a subject belongs to."""
        ref = ResourceRef(subject.group, subject.kind, self.author.namespace, subject.name)
        return f"{SHARD}{shard_of(ref, self.shards)}"

    def _busiest(self) -> list[Held]:
        """The processes that hold shards, those with most of them first."""
        shards: dict[str, list[str]] = {}
        for lease, holder in self.leases.holders().items():
            shards.setdefault(holder, []).append(lease)
        by_name = {process.name: process for process in self.processes}
        held = [Held(by_name[holder.rpartition("-")[0]], holder, tuple(some)) for holder, some in shards.items()]
        return sorted(held, key=lambda one: len(one.shards), reverse=True)

    def _are_all_held(self) -> bool:
        holders = self.leases.holders()
        dead = {holder for loss in self.losses for holder in loss.holders}
        return len(holders) == self.shards and dead.isdisjoint(holders.values())

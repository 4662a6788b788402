"""Several replicas over one store and one cloud, in virtual time: started, stopped, killed, paused and disconnected.

Every write is checked against the leases in the store when it arrives: `violations` has to stay empty.
"""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from setpoint.engine.context import EngineContext
from setpoint.engine.ports import Store
from setpoint.engine.references import is_ready
from setpoint.engine.resource import ResourceRef
from setpoint.runtime.manager import Manager
from setpoint.runtime.sharding.assignment import shard_of
from setpoint.runtime.sharding.replica import ControllerReplica
from setpoint.stores.memory import MemoryStore
from simulation.virtual_time import VirtualClock
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import Service, gadget_ref
from tests.runtime.manager_harness import LONG, RecordingMetrics
from tests.runtime.pausable_loop import pausable_loop, run_pausable, start_process
from tests.runtime.simulated_network import NetworkFault, NetworkLink, RemoteGadgetKind, remote_store

# The longest time to answer of the store and the cloud, there and back.
SLOWEST = 0.1
LEASE, MARGIN = 15.0, 2.0


@dataclass(slots=True)
class Process:
    """One replica."""

    name: str
    link: NetworkLink
    kind: RemoteGadgetKind
    manager: Manager
    replica: ControllerReplica
    task: "asyncio.Task[None]"
    metrics: RecordingMetrics
    is_killed: bool = False
    is_leaving: bool = False

    @property
    def is_live(self) -> bool:
        """Whether it runs and can reach the store."""
        is_running = not (self.is_killed or self.is_leaving or pausable_loop().is_paused(self.name))
        return is_running and self.link.outage is None


@dataclass(slots=True)
class Written:
    """A write that arrived: when, from which process, and what it did to which gadget."""

    at: float
    process: str
    verb: str
    name: str


@dataclass
class Fleet:
    """The replicas, their store and their service."""

    shards: int = 4
    seed: int = 0
    grace: float = 25.0
    clock: VirtualClock = field(default_factory=VirtualClock)
    service: Service = field(default_factory=Service)
    processes: dict[str, Process] = field(default_factory=dict)
    writes: list[Written] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    # The sizes that each gadget was given, in order: by its author, and in the cloud.
    edits: dict[str, list[int]] = field(default_factory=dict)
    sizes: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = itertools.count(1)
        self.store = MemoryStore(self.clock, lambda: f"uid-{next(numbers)}")
        self.random = random.Random(self.seed)

    # --- Processes ------------------------------------------------------------------------------------------------

    def start(self, name: str, shards: int | None = None) -> Process:
        """A new process."""
        link = NetworkLink(name, lambda: self.random.uniform(0.001, SLOWEST / 2))
        store, kind = self.store_for(link), RemoteGadgetKind(self.service, link=link, on_write=self._on_cloud_write)
        replica = ControllerReplica(store, self.clock, name, shards or self.shards, self.random.random)
        metrics = RecordingMetrics()
        engine = EngineContext(store, self.clock, {(kind.group, kind.name): kind}, metrics=metrics)
        manager = Manager(engine, metrics, self.grace, workers=4, replica=replica)
        task = start_process(name, manager.run())
        self.processes[name] = Process(name, link, kind, manager, replica, task, metrics)
        return self.processes[name]

    def store_for(self, link: NetworkLink) -> Store:
        """The store, as the process at the other end of `link` sees it."""
        return remote_store(self.store, link, self._on_write)

    def kill(self, name: str) -> None:
        """kill -9: it does nothing any more. Requests that it has sent still arrive."""
        self.processes[name].is_killed = True
        pausable_loop().pause(name)

    def pause(self, name: str) -> None:
        """SIGSTOP."""
        pausable_loop().pause(name)

    def resume(self, name: str) -> None:
        """SIGCONT."""
        pausable_loop().resume(name)

    def disconnect(self, name: str, how: NetworkFault) -> None:
        """The store cannot be reached."""
        self.processes[name].link.outage = how

    def reconnect(self, name: str) -> None:
        """The store can be reached again."""
        self.processes[name].link.outage = None

    def begin_to_stop(self, name: str) -> None:
        """SIGTERM."""
        self.processes[name].is_leaving = True
        self.processes[name].manager.stop()

    async def stop(self, name: str) -> None:
        """SIGTERM, and its orderly end."""
        self.begin_to_stop(name)
        await asyncio.wait([self.processes[name].task])
        self.processes[name].task.result()

    async def end(self) -> None:
        """Ends every process."""
        for name, process in self.processes.items():
            pausable_loop().resume(name)
            process.task.cancel()
        await asyncio.gather(*(one.task for one in self.processes.values()), return_exceptions=True)

    # --- Authors --------------------------------------------------------------------------------------------------

    async def edit(self, name: str, **more: Any) -> None:
        """The author sets another size, which no gadget ever had before."""
        size = 1 + sum(map(len, self.edits.values()))
        self.edits.setdefault(name, []).append(size)
        await self.store.apply(gadget(name, {"size": size, **more}))

    # --- Observations ----------------------------------------------------------------------------------------------

    @property
    def live(self) -> list[Process]:
        """The processes that run and can reach the store."""
        return [one for one in self.processes.values() if one.is_live]

    def holders(self, shard: int) -> list[str]:
        """Every process that would start a step in it now, paused and killed ones included."""
        return [name for name, one in self.processes.items() if shard in one.replica.held_shards]

    @property
    def is_every_shard_held(self) -> bool:
        """Whether every shard has its holder, and that one runs."""
        live = {one.name for one in self.live}
        return all(set(self.holders(shard)) & live for shard in range(self.shards))

    @property
    def has_executed_every_edit_once(self) -> bool:
        """Whether the last edit of each was executed, and none twice; an edit may be skipped for the next one."""
        wanted = {name: [size for size in edits if size in self.sizes[name]] for name, edits in self.edits.items()}
        return self.sizes == wanted and all(self.sizes[name][-1] == edits[-1] for name, edits in self.edits.items())

    def holder_of(self, name: str) -> str:
        """The process that reconciles a gadget."""
        (holder,) = self.holders(shard_of(gadget_ref(name), self.shards))
        return holder

    async def is_settled(self, name: str) -> bool:
        """Whether it is ready, for the spec that it has."""
        found = await self.store.get(gadget_ref(name))
        return found is not None and is_ready(found)

    async def settled(self, *names: str) -> float:
        """Waits until all of them are ready; the seconds that it took."""

        async def all_ready() -> bool:
            return all([await self.is_settled(name) for name in names])

        return await self.until(all_ready)

    async def until_every_shard_is_held(self) -> float:
        """Waits until every shard has its holder; the seconds that it took."""

        async def is_every_shard_held() -> bool:
            return self.is_every_shard_held

        return await self.until(is_every_shard_held)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> float:
        began = self.clock.monotonic()
        while not await holds():
            assert self.clock.monotonic() - began < LONG, "the condition never held"
            await self.clock.sleep(0.1)
        return self.clock.monotonic() - began

    # --- Checks ---------------------------------------------------------------------------------------------------

    def _on_cloud_write(self, process: str, verb: str, ref: ResourceRef) -> None:
        self._on_write(process, verb, ref)
        self.writes.append(Written(self.clock.monotonic(), process, verb, ref.name))
        if verb != "delete":
            size = self.service.objects[ref.name]["size"]
            assert isinstance(size, int)
            self.sizes.setdefault(ref.name, []).append(size)

    def _on_write(self, process: str, verb: str, ref: ResourceRef) -> None:
        """A write needs the lease of its shard, and that of the layout, which fixes the number of shards."""
        number = self.processes[process].replica.shard_count
        shard, layout = (
            self.store._leases.get(f"setpoint-{name}") for name in (f"shard-{shard_of(ref, number)}", "layout")
        )
        holder, common = (lease.holder if lease else None for lease in (shard, layout))
        if (holder, common) != (process, f"{number}-shards-v1"):
            at = self.clock.monotonic()
            self.violations.append(f"{at:.3f}: {process} did {verb} {ref}: its shard is held by {holder} ({common})")


def play(scenario: Callable[[Fleet], Awaitable[None]], kind: Callable[..., Fleet] = Fleet, **settings: Any) -> Fleet:
    """Plays `scenario` in virtual time. No process ever writes a shard that it does not hold."""

    async def main() -> Fleet:
        fleet = kind(**settings)
        watching = asyncio.create_task(_watch(fleet))
        try:
            await scenario(fleet)
            assert not watching.done(), watching.result()
        finally:
            watching.cancel()
            violations = list(fleet.violations)
            await fleet.end()
        assert violations == []
        return fleet

    return run_pausable(main())


async def _watch(fleet: Fleet) -> None:
    """No two processes hold a shard at any moment."""
    while True:
        for shard in range(fleet.shards):
            holders = fleet.holders(shard)
            if len(holders) > 1:
                fleet.violations.append(f"{fleet.clock.monotonic():.3f}: shard {shard} is held by {holders}")
        await fleet.clock.sleep(0.5)

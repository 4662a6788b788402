"""Many processes over one store and one cloud, in virtual time: they come, go, are killed, stopped and cut off.

Whatever is written is checked against the leases in the store at that very moment: `violations` stays empty.
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
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import Service, gadget_ref
from tests.runtime.pausing import pausing_loop, run_pausing, start_process
from tests.runtime.rig import LONG, Tally
from tests.runtime.virtual_time import VirtualClock
from tests.runtime.wire import Trouble, Wire, WiredKind, wired

# What a store or a cloud takes to answer, there and back, at most.
SLOWEST = 0.1
LEASE, A_LITTLE = 15.0, 2.0


@dataclass(slots=True)
class Process:
    """One of them."""

    name: str
    wire: Wire
    kind: WiredKind
    manager: Manager
    replica: ControllerReplica
    task: "asyncio.Task[None]"
    tally: Tally
    is_killed: bool = False
    is_leaving: bool = False

    @property
    def is_live(self) -> bool:
        """Whether it runs, and takes part."""
        is_running = not (self.is_killed or self.is_leaving or pausing_loop().is_paused(self.name))
        return is_running and self.wire.outage is None


@dataclass(slots=True)
class Written:
    """A write that arrived: when, whose, and what it did to whom."""

    at: float
    process: str
    verb: str
    name: str


@dataclass
class Fleet:
    """All of them, and both sides of their world."""

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

    # --- What happens to processes --------------------------------------------------------------------------------

    def start(self, name: str, shards: int | None = None) -> Process:
        """A new process."""
        wire = Wire(name, lambda: self.random.uniform(0.001, SLOWEST / 2))
        store, kind = self.store_for(wire), WiredKind(self.service, wire=wire, witness=self._cloud)
        replica = ControllerReplica(store, self.clock, name, shards or self.shards, self.random.random)
        tally = Tally()
        engine = EngineContext(store, self.clock, {(kind.group, kind.name): kind}, metrics=tally)
        manager = Manager(engine, tally, self.grace, workers=4, replica=replica)
        task = start_process(name, manager.run())
        self.processes[name] = Process(name, wire, kind, manager, replica, task, tally)
        return self.processes[name]

    def store_for(self, wire: Wire) -> Store:
        """The store, as the process at the other end of `wire` sees it."""
        return wired(self.store, wire, self._witness)

    def kill(self, name: str) -> None:
        """kill -9: it does nothing any more. What it has sent is on its way."""
        self.processes[name].is_killed = True
        pausing_loop().pause(name)

    def pause(self, name: str) -> None:
        """SIGSTOP."""
        pausing_loop().pause(name)

    def resume(self, name: str) -> None:
        """SIGCONT."""
        pausing_loop().resume(name)

    def cut_off(self, name: str, how: Trouble) -> None:
        """The store cannot be reached."""
        self.processes[name].wire.outage = how

    def mend(self, name: str) -> None:
        """The store can be reached again."""
        self.processes[name].wire.outage = None

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
        """Nobody runs any more."""
        for name, process in self.processes.items():
            pausing_loop().resume(name)
            process.task.cancel()
        await asyncio.gather(*(one.task for one in self.processes.values()), return_exceptions=True)

    # --- What authors do ------------------------------------------------------------------------------------------

    async def edit(self, name: str, **more: Any) -> None:
        """The author wants another size, which no gadget ever had before."""
        size = 1 + sum(map(len, self.edits.values()))
        self.edits.setdefault(name, []).append(size)
        await self.store.apply(gadget(name, {"size": size, **more}))

    # --- What there is to see -------------------------------------------------------------------------------------

    @property
    def live(self) -> list[Process]:
        """Those that run and can reach the store."""
        return [one for one in self.processes.values() if one.is_live]

    def holders(self, shard: int) -> list[str]:
        """All that would begin a step in it now, those that do not run included."""
        return [name for name, one in self.processes.items() if shard in one.replica.held_shards]

    @property
    def is_shared_out(self) -> bool:
        """Whether every shard has its holder, and that one runs."""
        live = {one.name for one in self.live}
        return all(set(self.holders(shard)) & live for shard in range(self.shards))

    @property
    def is_done_once(self) -> bool:
        """Whether the last edit of everything was carried out, and none twice; one may overtake the one before it."""
        wanted = {name: [size for size in edits if size in self.sizes[name]] for name, edits in self.edits.items()}
        return self.sizes == wanted and all(self.sizes[name][-1] == edits[-1] for name, edits in self.edits.items())

    def holder_of(self, name: str) -> str:
        """Who looks after a gadget."""
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

    async def shared_out(self) -> float:
        """Waits until every shard has its holder; the seconds that it took."""

        async def is_shared_out() -> bool:
            return self.is_shared_out

        return await self.until(is_shared_out)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> float:
        began = self.clock.monotonic()
        while not await holds():
            assert self.clock.monotonic() - began < LONG, "that never happened"
            await self.clock.sleep(0.1)
        return self.clock.monotonic() - began

    # --- Witnesses ------------------------------------------------------------------------------------------------

    def _cloud(self, process: str, verb: str, ref: ResourceRef) -> None:
        self._witness(process, verb, ref)
        self.writes.append(Written(self.clock.monotonic(), process, verb, ref.name))
        if verb != "delete":
            size = self.service.objects[ref.name]["size"]
            assert isinstance(size, int)
            self.sizes.setdefault(ref.name, []).append(size)

    def _witness(self, process: str, verb: str, ref: ResourceRef) -> None:
        """Whoever writes has to hold the lease of the shard, and that of the layout which says what a shard is."""
        number = self.processes[process].replica.shard_count
        shard, layout = (
            self.store._leases.get(f"setpoint-{name}") for name in (f"shard-{shard_of(ref, number)}", "layout")
        )
        holder, common = (lease.holder if lease else None for lease in (shard, layout))
        if (holder, common) != (process, f"{number}-shards-v1"):
            at = self.clock.monotonic()
            self.violations.append(f"{at:.3f}: {process} did {verb} {ref}, whose shard {holder} holds ({common})")


def play(scenario: Callable[[Fleet], Awaitable[None]], kind: Callable[..., Fleet] = Fleet, **settings: Any) -> Fleet:
    """Plays `scenario` in virtual time. Nobody ever writes what is another's."""

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

    return run_pausing(main())


async def _watch(fleet: Fleet) -> None:
    """Nobody holds what another holds, at any moment."""
    while True:
        for shard in range(fleet.shards):
            holders = fleet.holders(shard)
            if len(holders) > 1:
                fleet.violations.append(f"{fleet.clock.monotonic():.3f}: shard {shard} is held by {holders}")
        await fleet.clock.sleep(0.5)

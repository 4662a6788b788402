"""A process that keeps settled buckets, in an event loop of its own that turns while somebody measures."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from benchmarks.settled import CLOCK, open_store, world_of
from setpoint.clients.google.client import GoogleClient
from setpoint.engine.ports import SystemClock
from setpoint.engine.requeue import DEFAULT_RESYNC_SECONDS, jittered_resync
from setpoint.engine.resource import ResourceRef, Revision
from setpoint.runtime.controller import Controller
from setpoint.runtime.manager import Manager
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.predicates import RESYNC
from setpoint.stores.sqlite.store import SqliteStore

_A_WHILE: Final = 0.02


class Ahead(SystemClock):
    """The time of this machine, and more of it when somebody says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        """See Clock."""
        return super().monotonic() + self.seconds


class Running:
    """The process. Nothing happens in it but within one of these calls."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, store: SqliteStore, google: GoogleClient, clock: SystemClock
    ) -> None:
        self.loop = loop
        self.store = store
        self.telemetry = Telemetry([google.budgets])
        engine = replace(world_of(store, google), clock=clock, metrics=self.telemetry)
        self.manager = Manager(engine, self.telemetry)
        self.telemetry.watch(self.manager)
        self._task = loop.create_task(self.manager.run())

    @property
    def controller(self) -> Controller:
        """The one for buckets."""
        (controller,) = self.manager.controllers.values()
        return controller

    def until_ready(self) -> None:
        """Everything that is in the store has been heard of."""
        self.loop.run_until_complete(self._until_ready())

    def until_at_rest(self) -> None:
        """Everything has been looked at, and waits for its next look."""
        self.loop.run_until_complete(self._until_at_rest())

    def pass_over(self, refs: Sequence[ResourceRef]) -> None:
        """A step for each, as if its next regular look were due."""
        self.loop.run_until_complete(self._pass_over(refs))

    def resync(self, clock: Ahead, seconds: float) -> None:
        """So much time passes; whatever that leads to has ended."""
        self.loop.run_until_complete(self._resync(clock, seconds))

    def seconds_until_looks(self) -> float:
        """How long after everything was looked at the first is looked at again."""
        return min(jittered_resync(ref, DEFAULT_RESYNC_SECONDS) for ref in self.manager.index)

    def decisions(self) -> Mapping[str, int]:
        """How many looks of each decision there were so far, and came to a good end."""
        return {sample.labels["decision"]: int(sample.value) for sample in self._samples("setpoint_decisions_total")}

    def steps(self) -> int:
        """How many steps were taken so far."""
        return sum(int(sample.value) for sample in self._samples("controller_runtime_reconcile_total"))

    def _samples(self, name: str) -> list[Sample]:
        """What the page of metrics shows under that name, and is not zero."""
        page, _ = self.loop.run_until_complete(self.telemetry.page())
        return samples_in(page, name)

    def revision(self) -> Revision:
        """How far the store is."""

        async def first() -> Revision:
            return (await anext(self.store.pages(size=1))).revision

        return self.loop.run_until_complete(first())

    def stop(self) -> None:
        """In good order."""
        self.manager.stop()
        self.loop.run_until_complete(self._task)

    async def _until_ready(self) -> None:
        while not self.manager.is_ready:
            self._require_life()
            await asyncio.sleep(0)

    async def _until_at_rest(self) -> None:
        await self._until_ready()
        while not self._is_at_rest:
            self._require_life()
            await asyncio.sleep(_A_WHILE)

    @property
    def _is_at_rest(self) -> bool:
        queue = self.controller.queue.snapshot()
        is_idle = (
            not queue.processing and not any(queue.depth.values()) and not self.controller.list_resync.running_listings
        )
        return is_idle and queue.delayed == len(self.manager.index)

    async def _pass_over(self, refs: Sequence[ResourceRef]) -> None:
        controller = self.controller
        for ref in refs:
            controller.enqueue(ref, RESYNC)
        while not self._is_at_rest:
            await controller.queue.drained()
            await asyncio.sleep(0)

    async def _resync(self, clock: Ahead, seconds: float) -> None:
        controller = self.controller
        clock.seconds += seconds
        # The queue sees what time it is.
        controller.queue.snapshot()
        await asyncio.sleep(0)
        while not self._is_at_rest:
            await controller.queue.drained()
            await controller.list_resync.drained()
            await asyncio.sleep(0)

    def _require_life(self) -> None:
        if self._task.done():
            self._task.result()
            raise AssertionError("the process has ended")


def samples_in(page: bytes, name: str) -> list[Sample]:
    """What a page of metrics shows under that name, and is not zero."""
    samples = [sample for family in text_string_to_metric_families(page.decode()) for sample in family.samples]
    return [sample for sample in samples if sample.name == name and sample.value]


@contextmanager
def running(path: Path, google: GoogleClient, clock: SystemClock = CLOCK) -> Iterator[Running]:
    """A process over the store `path`, as soon as it was started; stopped at the end."""
    loop = asyncio.new_event_loop()
    try:
        store = loop.run_until_complete(open_store(path))
        process = Running(loop, store, google, clock)
        try:
            yield process
        finally:
            process.stop()
            loop.run_until_complete(store.close())
            loop.run_until_complete(google.close())
    finally:
        loop.close()

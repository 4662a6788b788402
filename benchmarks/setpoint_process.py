"""The manager of `setpoint run` over a store of settled buckets, in an event loop that runs only within a call."""

import asyncio
import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from benchmarks.settled_store import CLOCK, engine_context_for, open_store
from setpoint.clients.google.client import GoogleClient
from setpoint.engine.ports import SystemClock
from setpoint.engine.requeue import DEFAULT_RESYNC_SECONDS, jittered_resync
from setpoint.engine.resource import ResourceRef, Revision
from setpoint.runtime.controller import Controller
from setpoint.runtime.manager import Manager, freeze_index
from setpoint.runtime.metrics.telemetry import Telemetry
from setpoint.runtime.predicates import RESYNC
from setpoint.stores.sqlite.store import SqliteStore

_POLL_SECONDS: Final = 0.02


class OffsetClock(SystemClock):
    """The system clock, plus an offset that a benchmark sets."""

    def __init__(self) -> None:
        self.offset = 0.0

    def monotonic(self) -> float:
        """See Clock."""
        return super().monotonic() + self.offset


class SetpointProcess:
    """A running manager. It makes progress only within a call of one of these methods."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, store: SqliteStore, google: GoogleClient, clock: SystemClock
    ) -> None:
        self.loop = loop
        self.store = store
        self._thresholds = gc.get_threshold()
        self.telemetry = Telemetry([google.budgets])
        engine = replace(engine_context_for(store, google), clock=clock, metrics=self.telemetry)
        self.manager = Manager(engine, self.telemetry)
        self.telemetry.watch(self.manager)
        self._task = loop.create_task(self.manager.run())
        self._freezing = loop.create_task(freeze_index(self.manager))

    @property
    def controller(self) -> Controller:
        """The controller of buckets."""
        (controller,) = self.manager.controllers.values()
        return controller

    def wait_until_ready(self) -> None:
        """Returns when the manager is ready: its index holds every resource of the store."""
        self.loop.run_until_complete(self._wait_until_ready())

    def wait_until_idle(self) -> None:
        """Returns when every resource has been reconciled and is scheduled for its resync."""
        self.loop.run_until_complete(self._wait_until_idle())

    def reconcile_all(self, refs: Sequence[ResourceRef]) -> None:
        """Runs a step for each, as if its resync were due."""
        self.loop.run_until_complete(self._reconcile_all(refs))

    def resync(self, clock: OffsetClock, seconds: float) -> None:
        """Advances the clock by `seconds`, and waits until the process is idle again."""
        self.loop.run_until_complete(self._resync(clock, seconds))

    def seconds_until_first_resync(self) -> float:
        """The time from the last step of all resources to the first resync."""
        return min(jittered_resync(ref, DEFAULT_RESYNC_SECONDS) for ref in self.manager.index)

    def decisions(self) -> Mapping[str, int]:
        """The number of successful steps so far, by decision."""
        return {sample.labels["decision"]: int(sample.value) for sample in self._samples("setpoint_decisions_total")}

    def steps(self) -> int:
        """The number of steps so far."""
        return sum(int(sample.value) for sample in self._samples("controller_runtime_reconcile_total"))

    def _samples(self, name: str) -> list[Sample]:
        """The samples of a metric that are not zero."""
        page, _ = self.loop.run_until_complete(self.telemetry.page())
        return samples_in(page, name)

    def revision(self) -> Revision:
        """The revision of the store."""

        async def read_revision() -> Revision:
            return (await anext(self.store.pages(size=1))).revision

        return self.loop.run_until_complete(read_revision())

    def stop(self) -> None:
        """Stops the manager and waits for its end."""
        self.manager.stop()
        self._freezing.cancel()
        self.loop.run_until_complete(self._task)
        gc.unfreeze()
        gc.set_threshold(*self._thresholds)

    async def _wait_until_ready(self) -> None:
        while not self.manager.is_ready:
            self._raise_if_ended()
            await asyncio.sleep(0)

    async def _wait_until_idle(self) -> None:
        await self._wait_until_ready()
        while not self._is_idle:
            self._raise_if_ended()
            await asyncio.sleep(_POLL_SECONDS)

    @property
    def _is_idle(self) -> bool:
        queue = self.controller.queue.snapshot()
        has_no_work = (
            not queue.processing and not any(queue.depth.values()) and not self.controller.list_resync.running_listings
        )
        return has_no_work and queue.delayed == len(self.manager.index)

    async def _reconcile_all(self, refs: Sequence[ResourceRef]) -> None:
        controller = self.controller
        for ref in refs:
            controller.enqueue(ref, RESYNC)
        while not self._is_idle:
            await controller.queue.drained()
            await asyncio.sleep(0)

    async def _resync(self, clock: OffsetClock, seconds: float) -> None:
        controller = self.controller
        clock.offset += seconds
        # A snapshot makes the queue read the clock.
        controller.queue.snapshot()
        await asyncio.sleep(0)
        while not self._is_idle:
            await controller.queue.drained()
            await controller.list_resync.drained()
            await asyncio.sleep(0)

    def _raise_if_ended(self) -> None:
        if self._task.done():
            self._task.result()
            raise AssertionError("the process has ended")


def samples_in(page: bytes, name: str) -> list[Sample]:
    """The samples of a metric on a metrics page that are not zero."""
    samples = [sample for family in text_string_to_metric_families(page.decode()) for sample in family.samples]
    return [sample for sample in samples if sample.name == name and sample.value]


@contextmanager
def running_process(path: Path, google: GoogleClient, clock: SystemClock = CLOCK) -> Iterator[SetpointProcess]:
    """A started process over the store `path`; it is stopped at the end of the block."""
    loop = asyncio.new_event_loop()
    try:
        store = loop.run_until_complete(open_store(path))
        process = SetpointProcess(loop, store, google, clock)
        try:
            yield process
        finally:
            process.stop()
            loop.run_until_complete(store.close())
            loop.run_until_complete(google.close())
    finally:
        loop.close()

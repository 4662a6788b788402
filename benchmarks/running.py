"""A process that keeps settled buckets, in an event loop of its own that turns while somebody measures."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.settled import open_store, world_of
from setpoint.clients.google import GoogleClient
from setpoint.engine.resource import ResourceRef, Revision
from setpoint.runtime.controller import Controller
from setpoint.runtime.manager import Manager
from setpoint.runtime.reasons import RESYNC
from setpoint.runtime.telemetry import Telemetry
from setpoint.stores.sqlite import SqliteStore

_A_WHILE: Final = 0.02


class Running:
    """The process. Nothing happens in it but within one of these calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop, store: SqliteStore, google: GoogleClient) -> None:
        self.loop = loop
        self.store = store
        self.telemetry = Telemetry([google.budgets])
        self.manager = Manager(replace(world_of(store, google), metrics=self.telemetry), self.telemetry)
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

    def decisions(self) -> Mapping[str, int]:
        """How many steps of each decision were taken so far, and came to a good end."""
        page, _ = self.loop.run_until_complete(self.telemetry.page())
        samples = [sample for family in text_string_to_metric_families(page.decode()) for sample in family.samples]
        counted = [sample for sample in samples if sample.name == "setpoint_decisions_total" and sample.value]
        return {sample.labels["decision"]: int(sample.value) for sample in counted}

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
        return not queue.in_work and not any(queue.depth.values()) and queue.delayed == len(self.manager.heads)

    async def _pass_over(self, refs: Sequence[ResourceRef]) -> None:
        controller = self.controller
        for ref in refs:
            controller.call(ref, RESYNC)
        while not self._is_at_rest:
            await controller.queue.drained()
            await asyncio.sleep(0)

    def _require_life(self) -> None:
        if self._task.done():
            self._task.result()
            raise AssertionError("the process has ended")


@contextmanager
def running(path: Path, google: GoogleClient) -> Iterator[Running]:
    """A process over the store `path`, as soon as it was started; stopped at the end."""
    loop = asyncio.new_event_loop()
    try:
        store = loop.run_until_complete(open_store(path))
        process = Running(loop, store, google)
        try:
            yield process
        finally:
            process.stop()
            loop.run_until_complete(store.close())
            loop.run_until_complete(google.close())
    finally:
        loop.close()

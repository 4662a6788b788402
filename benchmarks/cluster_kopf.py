"""What an operator of kopf's does with a fleet in a cluster. Its one handler keeps the object, and writes nothing."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final
from unittest import mock

import kopf
import msgspec
from kopf._cogs.clients import watching

from benchmarks.errands import Found, Meter, Order, wait_for_word
from benchmarks.residence import resident

# How long its workers wait for more, once they have nothing to do; and how often somebody looks whether they still do.
_IDLE: Final = 0.5
_A_WHILE: Final = 0.02


async def start(order: Order) -> Found:
    """From its beginning until every object was handled; the memory is that of an operator at rest."""
    meter, operator = Meter(), _Operator(order)
    async with operator.running():
        await operator.informed.wait()
        found = meter.read(len(operator.kept))
        await operator.until_at_rest()
        return msgspec.structs.replace(found, memory=resident())


async def storm(order: Order) -> Found:
    """From the bytes of events to the handler."""
    operator = _Operator(order)
    async with operator.running():
        await operator.informed.wait()
        await operator.until_at_rest()
        await wait_for_word()
        meter = Meter()
        operator.word.set()
        await operator.enough.wait()
        return meter.read(operator.heard)


class _Operator:
    """It hears of no change before it is given the word."""

    def __init__(self, order: Order) -> None:
        self.kept: dict[tuple[str, str, str], kopf.Body] = {}
        self.heard = 0
        self.informed, self.word, self.enough = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._order = order
        self._to_list = {sort.plural for sort in order.resource_types}
        self._watch = watching.infinite_watch

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """It goes on until the end of the block."""
        logging.getLogger("kopf").setLevel(logging.ERROR)
        os.environ["KUBECONFIG"] = self._order.kubeconfig
        namespace, stop = self._order.namespace, asyncio.Event()
        with mock.patch.object(watching, "infinite_watch", self._watch_in_turn):
            running = kopf.operator(
                registry=self._registry(),
                settings=_settings(),
                standalone=True,
                clusterwide=namespace is None,
                namespaces=() if namespace is None else (namespace,),
                stop_flag=stop,
            )
            task = asyncio.create_task(running)
            try:
                yield
            finally:
                self.word.set()
                stop.set()
                await task

    async def until_at_rest(self) -> None:
        """None of its workers is left."""
        while any(task.get_name().startswith("worker for") for task in asyncio.all_tasks()):
            await asyncio.sleep(_A_WHILE)

    def _registry(self) -> Any:  # noqa: ANN401 - kopf's own
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)
        for sort in self._order.resource_types:
            kopf.on.event(sort.group, sort.version, sort.plural, registry=registry)(self._handle)
        return registry

    async def _handle(self, body: kopf.Body, type: str | None, **_: object) -> None:  # noqa: A002 - kopf's name for it
        self.kept[body["kind"], body["metadata"]["namespace"], body["metadata"]["name"]] = body
        self.heard += type == "MODIFIED"
        if self.heard == self._order.events:
            self.enough.set()
        self._notice()

    async def _watch_in_turn(self, **facts: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - kopf's own
        """What kopf would hear, in which the changes come after the word."""
        async with aclosing(self._watch(**facts)) as events:
            async for event in events:
                yield event
                if event is watching.Bookmark.LISTED:
                    self._to_list.discard(facts["resource"].plural)
                    self._notice()
                    await self.word.wait()

    def _notice(self) -> None:
        if not self._to_list and len(self.kept) == self._order.expected:
            self.informed.set()


def _settings() -> kopf.OperatorSettings:
    """It has as little to do as may be."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.queueing.idle_timeout = _IDLE
    return settings

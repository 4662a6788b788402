"""Lists and watches a fleet with a kopf operator. Its only handler caches the object, and writes nothing."""

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

from benchmarks.measured_process import Job, Usage, UsageMeter, signal_ready_and_wait
from benchmarks.process_memory import resident_bytes

# After how many seconds without work a worker of kopf ends; and how often that is checked.
_IDLE_TIMEOUT: Final = 0.5
_POLL_SECONDS: Final = 0.02


async def start(job: Job) -> Usage:
    """From the start of the operator until every object was handled. The memory is that of the idle operator."""
    meter, operator = UsageMeter(), _KopfOperator(job)
    async with operator.running():
        await operator.synced.wait()
        usage = meter.read(len(operator.cache))
        await operator.wait_until_idle()
        return msgspec.structs.replace(usage, memory=resident_bytes())


async def watch_and_cache(job: Job) -> Usage:
    """From the bytes of the events to the handler."""
    operator = _KopfOperator(job)
    async with operator.running():
        await operator.synced.wait()
        await operator.wait_until_idle()
        await signal_ready_and_wait()
        meter = UsageMeter()
        operator.gate.set()
        await operator.all_received.wait()
        return meter.read(operator.received)


class _KopfOperator:
    """A kopf operator that receives no event after the lists until its gate is open."""

    def __init__(self, job: Job) -> None:
        self.cache: dict[tuple[str, str, str], kopf.Body] = {}
        self.received = 0
        self.synced, self.gate, self.all_received = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._job = job
        self._unlisted_kinds = {kind.plural for kind in job.kinds}
        self._watch = watching.infinite_watch

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the operator until the end of the block."""
        logging.getLogger("kopf").setLevel(logging.ERROR)
        os.environ["KUBECONFIG"] = self._job.kubeconfig
        namespace, stop = self._job.namespace, asyncio.Event()
        with mock.patch.object(watching, "infinite_watch", self._gated_watch):
            operator = kopf.operator(
                registry=self._registry(),
                settings=_settings(),
                standalone=True,
                clusterwide=namespace is None,
                namespaces=() if namespace is None else (namespace,),
                stop_flag=stop,
            )
            task = asyncio.create_task(operator)
            try:
                yield
            finally:
                self.gate.set()
                stop.set()
                await task

    async def wait_until_idle(self) -> None:
        """Returns when all workers of kopf have ended."""
        while any(task.get_name().startswith("worker for") for task in asyncio.all_tasks()):
            await asyncio.sleep(_POLL_SECONDS)

    def _registry(self) -> Any:  # noqa: ANN401 - kopf's own
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)
        for kind in self._job.kinds:
            kopf.on.event(kind.group, kind.version, kind.plural, registry=registry)(self._handle)
        return registry

    async def _handle(self, body: kopf.Body, type: str | None, **_: object) -> None:  # noqa: A002 - kopf's name for it
        self.cache[body["kind"], body["metadata"]["namespace"], body["metadata"]["name"]] = body
        self.received += type == "MODIFIED"
        if self.received == self._job.events:
            self.all_received.set()
        self._check_synced()

    async def _gated_watch(self, **arguments: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - kopf's own
        """The watch of kopf; after the list it waits for the gate."""
        async with aclosing(self._watch(**arguments)) as events:
            async for event in events:
                yield event
                if event is watching.Bookmark.LISTED:
                    self._unlisted_kinds.discard(arguments["resource"].plural)
                    self._check_synced()
                    await self.gate.wait()

    def _check_synced(self) -> None:
        if not self._unlisted_kinds and len(self.cache) == self._job.expected:
            self.synced.set()


def _settings() -> kopf.OperatorSettings:
    """Everything that can be disabled is disabled."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.queueing.idle_timeout = _IDLE_TIMEOUT
    return settings

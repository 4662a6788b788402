"""What kopf does with an event that brings nothing new: its own processing, with a handler for every kind of change."""

import asyncio
import copy
import functools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

import kopf
from kopf._cogs.clients import patching, watching
from kopf._cogs.structs import bodies, patches, references
from kopf._core.engines import indexing
from kopf._core.intents import causes
from kopf._core.reactor import inventory, processing, queueing

from benchmarks.measuring import Contestant, Disagreement
from setpoint.core.values.json_types import JsonObject

DIRECT: Final = "kopf: process_resource_event, given the decoded event"
QUEUED: Final = "kopf: the same, behind its watcher and workers"
_RESOURCE: Final = ("storage.cnrm.cloud.google.com", "v1beta1", "storagebuckets")
# After that many seconds kopf would leave workers behind that have not ended.
_PATIENCE: Final = 600.0


@contextmanager
def contestants(documents: Sequence[JsonObject]) -> Iterator[tuple[Contestant, ...]]:
    """Two ways to hand kopf one event for each document; Disagreement unless it finds that nothing is to do.

    To kopf these are resources that it has handled before: they have its finalizer, and its memory of them.
    """
    log = logging.getLogger("kopf")
    level, loop = log.level, asyncio.new_event_loop()
    operator = _Operator()
    events = [_modified(operator.handled_before(document)) for document in documents]
    log.setLevel(logging.WARNING)
    try:
        with mock.patch.object(patching, "patch_obj", operator.patch):
            loop.run_until_complete(_require_agreement(operator, events[0]))
            yield (
                _contestant(DIRECT, loop, operator, functools.partial(operator.process, events)),
                _contestant(QUEUED, loop, operator, functools.partial(operator.watch, events)),
            )
    finally:
        log.setLevel(level)
        loop.close()


def _contestant(
    name: str,
    loop: asyncio.AbstractEventLoop,
    operator: "_Operator",
    work: "functools.partial[Coroutine[object, object, None]]",
) -> Contestant:
    def call() -> int:
        operator.processed = 0
        loop.run_until_complete(work())
        return operator.processed

    (events,) = work.args

    def is_right(answer: object) -> bool:
        return answer == len(events) and not operator.handled and not operator.patches

    return Contestant(name, call, is_right, len(events))


async def _require_agreement(operator: "_Operator", event: dict[str, Any]) -> None:
    """An event as they are measured is none to act on, and with another spec it is one."""
    changed = copy.deepcopy(event)
    changed["object"]["spec"]["versioning"]["enabled"] = False
    for one, reason, handled in ((event, "noop", []), (changed, "update", ["update"])):
        found = await _reasons(operator, one)
        if (found, operator.handled, len(operator.patches)) != ([reason], handled, len(handled)):
            raise Disagreement(f"kopf sees {found} and calls handlers for {operator.handled}, not {reason}")
    operator.handled.clear()
    operator.patches.clear()


async def _reasons(operator: "_Operator", event: dict[str, Any]) -> list[str]:
    """What kopf takes the event for."""
    found: list[str] = []
    detect: Callable[..., Any] = causes.detect_changing_cause

    def noticing(**facts: Any) -> Any:  # noqa: ANN401 - kopf's own
        cause = detect(**facts)
        found.append(cause.reason.value)
        return cause

    with mock.patch.object(causes, "detect_changing_cause", noticing):
        await operator.process([event])
    return found


def _modified(document: dict[str, Any]) -> dict[str, Any]:
    return {"type": "MODIFIED", "object": document}


class _Operator:
    """An operator of kopf's without a cluster: it notes down what would be sent there."""

    def __init__(self) -> None:
        self.handled: list[str] = []
        self.patches: list[object] = []
        self.processed = 0
        self._resource = references.Resource(*_RESOURCE, kind="StorageBucket", namespaced=True, preferred=True)
        self._settings = kopf.OperatorSettings()
        self._settings.posting.enabled = False
        self._settings.queueing.exit_timeout = _PATIENCE
        self._process = functools.partial(
            processing.process_resource_event,
            lifecycle=kopf.lifecycles.all_at_once,
            indexers=indexing.OperatorIndexers(),
            registry=self._registry(),
            settings=self._settings,
            memories=inventory.ResourceMemories(),
            memobase=kopf.Memo(),
            resource=self._resource,
            event_queue=asyncio.Queue(),
        )

    def handled_before(self, document: JsonObject) -> dict[str, Any]:
        """The document as kopf leaves it."""
        storage = self._settings.persistence.diffbase_storage
        known: dict[str, Any] = copy.deepcopy(dict(document))
        known["metadata"]["finalizers"].append(self._settings.persistence.finalizer)
        body, patch = bodies.Body(known), patches.Patch()
        storage.store(body=body, patch=patch, essence=storage.build(body=body))
        known["metadata"]["annotations"].update(patch["metadata"]["annotations"])
        return known

    async def process(self, events: Sequence[dict[str, Any]]) -> None:
        """One after the other, without a queue."""
        for event in events:
            await self._process(raw_event=event)
            self.processed += 1

    async def watch(self, events: Sequence[dict[str, Any]]) -> None:
        """As they come from a cluster: each to the worker of its object."""

        async def stream(**_: object) -> AsyncIterator[dict[str, Any]]:
            for event in events:
                yield event

        with mock.patch.object(watching, "infinite_watch", stream):
            await queueing.watcher(
                namespace=None, settings=self._settings, resource=self._resource, processor=self._counted
            )

    async def patch(self, *, patch: object, **_: object) -> tuple[None, None]:
        """What kopf would send."""
        self.patches.append(patch)
        return None, None

    async def _counted(self, **event: object) -> str | None:
        version: str | None = await self._process(**event)
        self.processed += 1
        return version

    def _registry(self) -> Any:  # noqa: ANN401 - kopf's own
        async def handle(reason: Any, **_: object) -> None:  # noqa: ANN401
            self.handled.append(reason.value)

        registry = kopf.OperatorRegistry()
        for on in (kopf.on.create, kopf.on.update, kopf.on.delete):
            on(*_RESOURCE, registry=registry)(handle)
        return registry

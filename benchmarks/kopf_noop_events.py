"""Candidates: kopf processes an event without a change, with handlers for create, update and delete registered."""

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

from benchmarks.comparison import Candidate, WrongResult
from setpoint.core.values.json_types import JsonObject

DIRECT: Final = "kopf: process_resource_event, given the decoded event"
QUEUED: Final = "kopf: the same, behind its watcher and workers"
_RESOURCE: Final = ("storage.cnrm.cloud.google.com", "v1beta1", "storagebuckets")
# Seconds after which kopf would abandon workers that have not ended.
_EXIT_TIMEOUT: Final = 600.0


@contextmanager
def candidates(documents: Sequence[JsonObject]) -> Iterator[tuple[Candidate, ...]]:
    """Two ways to let kopf process an event for each document; WrongResult unless kopf finds nothing to do.

    The documents are resources that kopf has handled before: they have its finalizer and its last-handled annotation.
    """
    log = logging.getLogger("kopf")
    level, loop = log.level, asyncio.new_event_loop()
    operator = _KopfOperator()
    events = [_modified(operator.as_handled(document)) for document in documents]
    log.setLevel(logging.WARNING)
    try:
        with mock.patch.object(patching, "patch_obj", operator.patch):
            loop.run_until_complete(_require_expected_reasons(operator, events[0]))
            yield (
                _candidate(DIRECT, loop, operator, functools.partial(operator.process, events)),
                _candidate(QUEUED, loop, operator, functools.partial(operator.watch, events)),
            )
    finally:
        log.setLevel(level)
        loop.close()


def _candidate(
    name: str,
    loop: asyncio.AbstractEventLoop,
    operator: "_KopfOperator",
    run: "functools.partial[Coroutine[object, object, None]]",
) -> Candidate:
    def call() -> int:
        operator.processed = 0
        loop.run_until_complete(run())
        return operator.processed

    (events,) = run.args

    def is_correct(processed: object) -> bool:
        return processed == len(events) and not operator.handled and not operator.patches

    return Candidate(name, call, is_correct, len(events))


async def _require_expected_reasons(operator: "_KopfOperator", event: dict[str, Any]) -> None:
    """WrongResult unless kopf has nothing to do for `event`, and calls its update handler for a changed spec."""
    changed = copy.deepcopy(event)
    changed["object"]["spec"]["versioning"]["enabled"] = False
    for checked_event, reason, handled in ((event, "noop", []), (changed, "update", ["update"])):
        reasons = await _reasons(operator, checked_event)
        if (reasons, operator.handled, len(operator.patches)) != ([reason], handled, len(handled)):
            raise WrongResult(f"kopf sees {reasons} and calls handlers for {operator.handled}, not {reason}")
    operator.handled.clear()
    operator.patches.clear()


async def _reasons(operator: "_KopfOperator", event: dict[str, Any]) -> list[str]:
    """The reasons that kopf detects for the event."""
    reasons: list[str] = []
    detect: Callable[..., Any] = causes.detect_changing_cause

    def recording_detect(**arguments: Any) -> Any:  # noqa: ANN401 - kopf's own
        cause = detect(**arguments)
        reasons.append(cause.reason.value)
        return cause

    with mock.patch.object(causes, "detect_changing_cause", recording_detect):
        await operator.process([event])
    return reasons


def _modified(document: dict[str, Any]) -> dict[str, Any]:
    return {"type": "MODIFIED", "object": document}


class _KopfOperator:
    """A kopf operator without a cluster: it records the patches that it would send."""

    def __init__(self) -> None:
        self.handled: list[str] = []
        self.patches: list[object] = []
        self.processed = 0
        self._resource = references.Resource(*_RESOURCE, kind="StorageBucket", namespaced=True, preferred=True)
        self._settings = kopf.OperatorSettings()
        self._settings.posting.enabled = False
        self._settings.queueing.exit_timeout = _EXIT_TIMEOUT
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

    def as_handled(self, document: JsonObject) -> dict[str, Any]:
        """The document after kopf has handled it."""
        storage = self._settings.persistence.diffbase_storage
        handled: dict[str, Any] = copy.deepcopy(dict(document))
        handled["metadata"]["finalizers"].append(self._settings.persistence.finalizer)
        body, patch = bodies.Body(handled), patches.Patch()
        storage.store(body=body, patch=patch, essence=storage.build(body=body))
        handled["metadata"]["annotations"].update(patch["metadata"]["annotations"])
        return handled

    async def process(self, events: Sequence[dict[str, Any]]) -> None:
        """Processes the events one after the other, without a queue."""
        for event in events:
            await self._process(raw_event=event)
            self.processed += 1

    async def watch(self, events: Sequence[dict[str, Any]]) -> None:
        """Processes the events as those of a watch: each in the worker of its object."""

        async def stream(**_: object) -> AsyncIterator[dict[str, Any]]:
            for event in events:
                yield event

        with mock.patch.object(watching, "infinite_watch", stream):
            await queueing.watcher(
                namespace=None, settings=self._settings, resource=self._resource, processor=self._process_and_count
            )

    async def patch(self, *, patch: object, **_: object) -> tuple[None, None]:
        """Records a patch instead of sending it."""
        self.patches.append(patch)
        return None, None

    async def _process_and_count(self, **event: object) -> str | None:
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

"""What users may have done to resources: reconcile now, pause, resume. Nothing is deleted, and no spec is changed."""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.dashboard.api.models import ActionName
from setpoint.engine.management import MANAGEMENT, Management
from setpoint.engine.ports import Clock
from setpoint.engine.resource import ResourceRef
from setpoint.engine.state import RECONCILE_REQUESTED
from setpoint.engine.step.reconcile_request import CommandTrigger, request_text
from setpoint.library.session import Session

_log: Final = logging.getLogger(__name__)
# So long the page waits for an error; what takes longer shows in the status of the resource.
_ANSWER_SECONDS: Final = 2.0
ACTIONS: Final[tuple[ActionName, ...]] = ("reconcile", "pause", "resume")


def annotations_for(action: ActionName, clock: Clock) -> Mapping[str, str | None]:
    """The annotations that an action sets, or removes: the only part of a resource that it changes."""
    match action:
        case "reconcile":
            text = request_text(f"{clock.now()}/{secrets.token_hex(4)}", CommandTrigger.RECONCILE)
            return {RECONCILE_REQUESTED: text}
        case "pause":
            return {MANAGEMENT: Management.PAUSED.value}
        case "resume":
            return {MANAGEMENT: None}


@dataclass(slots=True)
class SessionActions:
    """Actions of a page beside the controllers: by the process that has the store, or else by this one."""

    session: Session
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def act(self, ref: ResourceRef, action: ActionName) -> None:
        """See Actions. A step that takes longer, of a service that does not answer, goes on in the background."""
        task = asyncio.create_task(self._act(ref, action))
        self._tasks.add(task)
        await asyncio.wait({task}, timeout=_ANSWER_SECONDS)
        if task.done():
            self._tasks.discard(task)
            task.result()
        else:
            task.add_done_callback(self._ended_later)

    def _ended_later(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("action of the dashboard failed", extra={"why": str(error)})

    async def close(self) -> None:
        """Ends what still goes on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _act(self, ref: ResourceRef, action: ActionName) -> None:
        if action == "reconcile":
            await self.session.reconcile(ref, wait=False)
            return
        found = (await self.session.get(ref, show_secrets=True)).document
        metadata = found.get("metadata")
        assert isinstance(metadata, dict)
        annotations = metadata.get("annotations")
        changed: dict[str, Json] = dict(annotations) if isinstance(annotations, dict) else {}
        changed.pop(RECONCILE_REQUESTED, None)
        for name, text in annotations_for(action, self.session.settings.clock).items():
            changed.pop(name, None)
            if text is not None:
                changed[name] = text
        manifest = {name: value for name, value in found.items() if name != "status"}
        kept = {name: metadata[name] for name in ("name", "namespace", "labels") if name in metadata}
        await self.session.apply({**manifest, "metadata": {**kept, "annotations": changed}}, wait=False)

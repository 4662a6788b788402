"""What users may have done to resources: reconcile now, pause, resume. Nothing is deleted, and no spec is changed."""

import secrets
from collections.abc import Mapping
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

    async def act(self, ref: ResourceRef, action: ActionName) -> None:
        """See Actions."""
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

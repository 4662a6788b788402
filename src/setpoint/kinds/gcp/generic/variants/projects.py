"""Projects: the billing account of one is set by a method of Cloud Billing, once the project is there.

It is sent when the author changes it, and not read: to read it takes a right that those who keep projects may not have.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from setpoint.clients.google.calls import GoogleApi, GoogleCall
from setpoint.core.plan import PlannedWrite, PlanOptions, WriteStage
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.kind import Intent, Present, RemoteOperation
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.requests import GoogleRequest
from setpoint.kinds.gcp.generic.spec_types import GoogleObject

_BILLING: Final = GoogleApi("cloudbilling.googleapis.com", "/v1")
_ACCOUNT: Final = Path(("spec", "billingAccountRef"))
_MEMBER: Final = "billingAccountName"
_WRITE: Final = "billing account"


class ProjectKind(GoogleKind):
    """A project."""

    def sending(self, intent: Intent) -> PlanOptions:
        """The billing account in a write of its own, which follows the creation."""
        found = super().sending(intent)
        follow_up = _WRITE if intent.resource.spec.get("billingAccountRef") else None
        return replace(found, stages=(*found.stages, WriteStage(_WRITE, (_ACCOUNT,))), follow_up=follow_up)

    def creation_request(self, intent: Intent, wanted: JsonObject) -> GoogleRequest:
        """The request that creates the project, without a billing account."""
        request = super().creation_request(intent, wanted)
        assert isinstance(request.body, Mapping)
        return replace(request, body={name: one for name, one in request.body.items() if name != _MEMBER})

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[GoogleObject]
    ) -> RemoteOperation | None:
        """Sends one write of the plan."""
        if write.name != _WRITE:
            return await super().update(intent, wanted, write, before)
        account = get_at(intent.declared.tree, _ACCOUNT / "external")
        call = GoogleCall(_BILLING, (*intent.location.split("/"), "billingInfo"))
        await self.google.put(call, {_MEMBER: str(account)})
        return None

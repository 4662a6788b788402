"""Custom roles: of a project or of an organization. One that was deleted is kept for a time, and keeps its id.

An annotation names the organization, as Config Connector has it.
"""

from typing import Final

from setpoint.clients.google.calls import GoogleCall
from setpoint.clients.response_bodies import decode_object
from setpoint.core.plan import ProjectSource, ResolvedProject
from setpoint.core.schema.annotations import ORGANIZATION_ID
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.kind import Intent, Location, RemoteOperation, ResolvedReferences, Written
from setpoint.engine.resource import Resource
from setpoint.kind.typed_spec import field_invalid
from setpoint.kinds.gcp.generic.creating.creations import creation_members
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.live_bodies import is_absent
from setpoint.kinds.gcp.generic.requests import object_call
from setpoint.kinds.gcp.generic.spec_types import GoogleObject
from setpoint.kinds.gcp.shared.config_connector import PROJECT_ANNOTATION, resource_id

_AT: Final = f"metadata.annotations[{ORGANIZATION_ID!r}]"


class RoleKind(GoogleKind):
    """A custom role."""

    own_annotations = (ORGANIZATION_ID,)

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`projects/P/roles/R`, or `organizations/O/roles/R`. ProjectRefused for an organization of a tenant."""
        organization = self._organization(resource)
        if not organization:
            return GoogleKind.locate(self, resource, resolved)
        return Location(f"{organization}/roles/{resource_id(resource)}")

    def project_of(self, resource: Resource, resolved: ResolvedReferences) -> ResolvedProject:
        """See SupportsProjects: the organization, where the role is of one."""
        organization = self._organization(resource)
        if not organization:
            return GoogleKind.project_of(self, resource, resolved)
        return ResolvedProject(organization, ProjectSource.ANNOTATION)

    def _organization(self, resource: Resource) -> str:
        named = resource.annotations.get(ORGANIZATION_ID, "")
        if not named:
            return ""
        if not named.isdecimal():
            raise field_invalid(resource, _AT, f" is {named!r}: write the number of an organization")
        if resource.annotations.get(PROJECT_ANNOTATION):
            raise field_invalid(resource, _AT, f" is beside {PROJECT_ANNOTATION}: write one of them")
        self.projects.require(f"organizations/{named}", resource, _AT)
        return f"organizations/{named}"

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | Written[GoogleObject] | None:
        """Creates the role; one that was deleted a short time ago is undeleted, and set to what is wanted."""
        call = object_call(self.row, intent.location)
        found = decode_object(await self.google.get(call), intent.location)
        if not is_absent(self.row, found):
            return await GoogleKind.create(self, intent, wanted)
        await self.google.post(GoogleCall(call.service, call.parts, method="undelete"), {})
        members = creation_members(self.row, wanted, intent.location)
        # All that a spec can say: what the former role had besides is emptied.
        named = (facts.to or name for name, facts in self.row.fields.items() if facts.to != "id")
        mask = {"updateMask": ",".join(sorted(named))}
        await self.google.patch(object_call(self.row, intent.location, mask), members)
        return None

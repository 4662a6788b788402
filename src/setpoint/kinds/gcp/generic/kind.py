"""The generic kind: observe, create, update and delete of an object that a row of the catalogue describes."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct

from setpoint.catalogue.rows import FieldFacts, KindFacts
from setpoint.clients.google.client import GoogleClient, item_name
from setpoint.clients.http import decode_response
from setpoint.core.overlay import Declared, EffectiveState, effective_state
from setpoint.core.plan import PlannedWrite, PlanOptions, ResolvedProject
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.values.canonical import sha256_hex
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.paths import Path
from setpoint.core.values.problems import Problems
from setpoint.engine.capabilities import ListScope
from setpoint.engine.kind import (
    Absent,
    CrdDetails,
    Dependency,
    Intent,
    Location,
    Present,
    Reconciliation,
    RemoteOperation,
    ResolvedReferences,
    Unchanged,
    observe_decoded,
)
from setpoint.engine.resource import Resource
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.errors import RemoteConflict
from setpoint.kind.typed_spec import decode_spec, field_invalid
from setpoint.kinds.gcp.generic.equivalence import fitted
from setpoint.kinds.gcp.generic.lists import listed_pages
from setpoint.kinds.gcp.generic.members import from_members
from setpoint.kinds.gcp.generic.operations import is_operation_done, started_operation
from setpoint.kinds.gcp.generic.placement import PlacedResource, segments
from setpoint.kinds.gcp.generic.references import dependencies_in, resolved_fields
from setpoint.kinds.gcp.generic.requests import GoogleRequest, creation, object_call, sending_of, update
from setpoint.kinds.gcp.generic.spec_types import UNKNOWN, GoogleObject, GoogleStatus, tree_type_of
from setpoint.kinds.gcp.shared.config_connector import (
    ANY_PROJECT,
    PROJECT_ANNOTATION,
    TenantProjects,
    definition_for,
    google_labels,
    name_taken_error,
    resource_id,
    without_managed_label,
)

_decoder: Final = msgspec.json.Decoder(dict[str, Any])
_SPEC: Final = Path(("spec",))


@cache
def _tree_type(kind: tuple[str, str]) -> type[Struct]:
    from setpoint.catalogue.rows import facts_of

    return tree_type_of(facts_of(kind))


@dataclass(slots=True)
class GoogleKind:
    """A kind of Google's, made from a row of the catalogue."""

    google: GoogleClient
    row: KindFacts
    group: str
    version: str
    name: str
    tree_type: type[Struct]
    definition: CrdDetails
    projects: TenantProjects = ANY_PROJECT
    reconciliation: Reconciliation = Reconciliation.STATEFUL
    revision: int = 1
    writes_through_clients: ClassVar = True
    annotations: Sequence[str] = (PROJECT_ANNOTATION,)
    live_type: type[GoogleObject] = GoogleObject

    @staticmethod
    def of(row: KindFacts, google: GoogleClient, projects: TenantProjects = ANY_PROJECT) -> "GoogleKind":
        """The kind of a row."""
        definition = definition_for(row.kind, GoogleStatus, f"A {row.kind} of {row.host}.")
        tree_type = _tree_type((row.group, row.kind))
        return GoogleKind(google, row, row.group, row.version, row.kind, tree_type, definition, projects)

    def for_tenant(self, tenant: Tenant) -> "GoogleKind":
        """See SupportsTenants."""
        projects = TenantProjects(tenant)
        return replace(self, google=self.google.acting_for(projects.caller), projects=projects)

    # --- The spec -----------------------------------------------------------------------------------------------------

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that is invalid whatever the live state."""
        problems = Problems()
        problems.collect(decode_spec, resource, self._spec_type)
        problems.collect(self.dependencies, resource)
        problems.collect(resource_id, resource)
        for at in _unsupported(resource.spec, self.row.fields, _SPEC):
            problem = f" cannot be set: no member of {self.row.host} is known for it"
            problems.add([field_invalid(resource, at, problem)])
        problems.require_none()

    @property
    def _spec_type(self) -> type[Struct]:
        found = self.tree_type.__annotations__["spec"]
        assert isinstance(found, type)
        return found

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The references and Secrets in the spec."""
        return dependencies_in(self.row.fields, resource)

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """The relative name of the object, such as `projects/p/topics/t`."""
        return self._placed(resource, resolved).locate()

    def project_of(self, resource: Resource, resolved: ResolvedReferences) -> ResolvedProject:
        """See SupportsProjects."""
        return self._placed(resource, resolved).project()

    def _placed(self, resource: Resource, resolved: ResolvedReferences) -> PlacedResource:
        return PlacedResource(self.row, resource, resolved, self.projects)

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The spec with its references resolved, and the labels to send."""
        spec = resolved_fields(resource.spec, self.row.fields, _SPEC, self._placed(resource, resolved))
        if not self.row.labels:
            return {"spec": spec}
        # A spec with labels of its own decides about them alone.
        own = spec.get("labels") if "labels" in self.row.fields else None
        return {"spec": spec, "metadata": {"labels": google_labels(resource) if own is None else own}}

    def view(self, live: GoogleObject) -> JsonObject:
        """The live object in the terms of the spec."""
        labels: JsonObject = {"metadata": {"labels": live.labels or {}}} if self.row.labels else {}
        return {"spec": live.spec, **labels}

    def effective(self, spec: Struct, live: Struct | Missing, policy: FieldPolicy) -> EffectiveState[Struct]:
        """The spec over the live object; what means the same as the live value is no change."""
        return effective_state(spec, live, policy, self._fit)

    def _fit(self, declared: Declared, live: JsonObject) -> Declared:
        own, now = declared.tree.get("spec"), live.get("spec")
        assert isinstance(own, Mapping)
        spec = fitted(own, now if isinstance(now, Mapping) else {}, self.row.fields)
        found = replace(declared, tree={**declared.tree, "spec": spec})
        return without_managed_label(found, live) if self.row.labels else found

    def abandons(self, resource: Resource) -> bool:
        """Whether the service has no way to delete the object."""
        return "delete" not in self.row.methods

    def sending(self, intent: Intent) -> PlanOptions:
        """Labels by their own method where there is one; the rest in one update."""
        return sending_of(self.row)

    # --- The object ---------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[GoogleObject] | Unchanged:
        """Reads the object."""
        body = await self.google.get(object_call(self.row, location))
        if body is None:
            return Absent()
        digest = sha256_hex(body)
        return Unchanged() if digest == known else self._present(body, location, digest)

    def _present(self, body: bytes, location: Location, digest: str | None = None) -> Present[GoogleObject]:
        found = decode_response(_decoder, body, location)
        labels = found.get(self.row.labels) if self.row.labels else None
        live = GoogleObject(from_members(found, self.row.fields), labels)
        return Present(live, digest, outputs=_outputs(self.row, found, location), whole=found)

    # --- Lists --------------------------------------------------------------------------------------------------------

    def list_scope_of(self, location: Location) -> ListScope | None:
        """The collection of the object; None where the service has no list, or one without whole objects."""
        method = self.row.methods.get("list")
        return ListScope("/".join(segments(self.row, location)[:-1])) if method and method.items else None

    def pages(self, list_scope: ListScope) -> AsyncGenerator[Sequence[bytes], None]:
        """The objects of the collection."""
        return listed_pages(self.row, self.google, list_scope)

    def location_of(self, item: bytes, list_scope: ListScope) -> Location:
        """The location of an object in a list."""
        return Location(f"{list_scope}/{item_name(item, list_scope).rpartition('/')[2]}")

    def read_item(self, item: bytes, location: Location) -> Present[GoogleObject] | None:
        """The object in a list."""
        return self._present(item, location)

    # --- Writes -------------------------------------------------------------------------------------------------------

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | None:
        """Creates the object."""
        request = creation(self.row, intent.location, wanted, intent.resource.spec)
        try:
            answer = await self._send(request, is_creation=True)
        except RemoteConflict as error:
            raise await name_taken_error(error, observe_decoded(intent.location, self)) from error
        return started_operation(self.row, "create", answer, intent.location)

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[GoogleObject]
    ) -> RemoteOperation | None:
        """Sends one write of the plan."""
        live = before.whole
        assert isinstance(live, Mapping)
        answer = await self._send(update(self.row, intent, wanted, write, live))
        return started_operation(self.row, "update", answer, intent.location)

    async def delete(
        self, location: Location, before: Present[GoogleObject], resource: Resource
    ) -> RemoteOperation | None:
        """Deletes the object."""
        answer = await self.google.delete(object_call(self.row, location))
        return None if answer is None else started_operation(self.row, "delete", answer, location)

    async def _send(self, request: GoogleRequest, *, is_creation: bool = False) -> bytes:
        match request.verb:
            case "PUT":
                return await self.google.put(request.call, request.body, is_creation=is_creation)
            case "PATCH":
                return await self.google.patch(request.call, request.body)
            case _:
                return await self.google.post(request.call, request.body)

    async def poll(self, operation: RemoteOperation) -> bool:
        """Whether the operation is done."""
        return await is_operation_done(self.row, operation, self.google)


def _unsupported(spec: Mapping[str, Any], fields: Mapping[str, FieldFacts], at: Path) -> list[str]:
    """The fields of a spec that the catalogue knows no member for."""
    found: list[str] = []
    for name, value in spec.items():
        facts = fields.get(name)
        if facts is None:
            continue
        if facts.to == UNKNOWN:
            found.append(str(at / name))
        elif facts.fields and isinstance(value, Mapping):
            found += _unsupported(value, facts.fields, at / name)
        elif facts.fields and isinstance(value, list):
            for place, one in enumerate(value):
                found += _unsupported(one, facts.fields, at / name / place) if isinstance(one, Mapping) else []
    return found


def _outputs(row: KindFacts, body: Mapping[str, Any], location: Location) -> JsonObject:
    """What the status shows: the name, the link, and what the service set; as Config Connector has it."""
    reported: dict[str, Json] = {name: body[name] for name in row.output_only if name in body and name != "name"}
    found: dict[str, Json] = {"externalRef": location}
    link = body.get("selfLink")
    # Others refer to it by this, whether the service has links or not.
    found["selfLink"] = link if isinstance(link, str) else location
    if reported:
        found["observedState"] = reported
    return {**{name: value for name, value in reported.items() if name not in _ENGINE_NAMES}, **found}


# Members of a status that are not the service's.
_ENGINE_NAMES: Final = ("conditions", "observedGeneration", "setpoint", "output", "serverDefaults")

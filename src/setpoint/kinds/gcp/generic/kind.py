"""The generic kind: observe, create, update and delete of an object that a row of the catalogue describes."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Final, NoReturn

import msgspec
from msgspec import Struct

from setpoint.catalogue.index import is_preview
from setpoint.catalogue.rows import KindFacts
from setpoint.clients.google.client import GoogleClient
from setpoint.clients.response_bodies import decode_object
from setpoint.core.overlay import Declared, EffectiveState, effective_of_trees, effective_state
from setpoint.core.plan import PlannedWrite, PlanOptions, ResolvedProject
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import sha256_hex
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.core.values.problems import Problems
from setpoint.engine.capabilities import ImportPlace, ListScope, LiveIdentity
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
    Written,
    observe_decoded,
)
from setpoint.engine.management import MANAGED_LABEL
from setpoint.engine.resource import Resource
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.errors import OperationRunning, RemoteConflict
from setpoint.kind.typed_spec import decode_spec
from setpoint.kinds.gcp.generic.creating.creations import creation
from setpoint.kinds.gcp.generic.equivalence import fitted, without_unmanaged
from setpoint.kinds.gcp.generic.importing.identities import identity_of
from setpoint.kinds.gcp.generic.importing.import_scopes import parents_of, sample_in, scopes_at
from setpoint.kinds.gcp.generic.lists import listed_location, listed_pages, live_objects_of
from setpoint.kinds.gcp.generic.live_bodies import is_absent, outputs_of, shown_labels
from setpoint.kinds.gcp.generic.members import from_members, member_at
from setpoint.kinds.gcp.generic.operations import is_operation_done, started_operation
from setpoint.kinds.gcp.generic.part_requests import (
    ALLOW_STOPPING,
    may_stop,
    method_call,
    must_stop_for,
    request_of,
    require_stoppable,
    sending_of,
)
from setpoint.kinds.gcp.generic.placement import PlacedResource, listed_at
from setpoint.kinds.gcp.generic.references import dependencies_in, resolved_fields, with_parameters
from setpoint.kinds.gcp.generic.requests import GoogleRequest, object_call
from setpoint.kinds.gcp.generic.retirement import delete_method, deletion, empty_first, retire
from setpoint.kinds.gcp.generic.spec_checks import field_problems
from setpoint.kinds.gcp.generic.spec_types import (
    LABELS,
    GoogleObject,
    has_own_labels,
    name_rule,
    status_type_of,
    tree_type_of,
)
from setpoint.kinds.gcp.generic.tenant_references import require_own_projects
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

_SPEC: Final = Path(("spec",))
# Lets an object be stopped for a change that needs it. It is kept running then, unless the spec says otherwise.
DISABLE_ON_DESTROY: Final = "cnrm.cloud.google.com/disable-on-destroy"
# Raised when this code makes something else of the same row and manifest.
_MEANING: Final = 3


@cache
def _tree_type(kind: tuple[str, str]) -> type[Struct]:
    from setpoint.catalogue.rows import facts_of

    return tree_type_of(facts_of(kind))


@cache
def _status_type(kind: tuple[str, str]) -> type[Struct]:
    from setpoint.catalogue.rows import facts_of

    return status_type_of(facts_of(kind))


@cache
def _plan_options(kind: tuple[str, str]) -> PlanOptions:
    from setpoint.catalogue.rows import facts_of

    return sending_of(facts_of(kind))


def revision_of(row: KindFacts) -> int:
    """The revision of the kind of a row: another one for each row, and for each meaning that this code gives to it.

    A process whose catalogue says something else about a kind compares its objects anew, once; it writes what differs.
    """
    return int(sha256_hex(msgspec.json.encode([_MEANING, row], order="deterministic"))[:8], 16)


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
    revision: int = 0
    writes_through_clients: ClassVar = True
    # Those that a variant reads besides.
    own_annotations: ClassVar[Sequence[str]] = ()
    annotations: Sequence[str] = (PROJECT_ANNOTATION,)
    live_type: type[GoogleObject] = GoogleObject

    @staticmethod
    def of(row: KindFacts, google: GoogleClient, projects: TenantProjects = ANY_PROJECT) -> "GoogleKind":
        """The kind of a row."""
        from setpoint.kinds.gcp.generic.variants.choice import kind_class

        name = (row.group, row.kind)
        described = definition_for(row.kind, _status_type(name), f"A {row.kind} of {row.host}.")
        definition = replace(described, rules_in_lists=False, is_preview=is_preview(name))
        kind = kind_class(row)(google, row, row.group, row.version, row.kind, _tree_type(name), definition, projects)
        kind.revision = revision_of(row)
        if kind._can_stop:
            kind.annotations = (PROJECT_ANNOTATION, ALLOW_STOPPING)
        kind.annotations = (*kind.annotations, *kind.own_annotations)
        return kind

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
        problems.collect(resource_id, resource, name_rule(self.row))
        problems.add(field_problems(self.row, resource))
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
        placed = self._placed(resource, resolved)
        spec = resolved_fields(resource.spec, self.row.fields, _SPEC, placed)
        if self.projects.tenant is not None:
            require_own_projects(spec, self.row.fields, _SPEC, placed)
        if self._can_stop and may_stop(resource):
            spec = {**{name: next(iter(one.toggle)) for name, one in self.row.fields.items() if one.toggle}, **spec}
        if not self.row.labels:
            return {"spec": spec}
        # A spec with labels of its own has them instead of those of the metadata.
        own = spec.pop(LABELS, None) if has_own_labels(self.row) else None
        labels = google_labels(resource) if own is None else {**own, MANAGED_LABEL: "true"}
        return {"spec": spec, "metadata": {"labels": labels}}

    @property
    def _can_stop(self) -> bool:
        return any(method.stopped for method in self.row.other_methods.values())

    def view(self, live: GoogleObject) -> JsonObject:
        """The live object in the terms of the spec."""
        labels: JsonObject = {"metadata": {"labels": live.labels or {}}} if self.row.labels else {}
        return {"spec": live.spec, **labels}

    def effective(self, spec: Struct, live: Struct | Missing, policy: FieldPolicy) -> EffectiveState[Struct]:
        """The spec over the live object; what means the same as the live value is no change."""
        return effective_state(spec, live, policy, self._fit)

    def effective_tree(self, declared: Declared, live: JsonObject | Missing) -> EffectiveState[Struct]:
        """The same, for trees."""
        return effective_of_trees(declared, live, self.tree_type, self._fit)

    def _fit(self, declared: Declared, live: JsonObject) -> Declared:
        own, now = declared.tree.get("spec"), live.get("spec")
        assert isinstance(own, Mapping)
        there = now if isinstance(now, Mapping) else {}
        spec = fitted(without_unmanaged(own, there, declared.policy.inside_texts), there, self.row.fields)
        found = replace(declared, tree={**declared.tree, "spec": spec})
        return without_managed_label(found, live) if self.row.labels else found

    def abandons(self, resource: Resource) -> bool:
        """Whether the service has no way to delete the object, or it is to stay."""
        stays_enabled = self.row.kind == "Service" and resource.annotations.get(DISABLE_ON_DESTROY) == "false"
        has_none = "delete" not in self.row.methods and self.row.retirement is None
        return stays_enabled or has_none or delete_method(self.row, resource.spec) == ""

    def stays_when_deleted(self) -> bool:
        """See SupportsRetirement."""
        return self.row.retirement is not None

    def sending(self, intent: Intent) -> PlanOptions:
        """What a method of its own sets in a write of its own, the rest in one update."""
        found = _plan_options((self.group, self.name))
        if not found.resend:
            return found
        declared = (path for path in found.resend if get_at(intent.declared.tree, path) not in (None, MISSING))
        return replace(found, resend=tuple(declared))

    # --- The object ---------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[GoogleObject] | Unchanged:
        """Reads the object."""
        body = await self.read(location)
        if body is None:
            return Absent()
        digest = sha256_hex(body)
        if digest == known:
            return Unchanged()
        found = decode_object(body, location)
        return Absent() if is_absent(self.row, found) else self.present(found, location, digest)

    async def read(self, location: Location) -> bytes | None:
        """The object as the service has it; None for a 404."""
        return await self.google.get(object_call(self.row, location))

    def present(self, found: Mapping[str, Any], location: Location, digest: str | None = None) -> Present[GoogleObject]:
        """The object, in the terms of the spec."""
        labels = shown_labels(member_at(found, tuple(self.row.labels.split(".")))) if self.row.labels else None
        spec = from_members(found, self.row.fields)
        if has_own_labels(self.row):
            spec.pop(LABELS, None)
        live = GoogleObject(spec, labels)
        return Present(live, digest, outputs=self.outputs(found, location), whole=found)

    def outputs(self, found: Mapping[str, Any], location: Location) -> JsonObject:
        """What the status shows of the object."""
        return outputs_of(self.row, found, location)

    # --- Lists --------------------------------------------------------------------------------------------------------

    def list_scope_of(self, location: Location) -> ListScope | None:
        """The collection of the object; None where the service has no list, or one without whole objects."""
        method = self.row.methods.get("list")
        return ListScope(listed_at(self.row, location)) if method and method.items else None

    def pages(self, list_scope: ListScope) -> AsyncGenerator[Sequence[bytes], None]:
        """The objects of the collection."""
        return listed_pages(self.row, self.google, list_scope)

    def location_of(self, item: bytes, list_scope: ListScope) -> Location:
        """The location of an object in a list."""
        return listed_location(self.row, item, list_scope)

    def read_item(self, item: bytes, location: Location) -> Present[GoogleObject] | None:
        """The object in a list."""
        found = decode_object(item, location)
        return None if is_absent(self.row, found) else self.present(found, location)

    def parent_kinds(self) -> Sequence[GroupKind]:
        """See SupportsImport."""
        return parents_of(self.row)

    def import_scopes(self, place: ImportPlace) -> Sequence[ListScope]:
        """The collections of a place; none where the service has no list of whole objects."""
        return [one for one in scopes_at(self.row, place) if self.list_scope_of(sample_in(self.row, one)) is not None]

    def live_objects(self, list_scope: ListScope) -> AsyncGenerator[tuple[Location, Present[GoogleObject]], None]:
        """The objects of a collection."""
        return live_objects_of(self, list_scope)

    def identity_at(self, location: Location) -> LiveIdentity:
        """The inverse of `locate`."""
        return identity_of(self.row, location)

    # --- Writes -------------------------------------------------------------------------------------------------------

    async def create(self, intent: Intent, wanted: JsonObject) -> RemoteOperation | Written[GoogleObject] | None:
        """Creates the object."""
        try:
            answer = await self.send(self.creation_request(intent, wanted), is_creation=True)
        except RemoteConflict as error:
            if ":" in self.row.methods["create"].path:
                # What is only switched on is no name that is taken: an operation of it is under way.
                raise OperationRunning(str(error)) from error
            raise await name_taken_error(error, observe_decoded(intent.location, self)) from error
        return started_operation(self.row, "create", answer, intent.location)

    def creation_request(self, intent: Intent, wanted: JsonObject) -> GoogleRequest:
        """The request that creates the object."""
        spec = with_parameters(intent.resource.spec, self.row.fields, self._placed(intent.resource, intent.resolved))
        return creation(self.row, intent.location, wanted, spec)

    async def update(
        self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[GoogleObject]
    ) -> RemoteOperation | None:
        """Sends one write of the plan."""
        live = before.whole
        assert isinstance(live, Mapping)
        if must_stop_for(self.row, write, live):
            require_stoppable(self.row, intent, (write,), live)
            await self._stop(intent)
        answer = await self.send(request_of(self.row, intent, wanted, write, live))
        return started_operation(self.row, "update", answer, intent.location)

    def check_update(self, intent: Intent, writes: Sequence[PlannedWrite], observed: Present[GoogleObject]) -> None:
        """See SupportsUpdateCheck: some parts change only while the object is stopped."""
        assert isinstance(observed.whole, Mapping)
        require_stoppable(self.row, intent, writes, observed.whole)

    async def _stop(self, intent: Intent) -> NoReturn:
        """Stops the object for a write. The write follows in a later step, which sees it stopped."""
        await self.send(GoogleRequest("POST", method_call(self.row, intent.location, "stop"), {}))
        raise OperationRunning(f"{intent.location} is being stopped", after=1)

    async def delete(
        self, location: Location, before: Present[GoogleObject], resource: Resource
    ) -> RemoteOperation | Absent | None:
        """Deletes the object; one that no method deletes is made unusable.

        One that a service keeps for a time is gone when its answer says so.
        """
        if self.row.retirement is not None:
            await retire(self.row, self.row.retirement, location, self.google)
            return None
        assert isinstance(before.whole, Mapping)
        await empty_first(self.row, before.whole, location, self.google)
        request = deletion(self.row, location, resource.spec)
        answer = await (self.google.delete(request.call) if request.verb == "DELETE" else self._switch_off(request))
        if delete_method(self.row, resource.spec):
            return Absent()
        operation = None if answer is None else started_operation(self.row, "delete", answer, location)
        if operation is not None or not answer or not self.row.absent:
            return operation
        found = decode_object(answer, location)
        return Absent() if is_absent(self.row, found) else None

    async def _switch_off(self, request: GoogleRequest) -> bytes:
        try:
            return await self.send(request)
        except RemoteConflict as error:
            raise OperationRunning(str(error)) from error

    async def send(self, request: GoogleRequest, *, is_creation: bool = False) -> bytes:
        """The answer to a request that changes an object."""
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

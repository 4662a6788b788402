"""The kind IAMServiceAccountKey: location, comparison, and the verbs observe, create and delete.

The private key is in the answer to the creation alone. It goes into a Secret that is named like the resource, before
the key is on record; see `setpoint.engine.owners.issued_secret` for what becomes of a key whose answer was lost.
"""

import re
from collections.abc import Sequence
from dataclasses import field, replace
from http import HTTPStatus
from typing import ClassVar, Final

from msgspec import Struct

from setpoint.clients.google.client import GoogleClient
from setpoint.clients.response_bodies import decode_response
from setpoint.core.overlay import EffectiveState, effective_state
from setpoint.core.plan import PlannedWrite, PlanOptions
from setpoint.core.schema.policy import FieldPolicy
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.problems import Problems
from setpoint.engine.capabilities import IssuedSecret
from setpoint.engine.contention.operation_queue import OperationScope
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
    SecretKeyReference,
    Unchanged,
    Written,
)
from setpoint.engine.ports import Clock, SystemClock
from setpoint.engine.resource import SECRET, Resource, ResourceRef
from setpoint.engine.state import location_in
from setpoint.engine.tenancy.tenants import Tenant
from setpoint.errors import Bug, RemoteConflict, RemoteRefused, RemoteUnavailable
from setpoint.kind.spec_references import dependencies_in
from setpoint.kind.typed_spec import decode_spec, field_invalid
from setpoint.kinds.gcp.generic.equivalence import relative_name
from setpoint.kinds.gcp.generic.placement import recorded_location
from setpoint.kinds.gcp.service_account_key.live import (
    KEY_DECODER,
    LIST_DECODER,
    UPLOADED,
    KeyBody,
    LiveKey,
    key_call,
    present_key,
)
from setpoint.kinds.gcp.service_account_key.private_key import entry_of, has_secret, is_of, issued_entries
from setpoint.kinds.gcp.service_account_key.search import KeySearch, certificate_digest
from setpoint.kinds.gcp.service_account_key.spec import (
    CREDENTIALS_FILE,
    DEFAULT_ALGORITHM,
    GROUP,
    VERSION,
    X509_FILE,
    ServiceAccountKeySpec,
    ServiceAccountKeyStatus,
    ServiceAccountKeyTree,
)
from setpoint.kinds.gcp.shared.config_connector import (
    ANY_PROJECT,
    PROJECT_ANNOTATION,
    TenantProjects,
    definition_for,
)

_DEFINITION: Final = definition_for("IAMServiceAccountKey", ServiceAccountKeyStatus, "A key of a service account.")
_ACCOUNT_REF: Final = "spec.serviceAccountRef"
_EMAIL: Final = re.compile(r"[^@/\s]+@(?:(?P<project>[a-z0-9-]+)\.iam\.gserviceaccount\.com|[^@/\s]+)")
_ACCOUNT: Final = re.compile(r"projects/[^/]+/serviceAccounts/[^/]+")


@dataclass(slots=True)
class ServiceAccountKeyKind:
    """The kind IAMServiceAccountKey."""

    google: GoogleClient
    projects: TenantProjects = ANY_PROJECT
    clock: Clock = field(default_factory=SystemClock)
    group: str = GROUP
    version: str = VERSION
    name: str = "IAMServiceAccountKey"
    reconciliation: Reconciliation = Reconciliation.STATELESS
    revision: int = 1
    writes_through_clients: ClassVar = True
    # It writes Secrets, which no account of a namespace may do unless this kind is asked for.
    handled_when_named: ClassVar = True
    annotations: Sequence[str] = (PROJECT_ANNOTATION,)
    live_type: type[LiveKey] = LiveKey
    tree_type: type[Struct] = ServiceAccountKeyTree
    definition: CrdDetails = _DEFINITION
    # By location: the form in which the public key is read, where the spec asks for another one.
    forms: dict[Location, str] = field(default_factory=dict)

    def for_tenant(self, tenant: Tenant) -> "ServiceAccountKeyKind":
        """See SupportsTenants."""
        projects = TenantProjects(tenant)
        return replace(self, google=self.google.acting_for(projects.caller), projects=projects)

    # --- The spec -----------------------------------------------------------------------------------------------------

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that is invalid whatever the live state."""
        problems = Problems()
        problems.collect(self.dependencies, resource)
        spec = problems.collect(decode_spec, resource, ServiceAccountKeySpec)
        if spec is not None and spec.serviceAccountRef.external:
            problems.collect(self._account, resource, ResolvedReferences())
        problems.require_none()

    def dependencies(self, resource: Resource) -> Sequence[Dependency]:
        """The service account; and the Secret, whose changes are noticed."""
        spec = decode_spec(resource, ServiceAccountKeySpec)
        found = dependencies_in(spec, resource)
        if not has_secret(spec):
            return found
        secret = ResourceRef(*SECRET, resource.ref.namespace, resource.ref.name)
        return (*found, SecretKeyReference("status.privateKey", secret, entry_of(spec), is_optional=True))

    def generated_secret(self, resource: Resource) -> IssuedSecret | None:
        """See SupportsGeneratedSecret: named like the resource. There is none for a key that was not generated here."""
        spec = decode_spec(resource, ServiceAccountKeySpec)
        entry = entry_of(spec)
        if not has_secret(spec):
            return None
        return IssuedSecret(resource.ref.name, lambda entries, location: is_of(entries, entry, location))

    def locate(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """`projects/p/serviceAccounts/e/keys/k`; until the key is known, the search for it."""
        spec = decode_spec(resource, ServiceAccountKeySpec)
        collection = f"{self._account(resource, resolved)}/keys"
        if spec.resourceID:
            found = Location(f"{collection}/{spec.resourceID}")
        else:
            recorded = location_in(resource.status)
            is_same = recorded is not None and recorded.rpartition("/")[0] == collection
            is_stale = is_same and recorded is not None and _names_another(recorded, resource.uid)
            found = recorded if is_same and recorded and not is_stale else self.creation_location(resource, resolved)
        if spec.publicKeyType:
            self.forms[found] = spec.publicKeyType
        return found

    def creation_location(self, resource: Resource, resolved: ResolvedReferences) -> Location:
        """See SupportsServiceIds."""
        spec = decode_spec(resource, ServiceAccountKeySpec)
        if spec.resourceID:
            raise field_invalid(
                resource,
                "spec.resourceID",
                f" is {spec.resourceID!r}, and there is no such key. The service makes the ids of new ones: write the "
                "id of a key that exists, or leave the field out",
            )
        certificate = certificate_digest(spec.publicKeyData) if spec.publicKeyData else ""
        return KeySearch(f"{self._account(resource, resolved)}/keys", resource.uid, certificate).location

    def operation_scope(self, location: Location) -> OperationScope:
        """The service account: of its keys, one is created at a time, so that a lost answer is that of one key."""
        return OperationScope(location.rpartition("/keys/")[0])

    def declare(self, resource: Resource, resolved: ResolvedReferences) -> JsonObject:
        """The key as declared. Where its account and its id are is its location."""
        spec = decode_spec(resource, ServiceAccountKeySpec)
        found: dict[str, Json] = {}
        if spec.keyAlgorithm and spec.keyAlgorithm != "KEY_ALG_UNSPECIFIED":
            found["keyAlgorithm"] = spec.keyAlgorithm
        for name in ("privateKeyType", "publicKeyType"):
            if getattr(spec, name):
                found[name] = getattr(spec, name)
        if spec.publicKeyData:
            found["publicKeyData"] = certificate_digest(spec.publicKeyData)
        return {"spec": found}

    def view(self, live: LiveKey) -> JsonObject:
        """The live key in the terms of the spec."""
        certificate: JsonObject = {"publicKeyData": live.certificate} if live.certificate else {}
        return {"spec": {"keyAlgorithm": live.keyAlgorithm, **certificate}}

    def effective(
        self, spec: ServiceAccountKeyTree, live: ServiceAccountKeyTree | Missing, policy: FieldPolicy
    ) -> EffectiveState[ServiceAccountKeyTree]:
        """The spec: what it leaves out is as the service has it."""
        return effective_state(spec, live, policy)

    def sending(self, intent: Intent) -> PlanOptions:
        """All in one write."""
        return PlanOptions()

    def abandons(self, resource: Resource) -> bool:
        """Never: the spec has no deletion policy."""
        return False

    def _account(self, resource: Resource, resolved: ResolvedReferences) -> str:
        """The relative name of the service account. ProjectRefused for one that is not in the tenant's project."""
        target = resolved.resources.get(_ACCOUNT_REF)
        name = self._external(resource) if target is None else str(recorded_location(target))
        self.projects.require(name.split("/")[1], resource, _ACCOUNT_REF)
        return name

    def _external(self, resource: Resource) -> str:
        text = str(decode_spec(resource, ServiceAccountKeySpec).serviceAccountRef.external)
        found = _EMAIL.fullmatch(text.removeprefix("serviceAccount:"))
        if found is not None:
            return f"projects/{found['project'] or self.projects.of(resource)}/serviceAccounts/{found[0]}"
        name = relative_name(text).strip("/")
        if _ACCOUNT.fullmatch(name) is None:
            problem = f" is {text!r}: write the e-mail address of a service account"
            raise field_invalid(resource, f"{_ACCOUNT_REF}.external", problem)
        return name

    # --- The key ------------------------------------------------------------------------------------------------------

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[LiveKey] | Unchanged:
        """Reads the key, or searches for it: then it is one of the candidates."""
        search = KeySearch.parse(location)
        if search is None:
            return await self._read(location) or Absent()
        if search.certificate:
            return await self._uploaded(search)
        listed = await self._list(search)
        if not search.begun:
            return Absent(search.beginning(self.clock.now(), frozenset(one.id for one in listed)).location)
        lost = [one for one in listed if one.keyOrigin != UPLOADED and search.may_be(one.id, one.validAfterTime)]
        found = [await self._read(search.found(one.id)) for one in lost]
        return Absent(candidates=tuple(one for one in found if one is not None))

    async def _read(self, location: Location, form: str = "") -> Present[LiveKey] | None:
        form = form or self.forms.get(location, X509_FILE)
        body = await self.google.get(key_call(location, {"publicKeyType": form}))
        if body is None:
            return None
        found = decode_response(KEY_DECODER, body, location)
        if form != X509_FILE and found.keyOrigin == UPLOADED:
            # It is compared by its certificate, whatever form the status shows.
            whole = await self._read(location, X509_FILE)
            certificate = "" if whole is None else whole.live.certificate
            return present_key(found, location, certificate)
        return present_key(found, location)

    async def _uploaded(self, search: KeySearch) -> Absent | Present[LiveKey]:
        for one in await self._list(search):
            found = await self._read(search.found(one.id)) if one.keyOrigin == UPLOADED else None
            if found is not None and found.live.certificate == search.certificate:
                return found
        return Absent()

    async def _list(self, search: KeySearch) -> list[KeyBody]:
        """The keys of the account that are not the service's own; none when the account is not there."""
        body = await self.google.get(key_call(search.collection, {"keyTypes": "USER_MANAGED"}))
        return [] if body is None else decode_response(LIST_DECODER, body, search.collection).keys

    async def create(self, intent: Intent, wanted: JsonObject) -> Written[LiveKey]:
        """Has the service generate a key, or uploads the certificate of one."""
        search, spec = KeySearch.parse(intent.location), decode_spec(intent.resource, ServiceAccountKeySpec)
        assert search is not None, "a key with an id is never created"
        try:
            answer = await self._send_creation(search, spec)
        except RemoteConflict as error:
            # A key has no name of the caller's: there is none to be adopted.
            raise RemoteRefused(str(error), HTTPStatus.CONFLICT) from error
        found = decode_response(KEY_DECODER, answer, search.collection)
        location = search.found(found.id)
        if spec.publicKeyType:
            self.forms[location] = spec.publicKeyType
        if spec.publicKeyData:
            return Written(present_key(found, location, search.certificate))
        if not found.privateKeyData:
            await self.google.delete(key_call(location))
            # Not a refusal: the search for the key stays on record.
            raise RemoteUnavailable(f"{location} was created, and the answer has no private key: it was deleted again")
        return Written(present_key(found, location), issued=issued_entries(found, entry_of(spec)))

    async def _send_creation(self, search: KeySearch, spec: ServiceAccountKeySpec) -> bytes:
        if spec.publicKeyData:
            return await self.google.post(
                key_call(search.collection, method="upload"), {"publicKeyData": spec.publicKeyData}
            )
        body: Json = {
            "keyAlgorithm": spec.keyAlgorithm or DEFAULT_ALGORITHM,
            "privateKeyType": spec.privateKeyType or CREDENTIALS_FILE,
        }
        return await self.google.post(key_call(search.collection), body)

    async def update(self, intent: Intent, wanted: JsonObject, write: PlannedWrite, before: Present[LiveKey]) -> None:
        """Never called: no field can change."""
        raise Bug(f"{intent.location} cannot be updated")

    async def delete(self, location: Location, before: Present[LiveKey], resource: Resource) -> None:
        """Deletes the key."""
        await self.google.delete(key_call(before.location or location))

    async def poll(self, operation: RemoteOperation) -> bool:
        """The service has no operations."""
        return True


def _names_another(recorded: Location, uid: str) -> bool:
    """Whether a search on record is that of another resource, whose status was copied."""
    search = KeySearch.parse(recorded)
    return search is not None and search.uid != uid

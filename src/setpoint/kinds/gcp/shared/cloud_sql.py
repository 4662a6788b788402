"""What the Cloud SQL kinds share: the parent instance, secrets of a spec, operations."""

import re
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import GoogleClient
from setpoint.clients.google.operations import SqlOperation, sql_operation
from setpoint.clients.response_bodies import decode_response
from setpoint.core.plan import ProjectSource, ResolvedProject
from setpoint.core.schema.constraints import Matches
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.capabilities import ImportPlace, ListScope
from setpoint.engine.contention.operation_queue import OperationScope
from setpoint.engine.kind import Location, RemoteOperation, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid, RemoteUnavailable
from setpoint.kind.typed_spec import field_invalid
from setpoint.kinds.gcp.shared.config_connector import (
    INSTANCE_NAME,
    PROJECT_NAME,
    SpecReference,
    TenantProjects,
    relative_link,
    resource_id,
)

INSTANCE_REF: Final = "spec.instanceRef"
_INSTANCE_KIND: Final = ("sql.cnrm.cloud.google.com", "SQLInstance")
_INSTANCE: Final = re.compile(r"projects/([^/]+)/instances/([^/]+)")
_INSTANCE_FORMS: Final = "the instance's name, or projects/…/instances/…"
_OPERATION: Final = re.compile(r"projects/([^/]+)/operations/([A-Za-z0-9_-]+)")


class InstanceReference(SpecReference, frozen=True):
    """A reference to the instance that something is in."""

    external: Annotated[
        str | None | UnsetType,
        Matches(
            rf"(?:(?:.*/)?projects/{PROJECT_NAME.constraint.pattern}/instances/)?{INSTANCE_NAME.constraint.pattern}",
            _INSTANCE_FORMS,
        ),
    ] = UNSET
    """The name in the service, of an instance that is not a resource here."""


class _Engine(Struct, frozen=True):
    databaseVersion: str = ""


_engine: Final = msgspec.json.Decoder(_Engine)


@dataclass(frozen=True, slots=True)
class ParentInstance:
    """The instance that a database or a user is in."""

    project: ResolvedProject
    name: str

    @property
    def path(self) -> str:
        """`projects/p/instances/i`."""
        return f"projects/{self.project.project}/instances/{self.name}"


def parent_instance(
    ref: SpecReference, resource: Resource, resolved: ResolvedReferences, projects: TenantProjects
) -> ParentInstance:
    """The instance, in its own project, whatever project the resource itself names.

    ProjectRefused when it is in another project than the tenant's.
    """
    projects.require_own(resource)
    if INSTANCE_REF in resolved.resources:
        instance = resolved.resources[INSTANCE_REF]
        project = projects.resolve_target(INSTANCE_REF, instance, resource)
        return ParentInstance(project, resource_id(instance, INSTANCE_NAME))
    external = ref.external or ""
    if "/" not in external:
        return ParentInstance(projects.resolve(resource), _instance_name(external, external, resource))
    found = _INSTANCE.fullmatch(relative_link(external))
    if found is None or not PROJECT_NAME.allows(found[1]):
        raise _no_instance(external, resource)
    projects.require(found[1], resource, f"{INSTANCE_REF}.external")
    return ParentInstance(
        ResolvedProject(found[1], ProjectSource.REFERENCE), _instance_name(found[2], external, resource)
    )


def check_parent_instance(ref: SpecReference, resource: Resource, projects: TenantProjects) -> None:
    """ManifestInvalid for a reference that names no instance. Its project may still be missing: it may be on record."""
    external = ref.external or ""
    if "/" not in external and projects.find(resource) is None:
        _instance_name(external, external, resource)
    else:
        parent_instance(ref, resource, ResolvedReferences(), projects)


def _instance_name(name: str, external: str, resource: Resource) -> str:
    if not INSTANCE_NAME.allows(name):
        raise _no_instance(external, resource)
    return name


def _no_instance(external: str, resource: Resource) -> ManifestInvalid:
    problem = f" is {external!r}: write {_INSTANCE_FORMS}"
    return field_invalid(resource, f"{INSTANCE_REF}.external", problem)


def instances_at(place: ImportPlace) -> Sequence[ListScope]:
    """The lists of what is in instances: one for each instance of the project that is known."""
    names = (one.location for one in place.known if one.kind == _INSTANCE_KIND)
    return [ListScope(one) for one in dict.fromkeys(names) if one.startswith(f"projects/{place.project}/")]


def instance_scope(location: Location) -> OperationScope:
    """The instance in the location of one, or of a database or user in it."""
    return OperationScope("/".join(location.split("/")[:4]))


async def is_mysql(project: str, instance: str, google: GoogleClient) -> bool:
    """Whether the instance exists and runs MySQL."""
    body = await google.get(GoogleCall(GoogleService.SQL, ("projects", project, "instances", instance)))
    return body is not None and decode_response(_engine, body, f"instance {instance}").databaseVersion.startswith(
        "MYSQL"
    )


def pending_operation(operation: SqlOperation | None, project: str) -> RemoteOperation | None:
    """The operation to poll; None when the response says that it is done.

    RemoteUnavailable for a name that is none: it becomes a part of a path.
    """
    if operation is None or operation.is_done:
        return None
    found = f"projects/{project}/operations/{operation.name}"
    if _OPERATION.fullmatch(found) is None:
        raise RemoteUnavailable(f"the answer is not what it should be: {operation.name!r} is no name of an operation")
    return RemoteOperation(found)


async def is_operation_done(operation: str, google: GoogleClient) -> bool:
    """Whether `projects/p/operations/o` is done. An expired operation is: the next observation shows its result.

    So is a text that is no operation: the status of a resource may hold anything.
    """
    found = _OPERATION.fullmatch(operation)
    if found is None:
        return True
    body = await google.get(GoogleCall(GoogleService.SQL, ("projects", found[1], "operations", found[2])))
    return body is None or sql_operation(body).is_done

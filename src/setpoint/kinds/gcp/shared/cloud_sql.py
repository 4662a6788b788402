"""What the Cloud SQL kinds share: the parent instance, secrets of a spec, operations."""

import re
from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import GoogleClient, SqlOperation, sql_operation
from setpoint.clients.http import decode_response
from setpoint.engine.kind import RemoteOperation, ResolvedReferences, SecretKeyReference
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import RemoteUnavailable
from setpoint.kinds.gcp.shared.config_connector import (
    INSTANCE_NAME,
    PROJECT_NAME,
    SpecReference,
    TenantProjects,
    relative_link,
    resource_id,
)
from setpoint.kinds.typed_spec import SecretKeyRef, field_invalid

INSTANCE_REF: Final = "spec.instanceRef"
_INSTANCE: Final = re.compile(r"projects/([^/]+)/instances/([^/]+)")
_OPERATION: Final = re.compile(r"projects/([^/]+)/operations/([A-Za-z0-9_-]+)")


class _Engine(Struct, frozen=True):
    databaseVersion: str = ""


_engine: Final = msgspec.json.Decoder(_Engine)


def parent_instance(
    ref: SpecReference, resource: Resource, resolved: ResolvedReferences, projects: TenantProjects
) -> str:
    """`projects/p/instances/i`, in the project of the instance, whatever project the resource itself names.

    ProjectRefused when it is in another project than the tenant's.
    """
    projects.require_own(resource)
    if INSTANCE_REF in resolved.resources:
        instance = resolved.resources[INSTANCE_REF]
        project = projects.of_target(INSTANCE_REF, instance, resource)
        return f"projects/{project}/instances/{resource_id(instance, INSTANCE_NAME)}"
    external = ref.external or ""
    link = relative_link(external) if "/" in external else f"projects/{projects.of(resource)}/instances/{external}"
    found = _INSTANCE.fullmatch(link)
    if found is None or not (PROJECT_NAME.allows(found[1]) and INSTANCE_NAME.allows(found[2])):
        problem = f" is {external!r}: write the instance's name, or projects/…/instances/…"
        raise field_invalid(resource, f"{INSTANCE_REF}.external", problem)
    projects.require(found[1], resource, f"{INSTANCE_REF}.external")
    return link


def secret_dependency(
    at: str, value: object, where: SecretKeyRef | None, resource: Resource
) -> SecretKeyReference | None:
    """The Secret key that the field `at` refers to; None for a value in the manifest itself."""
    if isinstance(value, str) == (where is not None):
        raise field_invalid(resource, at, " needs value or valueFrom, and not both: write one of them")
    if where is None:
        return None
    return SecretKeyReference(at, ResourceRef("", "Secret", resource.ref.namespace, where.name), where.key)


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

"""What the kinds of Cloud SQL share: the instance that something is in, and operations."""

import re
from typing import Final

from setpoint.clients.google import Call, GoogleClient, Service
from setpoint.clients.google_operations import SqlOperation, sql_operation
from setpoint.engine.kind import Operation, Resolved
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid
from setpoint.kinds.config_connector import Ref, project_of, relative, resource_id

INSTANCE: Final = "spec.instanceRef"
_INSTANCE: Final = re.compile(r"projects/[^/]+/instances/[^/]+")


def parent_instance(ref: Ref, resource: Resource, resolved: Resolved) -> str:
    """`projects/p/instances/i`: the instance's own project counts, for that is where everything in it is."""
    if INSTANCE in resolved.resources:
        instance = resolved.resources[INSTANCE]
        return f"projects/{project_of(instance)}/instances/{resource_id(instance)}"
    external = ref.external
    assert isinstance(external, str)
    found = relative(external) if "/" in external else f"projects/{project_of(resource)}/instances/{external}"
    if _INSTANCE.fullmatch(found) is None:
        raise ManifestInvalid(
            f"{resource.ref}: {INSTANCE}.external is {external!r}: write the instance's name, or projects/…/instances/…"
        )
    return found


def to_wait_for(operation: SqlOperation | None, project: str) -> Operation | None:
    """The operation to wait for; None when the answer says that it is done already."""
    if operation is None or operation.is_done:
        return None
    return Operation(f"projects/{project}/operations/{operation.name}")


async def is_over(operation: str, google: GoogleClient) -> bool:
    """Whether `projects/p/operations/o` is done; one no longer on record is, and the next look tells how it ended."""
    body = await google.get(Call(Service.SQL, tuple(operation.split("/"))))
    return body is None or sql_operation(body).is_done

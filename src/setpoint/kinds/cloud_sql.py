"""What the kinds of Cloud SQL share: the instance that something is in, and operations."""

import re
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from setpoint.clients.google import Call, GoogleClient, Service, decoded
from setpoint.clients.google_operations import SqlOperation, sql_operation
from setpoint.engine.kind import Operation, Resolved, SecretKey
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import ManifestInvalid
from setpoint.kinds.config_connector import Ref, project_of, relative, resource_id

INSTANCE: Final = "spec.instanceRef"
_INSTANCE: Final = re.compile(r"projects/[^/]+/instances/[^/]+")


class _Engine(Struct, frozen=True):
    databaseVersion: str = ""


_engine: Final = msgspec.json.Decoder(_Engine)


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


class KeyInSecret(Protocol):
    """A key of a Secret, as authors write it."""

    @property
    def name(self) -> str: ...
    @property
    def key(self) -> str: ...


def secret_need(at: str, value: object, where: KeyInSecret | None, resource: Resource) -> SecretKey | None:
    """The key that the secret in the field `at` is under; None for one that is written out."""
    if isinstance(value, str) == (where is not None):
        raise ManifestInvalid(f"{resource.ref}: {at} needs value or valueFrom, and not both: write one of them")
    if where is None:
        return None
    return SecretKey(at, ResourceRef("", "Secret", resource.ref.namespace, where.name), where.key)


async def is_mysql(project: str, instance: str, google: GoogleClient) -> bool:
    """Whether the instance is one of MySQL; one that is not there is not."""
    body = await google.get(Call(Service.SQL, ("projects", project, "instances", instance)))
    return body is not None and decoded(_engine, body, f"instance {instance}").databaseVersion.startswith("MYSQL")


def to_wait_for(operation: SqlOperation | None, project: str) -> Operation | None:
    """The operation to wait for; None when the answer says that it is done already."""
    if operation is None or operation.is_done:
        return None
    return Operation(f"projects/{project}/operations/{operation.name}")


async def is_over(operation: str, google: GoogleClient) -> bool:
    """Whether `projects/p/operations/o` is done; one no longer on record is, and the next look tells how it ended."""
    body = await google.get(Call(Service.SQL, tuple(operation.split("/"))))
    return body is None or sql_operation(body).is_done

"""The operation that makes an instance, for somebody who does not know its name."""

from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.google import GoogleClient, decoded
from setpoint.clients.google_operations import SqlOperation
from setpoint.errors import OperationRunning
from setpoint.kinds.gcp.sql_instance.names import operations_call

_CREATING: Final = frozenset({"CREATE", "CREATE_REPLICA", "CLONE"})


class _Operations(Struct, frozen=True):
    items: list[SqlOperation] = []


_decoder: Final = msgspec.json.Decoder(_Operations)


async def creation_of(project: str, instance: str, google: GoogleClient) -> SqlOperation:
    """The last operation that made the instance, or is about to; OperationRunning while there is none to be seen."""
    body = await google.get(operations_call(project, instance))
    found = [] if body is None else decoded(_decoder, body, f"the operations of {instance}").items
    for operation in found:
        if operation.operation_type in _CREATING:
            return operation
    raise OperationRunning(f"instance {instance} is still being made")

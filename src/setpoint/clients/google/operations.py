"""Long-running operations of Cloud SQL, as responses show them."""

from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.response_bodies import decode_response
from setpoint.errors import RemoteRefused


class _OperationError(Struct):
    code: str = ""
    message: str = ""


class _OperationErrors(Struct):
    errors: list[_OperationError] = []


class SqlOperation(Struct, rename="camel"):
    """The fields of an operation that say whether it has ended, and how."""

    name: str
    status: str
    operation_type: str = ""
    target_id: str = ""
    error: _OperationErrors | None = None

    @property
    def is_done(self) -> bool:
        """Whether the operation has succeeded; RemoteRefused when it has failed."""
        if self.status != "DONE":
            return False
        if self.error is not None:
            problems = "; ".join(f"{one.code}: {one.message}" for one in self.error.errors) or "it does not say why"
            raise RemoteRefused(f"operation {self.operation_type} on {self.target_id} failed: {problems}")
        return True


_operation_decoder: Final = msgspec.json.Decoder(SqlOperation)


def sql_operation(body: bytes) -> SqlOperation:
    """The operation in a response."""
    return decode_response(_operation_decoder, body, "an operation")

"""Cloud SQL's long-running operations: what the answer to a write says about the work that follows."""

from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.google import decoded
from setpoint.errors import RemoteRefused


class _Problem(Struct):
    code: str = ""
    message: str = ""


class _Problems(Struct):
    errors: list[_Problem] = []


class SqlOperation(Struct, rename="camel"):
    """An operation, cut to what decides how to go on."""

    name: str
    status: str
    operation_type: str = ""
    target_id: str = ""
    error: _Problems | None = None

    @property
    def is_done(self) -> bool:
        """Whether the work is over and done; RemoteRefused when it is over and failed."""
        if self.status != "DONE":
            return False
        if self.error is not None:
            told = "; ".join(f"{one.code}: {one.message}" for one in self.error.errors) or "it does not say why"
            raise RemoteRefused(f"operation {self.operation_type} on {self.target_id} failed: {told}")
        return True


_decoder: Final = msgspec.json.Decoder(SqlOperation)


def sql_operation(body: bytes) -> SqlOperation:
    """The operation in an answer."""
    return decoded(_decoder, body, "an operation")

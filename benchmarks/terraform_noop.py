"""A provider with one resource that is nowhere: what any provider of this framework takes. `python -m` starts it."""

from setpoint.terraform.calls import Call, Stored
from setpoint.terraform.cty_types import STRING
from setpoint.terraform.cty_values import Values
from setpoint.terraform.provider import CreateRequest, ManagedResource, Offer, Provider, UpdateRequest
from setpoint.terraform.schema import Attribute, Presence, Schema
from setpoint.terraform.server import serve


class NoObject(ManagedResource):
    """It is as it was written, always."""

    schema = Schema(attributes={"yaml_body": Attribute(type=STRING, presence=Presence.REQUIRED)})

    async def validate(self, config: Values, call: Call) -> None:
        """See ManagedResource."""

    async def read(self, stored: Stored, call: Call) -> Stored | None:
        """See ManagedResource."""
        return stored

    async def create(self, request: CreateRequest, call: Call) -> Stored:
        """See ManagedResource."""
        return Stored(request.planned, request.private)

    async def update(self, request: UpdateRequest, call: Call) -> Stored:
        """See ManagedResource."""
        return Stored(request.planned, request.private)

    async def delete(self, prior: Stored, call: Call) -> None:
        """See ManagedResource."""


class NoProvider(Provider):
    """Nothing to configure."""

    schema = Schema(attributes={})

    def __init__(self) -> None:
        self.resources = {"noop_object": Offer[ManagedResource].of(NoObject())}
        self.data_sources = {}
        self.functions = {}

    async def validate(self, config: Values, call: Call) -> None:
        """See Provider."""

    async def configure(self, config: Values, call: Call) -> None:
        """See Provider."""


if __name__ == "__main__":
    serve(NoProvider())

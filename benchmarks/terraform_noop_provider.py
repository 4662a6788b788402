"""A provider with one resource that does nothing: the cost of the framework alone. `python -m` starts it."""

from setpoint.terraform.cty.types import STRING
from setpoint.terraform.cty.values import AttributeValues
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.provider import CreateRequest, ManagedResource, Provider, Registration, UpdateRequest
from setpoint.terraform.framework.schema import Attribute, Presence, TerraformSchema
from setpoint.terraform.rpc.server import serve


class NoopObject(ManagedResource):
    """A resource whose state is always its configuration."""

    schema = TerraformSchema(attributes={"yaml_body": Attribute(type=STRING, presence=Presence.REQUIRED)})

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """See ManagedResource."""

    async def read(self, stored: InstanceState, call: CallContext) -> InstanceState | None:
        """See ManagedResource."""
        return stored

    async def create(self, request: CreateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        return InstanceState(request.planned, request.private)

    async def update(self, request: UpdateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        return InstanceState(request.planned, request.private)

    async def delete(self, prior: InstanceState, call: CallContext) -> None:
        """See ManagedResource."""


class NoopProvider(Provider):
    """A provider without configuration."""

    schema = TerraformSchema(attributes={})

    def __init__(self) -> None:
        self.resources = {"noop_object": Registration[ManagedResource].of(NoopObject())}
        self.data_sources = {}
        self.functions = {}

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """See Provider."""

    async def configure(self, config: AttributeValues, call: CallContext) -> None:
        """See Provider."""


if __name__ == "__main__":
    serve(NoopProvider())

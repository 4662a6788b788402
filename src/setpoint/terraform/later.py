"""Resources and data sources that are loaded when something is asked of them: most starts only tell their schemas."""

from collections.abc import Callable
from functools import cached_property

from setpoint.terraform.calls import Call, Stored
from setpoint.terraform.cty_values import Values
from setpoint.terraform.provider import (
    CreateRequest,
    DataSource,
    ManagedResource,
    Planned,
    PlanRequest,
    UpdateRequest,
)
from setpoint.terraform.schema import Schema


class LaterResource(ManagedResource):
    """A resource of which no more than its schema is at hand."""

    def __init__(self, schema: Schema, load: Callable[[], ManagedResource]) -> None:
        self._schema = schema
        self._load = load

    @property
    def schema(self) -> Schema:
        """See ManagedResource."""
        return self._schema

    @cached_property
    def _resource(self) -> ManagedResource:
        return self._load()

    async def validate(self, config: Values, call: Call) -> None:
        """See ManagedResource."""
        await self._resource.validate(config, call)

    async def read(self, stored: Stored, call: Call) -> Stored | None:
        """See ManagedResource."""
        return await self._resource.read(stored, call)

    async def plan(self, request: PlanRequest, call: Call) -> Planned:
        """See ManagedResource."""
        return await self._resource.plan(request, call)

    async def plan_deletion(self, prior: Stored, call: Call) -> bytes:
        """See ManagedResource."""
        return await self._resource.plan_deletion(prior, call)

    async def create(self, request: CreateRequest, call: Call) -> Stored:
        """See ManagedResource."""
        return await self._resource.create(request, call)

    async def update(self, request: UpdateRequest, call: Call) -> Stored:
        """See ManagedResource."""
        return await self._resource.update(request, call)

    async def delete(self, prior: Stored, call: Call) -> None:
        """See ManagedResource."""
        await self._resource.delete(prior, call)

    async def adopt(self, identifier: str, call: Call) -> Stored:
        """See ManagedResource."""
        return await self._resource.adopt(identifier, call)


class LaterSource(DataSource):
    """A data source likewise."""

    def __init__(self, schema: Schema, load: Callable[[], DataSource]) -> None:
        self._schema = schema
        self._load = load

    @property
    def schema(self) -> Schema:
        """See DataSource."""
        return self._schema

    @cached_property
    def _source(self) -> DataSource:
        return self._load()

    async def validate(self, config: Values, call: Call) -> None:
        """See DataSource."""
        await self._source.validate(config, call)

    async def read(self, config: Values, call: Call) -> Values:
        """See DataSource."""
        return await self._source.read(config, call)

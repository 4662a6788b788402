"""The interfaces of a provider: resources, data sources and functions, each with a schema and async methods.

A method gets a typed request and the `CallContext` of the RPC. It returns its result, or raises `DiagnosticsError` or
any `SetpointError`. Values are those of `cty.values`; every attribute of the schema is present.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from setpoint.core.values.json_types import Json
from setpoint.terraform.cty.types import CtyType
from setpoint.terraform.cty.values import AttributePath, AttributeValues, CtyValue
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.diagnostics import DiagnosticsError, error
from setpoint.terraform.framework.schema import TerraformSchema


class PlanRequest(msgspec.Struct, frozen=True):
    """A change to be planned. Without a prior state, a creation."""

    config: AttributeValues
    prior: AttributeValues | None
    # The configuration, and where it is silent what was there, or Unknown where that may change.
    proposed: AttributeValues
    private: bytes = b""


class PlanResponse(msgspec.Struct, frozen=True):
    """What will be, with Unknown for what apply brings; and the attributes whose change takes a new object."""

    state: AttributeValues
    requires_replace: Sequence[AttributePath] = ()
    private: bytes = b""


class CreateRequest(msgspec.Struct, frozen=True):
    """An object to be made as planned. Write-only attributes are in the configuration alone."""

    config: AttributeValues
    planned: AttributeValues
    private: bytes = b""


class UpdateRequest(msgspec.Struct, frozen=True):
    """An object to be changed as planned."""

    config: AttributeValues
    prior: AttributeValues
    planned: AttributeValues
    private: bytes = b""


class ManagedResource(Protocol):
    """A sort of object that Terraform makes, changes and deletes."""

    @property
    def schema(self) -> TerraformSchema:
        """What its configuration may say."""

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """Refuses what cannot be, as far as it is known yet."""

    @abstractmethod
    async def read(self, stored: InstanceState, call: CallContext) -> InstanceState | None:
        """How the object is now; None when it is gone."""

    async def plan(self, request: PlanRequest, call: CallContext) -> PlanResponse:
        """What applying the configuration will give."""
        return PlanResponse(request.proposed, private=request.private)

    async def plan_deletion(self, prior: InstanceState, call: CallContext) -> bytes:
        """What `delete` is to find as private bytes."""
        return prior.private

    @abstractmethod
    async def create(self, request: CreateRequest, call: CallContext) -> InstanceState:
        """Makes the object. Once it may be there, `call.keep` says so: whatever comes then, it is in the state."""

    @abstractmethod
    async def update(self, request: UpdateRequest, call: CallContext) -> InstanceState:
        """Changes the object. What fails leaves the prior state, or what `call.keep` was told."""

    @abstractmethod
    async def delete(self, prior: InstanceState, call: CallContext) -> None:
        """Deletes the object; one that is gone already is no error."""

    async def import_state(self, identifier: str, call: CallContext) -> InstanceState:
        """What `terraform import` starts from; it is read next."""
        raise DiagnosticsError(error("This resource cannot be imported"))

    async def upgrade(self, state: Mapping[str, Json], version: int, call: CallContext) -> AttributeValues:
        """A state that was stored by an earlier version of the schema, in the form of this one."""
        raise DiagnosticsError(
            error(f"Version {version} of this state cannot be read by version {self.schema.version}")
        )


class DataSource(Protocol):
    """A sort of thing that Terraform only looks at."""

    @property
    def schema(self) -> TerraformSchema:
        """What its configuration may say, and what is found."""

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """Refuses what cannot be, as far as it is known yet."""

    @abstractmethod
    async def read(self, config: AttributeValues, call: CallContext) -> AttributeValues:
        """The configuration, and what was found."""


class HasSchema(Protocol):
    """Whatever a configuration has words for."""

    @property
    def schema(self) -> TerraformSchema:
        """These words."""


SchemaT = TypeVar("SchemaT", bound=HasSchema)


class Registration(Generic[SchemaT]):
    """A resource or data source by its schema. What does the work is loaded when something is asked of it.

    Terraform starts a provider several times for a command, and in most of them asks for schemas alone.
    """

    def __init__(self, schema: TerraformSchema, load: Callable[[], SchemaT]) -> None:
        self.schema: Final = schema
        self._load = load

    @cached_property
    def loaded(self) -> SchemaT:
        """What does the work."""
        return self._load()

    @staticmethod
    def of(one: SchemaT) -> "Registration[SchemaT]":
        """What is at hand already."""
        return Registration(one.schema, lambda: one)


class FunctionParameter(msgspec.Struct, frozen=True, kw_only=True):
    """What a function wants to be told."""

    name: str
    type: CtyType
    description: str = ""
    allow_null: bool = False
    allow_unknown: bool = False


class FunctionFailed(Exception):
    """A function that has no result. `argument` is the place of the one that is wrong, if it is one."""

    def __init__(self, message: str, argument: int | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class ProviderFunction(Protocol):
    """A function for expressions: the same arguments always give the same result."""

    parameters: Sequence[FunctionParameter]
    # Any number of further arguments, when there is one.
    variadic: FunctionParameter | None
    returns: CtyType
    summary: str

    @abstractmethod
    async def call(self, arguments: Sequence[CtyValue], call: CallContext) -> CtyValue:
        """The result; FunctionFailed when there is none."""


class Provider(Protocol):
    """Resources, data sources and functions under one configuration."""

    @property
    def schema(self) -> TerraformSchema:
        """What the block `provider` may say."""

    # By the names that configurations use.
    resources: Mapping[str, Registration[ManagedResource]]
    data_sources: Mapping[str, Registration[DataSource]]
    functions: Mapping[str, ProviderFunction]

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """Refuses what cannot be, as far as it is known yet."""

    @abstractmethod
    async def configure(self, config: AttributeValues, call: CallContext) -> None:
        """Gets ready; called once, before anything is read or changed. Values may still be Unknown in a plan."""

"""The interfaces of a provider: resources, data sources, ephemeral resources and functions.

A method gets a typed request and the `CallContext` of the RPC. It returns its result, or raises `DiagnosticsError` or
any `SetpointError`. Values are those of `cty.values`; every attribute of the schema is present.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from setpoint.core.values.json_types import Json
from setpoint.core.values.messages import Vocabulary
from setpoint.terraform.cty.types import CtyType
from setpoint.terraform.cty.values import AttributePath, AttributeValues, CtyValue
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.diagnostics import DiagnosticsError, error
from setpoint.terraform.framework.hidden_texts import NO_TEXTS, HiddenTexts
from setpoint.terraform.framework.schema import TerraformSchema


class PlanRequest(msgspec.Struct, frozen=True):
    """A change to plan; without a prior state, a create."""

    config: AttributeValues
    prior: AttributeValues | None
    # The configuration; an attribute that it leaves out has its prior value, or is unknown where that may change.
    proposed: AttributeValues
    private: bytes = b""


class PlanResponse(msgspec.Struct, frozen=True):
    """The planned state, with unknown values for what apply sets; and the attributes that require replacement."""

    state: AttributeValues
    requires_replace: Sequence[AttributePath] = ()
    private: bytes = b""


class CreateRequest(msgspec.Struct, frozen=True):
    """An object to create as planned. Write-only attributes are in the configuration only."""

    config: AttributeValues
    planned: AttributeValues
    private: bytes = b""


class UpdateRequest(msgspec.Struct, frozen=True):
    """An object to update as planned."""

    config: AttributeValues
    prior: AttributeValues
    planned: AttributeValues
    private: bytes = b""


class MovedState(msgspec.Struct, frozen=True):
    """The state of a resource that a `moved` block turns into one of another type.

    The address is whole in Terraform, `registry.terraform.io/hashicorp/kubernetes`, and may be a bare name in OpenTofu.
    """

    provider_address: str
    type_name: str
    schema_version: int
    state: Mapping[str, Json]


class HasSchema(Protocol):
    """What resources, data sources and ephemeral resources have in common: a schema, and its configuration."""

    @property
    def schema(self) -> TerraformSchema:
        """The schema of its configuration, and of its state or result."""

    def hidden_texts(self, values: AttributeValues) -> HiddenTexts:
        """What no diagnostic of a call with this configuration or state may repeat."""
        return NO_TEXTS

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """Raises DiagnosticsError for an invalid configuration. Unknown values are not judged."""


class ManagedResource(HasSchema, Protocol):
    """A resource type: Terraform creates, updates and deletes its objects."""

    @abstractmethod
    async def read(self, stored: InstanceState, call: CallContext) -> InstanceState | None:
        """The refreshed state; None when the object does not exist any more."""

    async def plan(self, request: PlanRequest, call: CallContext) -> PlanResponse:
        """The state that applying the configuration will give."""
        return PlanResponse(request.proposed, private=request.private)

    async def plan_deletion(self, prior: InstanceState, call: CallContext) -> bytes:
        """The private bytes that `delete` gets."""
        return prior.private

    @abstractmethod
    async def create(self, request: CreateRequest, call: CallContext) -> InstanceState:
        """Creates the object. Once it may exist, `call.save_state` keeps it in the state even after a failure."""

    @abstractmethod
    async def update(self, request: UpdateRequest, call: CallContext) -> InstanceState:
        """Updates the object. A failure leaves the prior state, or the last one given to `call.save_state`."""

    @abstractmethod
    async def delete(self, prior: InstanceState, call: CallContext) -> None:
        """Deletes the object; it is no error if it does not exist."""

    async def import_state(self, identifier: str, call: CallContext) -> InstanceState:
        """The state from which `terraform import` starts; Terraform calls `read` next."""
        raise DiagnosticsError(error("This resource cannot be imported"))

    async def move_state(self, source: MovedState, call: CallContext) -> InstanceState:
        """The state of a resource of another type as one of this type; Terraform calls `read` next."""
        raise DiagnosticsError(
            error(
                f"{source.type_name} cannot be moved here",
                "This resource does not take over the state of that one. Import the object instead.",
            )
        )

    async def upgrade(self, state: Mapping[str, Json], version: int, call: CallContext) -> AttributeValues:
        """A state that was stored with an earlier version of the schema, converted to the current one."""
        raise DiagnosticsError(
            error(f"Version {version} of this state cannot be read by version {self.schema.version}")
        )


class DataSource(HasSchema, Protocol):
    """A data source: Terraform only reads it."""

    @abstractmethod
    async def read(self, config: AttributeValues, call: CallContext) -> AttributeValues:
        """The configuration, with the computed attributes filled in."""


class EphemeralResource(HasSchema, Protocol):
    """An ephemeral resource: its values are there while Terraform runs, and are never stored."""

    @abstractmethod
    async def open(self, config: AttributeValues, call: CallContext) -> AttributeValues:
        """The configuration, with the computed attributes filled in."""


SchemaT = TypeVar("SchemaT", bound=HasSchema)


class Registration(Generic[SchemaT]):
    """A resource, data source or ephemeral resource: its schema, and its implementation, imported on first use.

    Terraform starts a provider several times per command, and most of these processes only serve schemas.
    """

    def __init__(self, schema: TerraformSchema, load: Callable[[], SchemaT]) -> None:
        self.schema: Final = schema
        self._load = load

    @cached_property
    def loaded(self) -> SchemaT:
        """The implementation."""
        return self._load()

    @staticmethod
    def of(implementation: SchemaT) -> "Registration[SchemaT]":
        """The registration of an implementation that is imported already."""
        return Registration(implementation.schema, lambda: implementation)


class FunctionParameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter of a function."""

    name: str
    type: CtyType
    description: str = ""
    allow_null: bool = False
    allow_unknown: bool = False


class FunctionFailed(Exception):
    """A function call that failed. `argument` is the position of the argument at fault, if there is one."""

    def __init__(self, message: str, argument: int | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class ProviderFunction(Protocol):
    """A function for expressions. It is pure: the same arguments always give the same result."""

    parameters: Sequence[FunctionParameter]
    # The parameter of any number of further arguments; None when there may be none.
    variadic: FunctionParameter | None
    returns: CtyType
    summary: str

    @abstractmethod
    async def call(self, arguments: Sequence[CtyValue], call: CallContext) -> CtyValue:
        """The result; FunctionFailed when there is none."""


class Provider(Protocol):
    """Resources, data sources, ephemeral resources and functions under one configuration."""

    @property
    def schema(self) -> TerraformSchema:
        """The schema of the block `provider`."""

    # By type name, as in a configuration.
    resources: Mapping[str, Registration[ManagedResource]]
    data_sources: Mapping[str, Registration[DataSource]]
    ephemeral_resources: Mapping[str, Registration[EphemeralResource]] = MappingProxyType({})
    functions: Mapping[str, ProviderFunction]
    # Words the messages of SetpointErrors.
    vocabulary: Vocabulary = str

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """Raises DiagnosticsError for an invalid configuration. Unknown values are not judged."""

    @abstractmethod
    async def configure(self, config: AttributeValues, call: CallContext) -> None:
        """Called once, before any resource is read or changed. In a plan, values may be unknown."""

    def shut_down(self) -> None:
        """Called when Terraform has all answers and ends the provider. Not called when Terraform was killed."""
        return

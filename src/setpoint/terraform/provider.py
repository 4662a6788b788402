"""What a provider is made of: plain classes with a schema and async verbs.

A verb gets a typed request and the `Call` that it answers. It returns what it has to give, or raises: `Refused` with
diagnostics, or any error of ours. Values are those of `cty_values`, complete by their schema.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from setpoint.core.values import Json
from setpoint.terraform.attribute_path import Path
from setpoint.terraform.calls import Call, Stored
from setpoint.terraform.cty_types import Type
from setpoint.terraform.cty_values import Value, Values
from setpoint.terraform.diagnostics import Refused, error
from setpoint.terraform.schema import Schema


class PlanRequest(msgspec.Struct, frozen=True):
    """A change to be planned. Without a prior state, a creation."""

    config: Values
    prior: Values | None
    # The configuration, and where it is silent what was there, or Unknown where that may change.
    proposed: Values
    private: bytes = b""


class Planned(msgspec.Struct, frozen=True):
    """What will be, with Unknown for what apply brings; and the attributes whose change takes a new object."""

    state: Values
    replaced_by: Sequence[Path] = ()
    private: bytes = b""


class CreateRequest(msgspec.Struct, frozen=True):
    """An object to be made as planned. Write-only attributes are in the configuration alone."""

    config: Values
    planned: Values
    private: bytes = b""


class UpdateRequest(msgspec.Struct, frozen=True):
    """An object to be changed as planned."""

    config: Values
    prior: Values
    planned: Values
    private: bytes = b""


class ManagedResource(Protocol):
    """A sort of object that Terraform makes, changes and deletes."""

    @property
    def schema(self) -> Schema:
        """What its configuration may say."""

    async def validate(self, config: Values, call: Call) -> None:
        """Refuses what cannot be, as far as it is known yet."""

    @abstractmethod
    async def read(self, stored: Stored, call: Call) -> Stored | None:
        """How the object is now; None when it is gone."""

    async def plan(self, request: PlanRequest, call: Call) -> Planned:
        """What applying the configuration will give."""
        return Planned(request.proposed, private=request.private)

    async def plan_deletion(self, prior: Stored, call: Call) -> bytes:
        """What `delete` is to find as private bytes."""
        return prior.private

    @abstractmethod
    async def create(self, request: CreateRequest, call: Call) -> Stored:
        """Makes the object. Once it may be there, `call.keep` says so: whatever comes then, it is in the state."""

    @abstractmethod
    async def update(self, request: UpdateRequest, call: Call) -> Stored:
        """Changes the object. What fails leaves the prior state, or what `call.keep` was told."""

    @abstractmethod
    async def delete(self, prior: Stored, call: Call) -> None:
        """Deletes the object; one that is gone already is no error."""

    async def adopt(self, identifier: str, call: Call) -> Stored:
        """What `terraform import` starts from; it is read next."""
        raise Refused(error("This resource cannot be imported"))

    async def upgrade(self, state: Mapping[str, Json], version: int, call: Call) -> Values:
        """A state that was stored by an earlier version of the schema, in the form of this one."""
        raise Refused(error(f"Version {version} of this state cannot be read by version {self.schema.version}"))


class DataSource(Protocol):
    """A sort of thing that Terraform only looks at."""

    @property
    def schema(self) -> Schema:
        """What its configuration may say, and what is found."""

    async def validate(self, config: Values, call: Call) -> None:
        """Refuses what cannot be, as far as it is known yet."""

    @abstractmethod
    async def read(self, config: Values, call: Call) -> Values:
        """The configuration, and what was found."""


class HasSchema(Protocol):
    """Whatever a configuration has words for."""

    @property
    def schema(self) -> Schema:
        """These words."""


Sort = TypeVar("Sort", bound=HasSchema)


class Offer(Generic[Sort]):
    """A resource or data source by its schema. What does the work is loaded when something is asked of it.

    Terraform starts a provider several times for a command, and in most of them asks for schemas alone.
    """

    def __init__(self, schema: Schema, load: Callable[[], Sort]) -> None:
        self.schema: Final = schema
        self._load = load

    @cached_property
    def loaded(self) -> Sort:
        """What does the work."""
        return self._load()

    @staticmethod
    def of(one: Sort) -> "Offer[Sort]":
        """What is at hand already."""
        return Offer(one.schema, lambda: one)


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """What a function wants to be told."""

    name: str
    type: Type
    description: str = ""
    takes_null: bool = False
    takes_unknown: bool = False


class FunctionFailed(Exception):
    """A function that has no result. `argument` is the place of the one that is wrong, if it is one."""

    def __init__(self, message: str, argument: int | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class Function(Protocol):
    """A function for expressions: the same arguments always give the same result."""

    parameters: Sequence[Parameter]
    # Any number of further arguments, when there is one.
    variadic: Parameter | None
    returns: Type
    summary: str

    @abstractmethod
    async def call(self, arguments: Sequence[Value], call: Call) -> Value:
        """The result; FunctionFailed when there is none."""


class Provider(Protocol):
    """Resources, data sources and functions under one configuration."""

    @property
    def schema(self) -> Schema:
        """What the block `provider` may say."""

    # By the names that configurations use.
    resources: Mapping[str, Offer[ManagedResource]]
    data_sources: Mapping[str, Offer[DataSource]]
    functions: Mapping[str, Function]

    async def validate(self, config: Values, call: Call) -> None:
        """Refuses what cannot be, as far as it is known yet."""

    @abstractmethod
    async def configure(self, config: Values, call: Call) -> None:
        """Gets ready; called once, before anything is read or changed. Values may still be Unknown in a plan."""

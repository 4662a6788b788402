"""A provider whose objects are files, with a resource, a data source and a function."""

from collections.abc import Sequence
from pathlib import Path

from setpoint.terraform.cty.json_trees import to_untyped
from setpoint.terraform.cty.types import BOOL, DYNAMIC, NUMBER, STRING
from setpoint.terraform.cty.values import AttributeValues, CtyValue, Dynamic
from setpoint.terraform.framework.call import CallContext
from setpoint.terraform.framework.diagnostics import DiagnosticsError, error
from setpoint.terraform.framework.provider import (
    DataSource,
    FunctionFailed,
    FunctionParameter,
    ManagedResource,
    Provider,
    ProviderFunction,
    Registration,
)
from setpoint.terraform.framework.schema import Attribute, Presence, TerraformSchema
from tests.terraform.probe.object_files import ObjectFiles
from tests.terraform.probe.thing import TYPE, Thing


class Lookup(DataSource):
    """Whether there is a thing of some name."""

    schema = TerraformSchema(
        attributes={
            "name": Attribute(type=STRING, presence=Presence.REQUIRED),
            "found": Attribute(type=BOOL, presence=Presence.COMPUTED),
            "size": Attribute(type=NUMBER, presence=Presence.COMPUTED),
        }
    )

    def __init__(self, provider: "ProbeProvider") -> None:
        self._provider = provider

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """See DataSource."""
        if config["name"] == "":
            raise DiagnosticsError(error("A thing has a name", path=("name",)))

    async def read(self, config: AttributeValues, call: CallContext) -> AttributeValues:
        """See DataSource."""
        found = self._provider.objects().get(str(config["name"]), TYPE)
        return {**config, "found": found is not None, "size": None if found is None else found["size"]}


class Describe(ProviderFunction):
    """A function that describes a value."""

    parameters = (FunctionParameter(name="value", type=DYNAMIC, allow_null=True),)
    variadic = FunctionParameter(name="more", type=STRING)
    returns = STRING
    summary = "Describes a value."

    async def call(self, arguments: Sequence[CtyValue], call: CallContext) -> CtyValue:
        """See ProviderFunction."""
        value, *more = arguments
        if isinstance(value, Dynamic) and value.value == "forbidden":
            raise FunctionFailed("it must not be forbidden", 0)
        if isinstance(value, Dynamic) and value.value == "bug":
            raise ZeroDivisionError("hunter2")
        return " ".join([repr(to_untyped(value)), *map(str, more)])


class ProbeProvider(Provider):
    """The provider."""

    schema = TerraformSchema(
        attributes={
            "folder": Attribute(type=STRING, presence=Presence.REQUIRED),
            "token": Attribute(type=STRING, presence=Presence.OPTIONAL, sensitive=True),
        }
    )

    def __init__(self, name: str = "probe") -> None:
        self._objects: ObjectFiles | None = None
        self.resources = {f"{name}_thing": Registration[ManagedResource].of(Thing(self.objects))}
        self.data_sources = {f"{name}_lookup": Registration[DataSource].of(Lookup(self))}
        self.functions = {"describe": Describe()}

    def objects(self) -> ObjectFiles:
        """The objects of the configured folder."""
        assert self._objects is not None, "the provider is not configured"
        return self._objects

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """See Provider."""
        if config["folder"] == "":
            raise DiagnosticsError(error("A folder has a name", path=("folder",)))

    async def configure(self, config: AttributeValues, call: CallContext) -> None:
        """See Provider."""
        folder = config["folder"]
        if isinstance(folder, str):
            self._objects = ObjectFiles(Path(folder))

"""A provider that does nothing but write files, with all that a provider can have."""

from collections.abc import Sequence
from pathlib import Path

from setpoint.terraform.calls import Call
from setpoint.terraform.cty_types import BOOL, DYNAMIC, NUMBER, STRING
from setpoint.terraform.cty_values import Dynamic, Value, Values
from setpoint.terraform.diagnostics import Refused, error
from setpoint.terraform.plain_values import to_plain
from setpoint.terraform.provider import (
    DataSource,
    Function,
    FunctionFailed,
    ManagedResource,
    Offer,
    Parameter,
    Provider,
)
from setpoint.terraform.schema import Attribute, Presence, Schema
from tests.terraform.probe.thing import TYPE, Thing
from tests.terraform.probe.world import World


class Lookup(DataSource):
    """Whether there is a thing of some name."""

    schema = Schema(
        attributes={
            "name": Attribute(type=STRING, presence=Presence.REQUIRED),
            "found": Attribute(type=BOOL, presence=Presence.COMPUTED),
            "size": Attribute(type=NUMBER, presence=Presence.COMPUTED),
        }
    )

    def __init__(self, provider: "ProbeProvider") -> None:
        self._provider = provider

    async def validate(self, config: Values, call: Call) -> None:
        """See DataSource."""
        if config["name"] == "":
            raise Refused(error("A thing has a name", path=("name",)))

    async def read(self, config: Values, call: Call) -> Values:
        """See DataSource."""
        found = self._provider.world().get(str(config["name"]), TYPE)
        return {**config, "found": found is not None, "size": None if found is None else found["size"]}


class Describe(Function):
    """What a value is, in words."""

    parameters = (Parameter(name="value", type=DYNAMIC, takes_null=True),)
    variadic = Parameter(name="more", type=STRING)
    returns = STRING
    summary = "Says what a value is."

    async def call(self, arguments: Sequence[Value], call: Call) -> Value:
        """See Function."""
        value, *more = arguments
        if isinstance(value, Dynamic) and value.value == "forbidden":
            raise FunctionFailed("it must not be forbidden", 0)
        if isinstance(value, Dynamic) and value.value == "bug":
            raise ZeroDivisionError("hunter2")
        return " ".join([repr(to_plain(value)), *map(str, more)])


class ProbeProvider(Provider):
    """The provider."""

    schema = Schema(
        attributes={
            "folder": Attribute(type=STRING, presence=Presence.REQUIRED),
            "token": Attribute(type=STRING, presence=Presence.OPTIONAL, sensitive=True),
        }
    )

    def __init__(self, name: str = "probe") -> None:
        self._world: World | None = None
        self.resources = {f"{name}_thing": Offer[ManagedResource].of(Thing(self.world))}
        self.data_sources = {f"{name}_lookup": Offer[DataSource].of(Lookup(self))}
        self.functions = {"describe": Describe()}

    def world(self) -> World:
        """Where the objects are."""
        assert self._world is not None, "asked before the provider was configured"
        return self._world

    async def validate(self, config: Values, call: Call) -> None:
        """See Provider."""
        if config["folder"] == "":
            raise Refused(error("A folder has a name", path=("folder",)))

    async def configure(self, config: Values, call: Call) -> None:
        """See Provider."""
        folder = config["folder"]
        if isinstance(folder, str):
            self._world = World(Path(folder))

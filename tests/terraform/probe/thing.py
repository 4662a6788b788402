"""A resource with an attribute of every type. `behaviour` selects a failure."""

from collections.abc import Callable
from typing import Final

from setpoint.errors import RemoteUnavailable
from setpoint.terraform.cty.types import BOOL, DYNAMIC, NUMBER, STRING, ListType, MapType, SetType
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, Refinement, UnknownValue
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.diagnostics import DiagnosticsError, error, warning
from setpoint.terraform.framework.provider import (
    CreateRequest,
    ManagedResource,
    PlanRequest,
    PlanResponse,
    UpdateRequest,
)
from setpoint.terraform.framework.schema import (
    Attribute,
    NestedAttributes,
    NestingMode,
    Presence,
    TerraformSchema,
    schema_type,
)
from tests.terraform.probe.object_files import ObjectFiles
from tests.terraform.probe.prior_types import with_prior_types

SECRET: Final = "hunter2"
_OPTIONAL, _COMPUTED = Presence.OPTIONAL, Presence.COMPUTED

_SETTINGS: Final = NestedAttributes(
    {
        "mode": Attribute(type=STRING, presence=Presence.REQUIRED),
        "level": Attribute(type=NUMBER, presence=Presence.OPTIONAL_COMPUTED),
    }
)
_RULES: Final = NestedAttributes(
    {
        "port": Attribute(type=NUMBER, presence=Presence.REQUIRED),
        "note": Attribute(type=STRING, presence=_COMPUTED),
    },
    NestingMode.LIST,
)
_MEMBERS: Final = NestedAttributes({"role": Attribute(type=STRING, presence=_OPTIONAL)}, NestingMode.MAP)
_PEERS: Final = NestedAttributes({"host": Attribute(type=STRING, presence=Presence.REQUIRED)}, NestingMode.SET)

SCHEMA: Final = TerraformSchema(
    version=1,
    description="A thing.",
    attributes={
        "name": Attribute(type=STRING, presence=Presence.REQUIRED, requires_replace=True, description="Its name."),
        "size": Attribute(type=NUMBER, presence=_OPTIONAL),
        "enabled": Attribute(type=BOOL, presence=Presence.OPTIONAL_COMPUTED, use_state_for_unknown=True),
        "tags": Attribute(type=MapType(STRING), presence=_OPTIONAL),
        "labels": Attribute(type=SetType(STRING), presence=_OPTIONAL),
        "ports": Attribute(type=ListType(NUMBER), presence=_OPTIONAL),
        "anything": Attribute(type=DYNAMIC, presence=_OPTIONAL),
        "settings": Attribute(type=_SETTINGS, presence=_OPTIONAL),
        "rules": Attribute(type=_RULES, presence=_OPTIONAL),
        "members": Attribute(type=_MEMBERS, presence=_OPTIONAL),
        "peers": Attribute(type=_PEERS, presence=_OPTIONAL),
        "password": Attribute(type=STRING, presence=_OPTIONAL, sensitive=True),
        "password_wo": Attribute(type=STRING, presence=_OPTIONAL, write_only=True),
        "behaviour": Attribute(type=STRING, presence=_OPTIONAL),
        "id": Attribute(type=STRING, presence=_COMPUTED, use_state_for_unknown=True),
        "revision": Attribute(type=NUMBER, presence=_COMPUTED),
        "echo": Attribute(type=DYNAMIC, presence=_COMPUTED),
        "took_password": Attribute(type=BOOL, presence=_COMPUTED),
    },
)
TYPE: Final = schema_type(SCHEMA)


class Thing(ManagedResource):
    """Objects in the folder of the provider, once it is configured."""

    schema = SCHEMA

    def __init__(self, objects: Callable[[], ObjectFiles]) -> None:
        self._objects = objects

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """See ManagedResource."""
        size = config["size"]
        if isinstance(size, int) and size < 0:
            raise DiagnosticsError(error("Too small", f"size is {size}", ("size",)))
        for index, rule in enumerate(_rules(config)):
            if rule["port"] == 0:
                raise DiagnosticsError(error("No such port", "0 is none", ("rules", index, "port")))
        if config["behaviour"] == "warn":
            call.add_diagnostic(warning("Think twice", "It is only a probe.", ("behaviour",)))

    async def read(self, stored: InstanceState, call: CallContext) -> InstanceState | None:
        """See ManagedResource."""
        found = self._objects().get(str(stored.state["name"]), TYPE)
        if found is None:
            return None
        return InstanceState(
            {name: with_prior_types(one, stored.state[name]) for name, one in found.items()}, stored.private
        )

    async def plan(self, request: PlanRequest, call: CallContext) -> PlanResponse:
        """See ManagedResource."""
        if request.config["behaviour"] == "bug in plan":
            raise ZeroDivisionError(f"the password is {SECRET}")
        state = dict(request.proposed)
        if isinstance(state["id"], UnknownValue):
            state["id"] = UnknownValue(Refinement(null=False))
        return PlanResponse(state, private=request.private + b"p")

    async def create(self, request: CreateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        state = _made(request.config, request.planned, 1)
        name = str(state["name"])
        if request.config["behaviour"] == "unavailable":
            raise RemoteUnavailable("GET /things: connection refused")
        self._objects().put(name, state)
        await self._misbehave(state, call)
        return InstanceState(state, request.private + b"c")

    async def _misbehave(self, state: AttributeValues, call: CallContext) -> None:
        match state["behaviour"]:
            case "slow":
                call.save_state(InstanceState(state, b"half"))
                self._objects().put("waiting", state)
                await call.sleep(600)
            case "stubborn":
                call.save_state(InstanceState({**state, "echo": UNKNOWN}, b"half"))
                raise RemoteUnavailable("the rest of it went wrong")
            case "bug":
                call.save_state(InstanceState(state, b"half"))
                raise ZeroDivisionError(f"the password is {SECRET}")
            case _:
                pass

    async def update(self, request: UpdateRequest, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        if request.config["behaviour"] == "no update":
            raise RemoteUnavailable("PATCH /things: connection refused")
        revision = request.prior["revision"]
        state = _made(request.config, request.planned, revision + 1 if isinstance(revision, int) else 1)
        self._objects().put(str(state["name"]), state)
        return InstanceState(state, request.private + b"u")

    async def delete(self, prior: InstanceState, call: CallContext) -> None:
        """See ManagedResource."""
        if prior.state["behaviour"] == "no deletion":
            raise RemoteUnavailable("DELETE /things: connection refused")
        self._objects().remove(str(prior.state["name"]))

    async def import_state(self, identifier: str, call: CallContext) -> InstanceState:
        """See ManagedResource."""
        found = self._objects().get(identifier, TYPE)
        if found is None:
            raise DiagnosticsError(error(f"There is no thing {identifier}"))
        return InstanceState(found, b"imported")


def _rules(values: AttributeValues) -> list[AttributeValues]:
    rules = values["rules"]
    return [one for one in rules if isinstance(one, dict)] if isinstance(rules, tuple) else []


def _made(config: AttributeValues, planned: AttributeValues, revision: int) -> AttributeValues:
    """The planned state, with values for the unknown attributes."""
    state = dict(planned)
    state["id"] = f"thing-{planned['name']}"
    state["revision"] = revision
    state["echo"] = planned["anything"]
    state["took_password"] = config["password_wo"] is not None
    if isinstance(state["enabled"], UnknownValue):
        state["enabled"] = True
    settings = state["settings"]
    if isinstance(settings, dict) and isinstance(settings["level"], UnknownValue):
        state["settings"] = {**settings, "level": 5}
    if state["rules"] is not None:
        state["rules"] = tuple({**rule, "note": f"port {rule['port']}"} for rule in _rules(state))
    return state

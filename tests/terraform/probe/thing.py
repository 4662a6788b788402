"""A resource with an attribute of every sort. What it is told under `behaviour` goes wrong on purpose."""

from collections.abc import Callable
from typing import Final

from setpoint.errors import RemoteUnavailable
from setpoint.terraform.calls import Call, Stored
from setpoint.terraform.cty_types import BOOL, DYNAMIC, NUMBER, STRING, ListOf, MapOf, SetOf
from setpoint.terraform.cty_values import NOT_NULL, UNKNOWN, Unknown, Values
from setpoint.terraform.diagnostics import Refused, error, warning
from setpoint.terraform.plain_values import as_before
from setpoint.terraform.provider import CreateRequest, ManagedResource, Planned, PlanRequest, UpdateRequest
from setpoint.terraform.schema import Attribute, Nested, Nesting, Presence, Schema, schema_type
from tests.terraform.probe.world import World

SECRET: Final = "hunter2"
_OPTIONAL, _COMPUTED = Presence.OPTIONAL, Presence.COMPUTED

_SETTINGS: Final = Nested(
    {
        "mode": Attribute(type=STRING, presence=Presence.REQUIRED),
        "level": Attribute(type=NUMBER, presence=Presence.OPTIONAL_COMPUTED),
    }
)
_RULES: Final = Nested(
    {
        "port": Attribute(type=NUMBER, presence=Presence.REQUIRED),
        "note": Attribute(type=STRING, presence=_COMPUTED),
    },
    Nesting.LIST,
)
_MEMBERS: Final = Nested({"role": Attribute(type=STRING, presence=_OPTIONAL)}, Nesting.MAP)
_PEERS: Final = Nested({"host": Attribute(type=STRING, presence=Presence.REQUIRED)}, Nesting.SET)

SCHEMA: Final = Schema(
    version=1,
    description="A thing.",
    attributes={
        "name": Attribute(type=STRING, presence=Presence.REQUIRED, replaces=True, description="Its name."),
        "size": Attribute(type=NUMBER, presence=_OPTIONAL),
        "enabled": Attribute(type=BOOL, presence=Presence.OPTIONAL_COMPUTED, stays=True),
        "tags": Attribute(type=MapOf(STRING), presence=_OPTIONAL),
        "labels": Attribute(type=SetOf(STRING), presence=_OPTIONAL),
        "ports": Attribute(type=ListOf(NUMBER), presence=_OPTIONAL),
        "anything": Attribute(type=DYNAMIC, presence=_OPTIONAL),
        "settings": Attribute(type=_SETTINGS, presence=_OPTIONAL),
        "rules": Attribute(type=_RULES, presence=_OPTIONAL),
        "members": Attribute(type=_MEMBERS, presence=_OPTIONAL),
        "peers": Attribute(type=_PEERS, presence=_OPTIONAL),
        "password": Attribute(type=STRING, presence=_OPTIONAL, sensitive=True),
        "password_wo": Attribute(type=STRING, presence=_OPTIONAL, write_only=True),
        "behaviour": Attribute(type=STRING, presence=_OPTIONAL),
        "id": Attribute(type=STRING, presence=_COMPUTED, stays=True),
        "revision": Attribute(type=NUMBER, presence=_COMPUTED),
        "echo": Attribute(type=DYNAMIC, presence=_COMPUTED),
        "took_password": Attribute(type=BOOL, presence=_COMPUTED),
    },
)
TYPE: Final = schema_type(SCHEMA)


class Thing(ManagedResource):
    """Objects of the world that `world` gives, once the provider is configured."""

    schema = SCHEMA

    def __init__(self, world: Callable[[], World]) -> None:
        self._world = world

    async def validate(self, config: Values, call: Call) -> None:
        """See ManagedResource."""
        size = config["size"]
        if isinstance(size, int) and size < 0:
            raise Refused(error("Too small", f"size is {size}", ("size",)))
        for index, rule in enumerate(_rules(config)):
            if rule["port"] == 0:
                raise Refused(error("No such port", "0 is none", ("rules", index, "port")))
        if config["behaviour"] == "warn":
            call.tell(warning("Think twice", "It is only a probe.", ("behaviour",)))

    async def read(self, stored: Stored, call: Call) -> Stored | None:
        """See ManagedResource."""
        found = self._world().get(str(stored.state["name"]), TYPE)
        if found is None:
            return None
        return Stored({name: as_before(one, stored.state[name]) for name, one in found.items()}, stored.private)

    async def plan(self, request: PlanRequest, call: Call) -> Planned:
        """See ManagedResource."""
        if request.config["behaviour"] == "bug in plan":
            raise ZeroDivisionError(f"the password is {SECRET}")
        state = dict(request.proposed)
        if isinstance(state["id"], Unknown):
            state["id"] = NOT_NULL
        return Planned(state, private=request.private + b"p")

    async def create(self, request: CreateRequest, call: Call) -> Stored:
        """See ManagedResource."""
        state = _made(request.config, request.planned, 1)
        name = str(state["name"])
        if request.config["behaviour"] == "unavailable":
            raise RemoteUnavailable("GET /things: connection refused")
        self._world().put(name, state)
        await self._misbehave(state, call)
        return Stored(state, request.private + b"c")

    async def _misbehave(self, state: Values, call: Call) -> None:
        match state["behaviour"]:
            case "slow":
                call.keep(Stored(state, b"half"))
                self._world().put("waiting", state)
                await call.sleep(600)
            case "stubborn":
                call.keep(Stored({**state, "echo": UNKNOWN}, b"half"))
                raise RemoteUnavailable("the rest of it went wrong")
            case "bug":
                call.keep(Stored(state, b"half"))
                raise ZeroDivisionError(f"the password is {SECRET}")
            case _:
                pass

    async def update(self, request: UpdateRequest, call: Call) -> Stored:
        """See ManagedResource."""
        if request.config["behaviour"] == "no update":
            raise RemoteUnavailable("PATCH /things: connection refused")
        revision = request.prior["revision"]
        state = _made(request.config, request.planned, revision + 1 if isinstance(revision, int) else 1)
        self._world().put(str(state["name"]), state)
        return Stored(state, request.private + b"u")

    async def delete(self, prior: Stored, call: Call) -> None:
        """See ManagedResource."""
        if prior.state["behaviour"] == "no deletion":
            raise RemoteUnavailable("DELETE /things: connection refused")
        self._world().remove(str(prior.state["name"]))

    async def adopt(self, identifier: str, call: Call) -> Stored:
        """See ManagedResource."""
        found = self._world().get(identifier, TYPE)
        if found is None:
            raise Refused(error(f"There is no thing {identifier}"))
        return Stored(found, b"imported")


def _rules(values: Values) -> list[Values]:
    rules = values["rules"]
    return [one for one in rules if isinstance(one, dict)] if isinstance(rules, tuple) else []


def _made(config: Values, planned: Values, revision: int) -> Values:
    """What was planned, with everything that was still unknown."""
    state = dict(planned)
    state["id"] = f"thing-{planned['name']}"
    state["revision"] = revision
    state["echo"] = planned["anything"]
    state["took_password"] = config["password_wo"] is not None
    if isinstance(state["enabled"], Unknown):
        state["enabled"] = True
    settings = state["settings"]
    if isinstance(settings, dict) and isinstance(settings["level"], Unknown):
        state["settings"] = {**settings, "level": 5}
    if state["rules"] is not None:
        state["rules"] = tuple({**rule, "note": f"port {rule['port']}"} for rule in _rules(state))
    return state

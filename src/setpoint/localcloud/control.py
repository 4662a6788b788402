"""The control API below `/_local`: faults, clock, edits, journal. None of it exists in the real cloud."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

from setpoint.errors import UserError
from setpoint.localcloud import refusals
from setpoint.localcloud.clock import stamp
from setpoint.localcloud.faults import Fault
from setpoint.localcloud.routes import Answer, Call, Route, dispatch
from setpoint.localcloud.trees import Tree

if TYPE_CHECKING:
    from setpoint.localcloud.cloud import Cloud

Answerer: TypeAlias = "Callable[[Cloud, Call], Answer]"
_Wanted = TypeVar("_Wanted")


class ClockOrder(msgspec.Struct, forbid_unknown_fields=True):
    """Moves the clock forward, holds it, or lets it run."""

    advance: float = 0.0
    held: bool | None = None


class EditOrder(msgspec.Struct, forbid_unknown_fields=True):
    """Merges a patch into the live object at an API path."""

    path: str
    patch: dict[str, Any]


class PasswordQuestion(msgspec.Struct, forbid_unknown_fields=True):
    """Asks whether a database user could log in."""

    project: str
    instance: str
    name: str
    password: str
    host: str | None = None


def answer(cloud: "Cloud", call: Call) -> Answer:
    """The answer to one request of the control API."""
    return dispatch(ROUTES, cloud, call)


def get_overview(cloud: "Cloud", call: Call) -> Tree:
    """`GET /_local`: what this is, and what is in force."""
    about = "A local Cloud SQL and Cloud Storage for demos and tests. This is not Google."
    return {"about": about, "clock": _clock(cloud), "counts": cloud.journal.counts(), **list_faults(cloud, call)}


def list_faults(cloud: "Cloud", _: Call) -> Tree:
    """`GET /_local/faults`."""
    return {"faults": msgspec.to_builtins(cloud.faults.active)}


def add_fault(cloud: "Cloud", call: Call) -> Tree:
    """`POST /_local/faults`: one fault, told from others by its member `fault`."""
    try:
        fault: Fault = msgspec.convert(call.body, type=Fault)
        cloud.inject(fault)
    except (msgspec.ValidationError, UserError) as error:
        raise refusals.bad_json(str(error)) from error
    return list_faults(cloud, call)


def clear_faults(cloud: "Cloud", _: Call) -> None:
    """`DELETE /_local/faults`."""
    cloud.faults.clear()


def list_calls(cloud: "Cloud", _: Call) -> Tree:
    """`GET /_local/calls`."""
    return {"calls": msgspec.to_builtins(cloud.journal.entries), "counts": cloud.journal.counts()}


def forget_calls(cloud: "Cloud", _: Call) -> None:
    """`DELETE /_local/calls`."""
    cloud.journal.clear()


def get_clock(cloud: "Cloud", _: Call) -> Tree:
    """`GET /_local/clock`."""
    return _clock(cloud)


def set_clock(cloud: "Cloud", call: Call) -> Tree:
    """`POST /_local/clock`."""
    order = _read(call, ClockOrder)
    if order.held is not None:
        cloud.clock.hold() if order.held else cloud.clock.release()
    cloud.advance(order.advance)
    return _clock(cloud)


def edit(cloud: "Cloud", call: Call) -> None:
    """`POST /_local/edit`."""
    order = _read(call, EditOrder)
    cloud.edit(order.path, order.patch)


def ask_password(cloud: "Cloud", call: Call) -> Tree:
    """`POST /_local/password`."""
    asked = _read(call, PasswordQuestion)
    matches = cloud.password_matches(asked.project, asked.instance, asked.name, asked.password, asked.host)
    return {"matches": matches}


def reset(cloud: "Cloud", _: Call) -> None:
    """`DELETE /_local/state`: as if just started with nothing."""
    cloud.reset()


ROUTES: Final[tuple[Route["Cloud"], ...]] = (
    Route("GET", "/_local", get_overview),
    Route("GET", "/_local/faults", list_faults),
    Route("POST", "/_local/faults", add_fault),
    Route("DELETE", "/_local/faults", clear_faults),
    Route("GET", "/_local/calls", list_calls),
    Route("DELETE", "/_local/calls", forget_calls),
    Route("GET", "/_local/clock", get_clock),
    Route("POST", "/_local/clock", set_clock),
    Route("POST", "/_local/edit", edit),
    Route("POST", "/_local/password", ask_password),
    Route("DELETE", "/_local/state", reset),
)


def _clock(cloud: "Cloud") -> Tree:
    return {"held": cloud.clock.is_held, "now": stamp(cloud.clock.now())}


def _read(call: Call, type_: type[_Wanted]) -> _Wanted:
    try:
        return msgspec.convert(call.body, type=type_)
    except msgspec.ValidationError as error:
        raise refusals.bad_json(str(error)) from error

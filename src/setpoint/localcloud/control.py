"""The control API below `/_local`: faults, clock, live edits and the journal. None of it exists in the real cloud."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

from setpoint.errors import UserError
from setpoint.localcloud import api_errors
from setpoint.localcloud.clock import timestamp
from setpoint.localcloud.faults import Fault
from setpoint.localcloud.routing import Route, ServiceCall, ServiceResponse, dispatch
from setpoint.localcloud.schema import JsonBody

if TYPE_CHECKING:
    from setpoint.localcloud.cloud import Cloud

ControlHandler: TypeAlias = "Callable[[Cloud, ServiceCall], ServiceResponse]"
_Body = TypeVar("_Body")


class ClockChange(msgspec.Struct, forbid_unknown_fields=True):
    """Moves the clock forward, holds it, or lets it run."""

    advance: float = 0.0
    held: bool | None = None


class LiveEdit(msgspec.Struct, forbid_unknown_fields=True):
    """Merges a patch into the live object at an API path."""

    path: str
    patch: dict[str, Any]


class PasswordCheck(msgspec.Struct, forbid_unknown_fields=True):
    """Whether a database user could log in with this password."""

    project: str
    instance: str
    name: str
    password: str
    host: str | None = None


def answer(cloud: "Cloud", call: ServiceCall) -> ServiceResponse:
    """The response to one request of the control API."""
    return dispatch(ROUTES, cloud, call)


def get_overview(cloud: "Cloud", call: ServiceCall) -> JsonBody:
    """`GET /_local`: an overview, with clock, counts and active faults."""
    about = "Local Google services for demos and tests. This is not Google."
    return {"about": about, "clock": _clock(cloud), "counts": cloud.journal.counts(), **list_faults(cloud, call)}


def list_faults(cloud: "Cloud", _: ServiceCall) -> JsonBody:
    """`GET /_local/faults`."""
    return {"faults": msgspec.to_builtins(cloud.faults.active)}


def add_fault(cloud: "Cloud", call: ServiceCall) -> JsonBody:
    """`POST /_local/faults`: one fault; its member `fault` is the type."""
    try:
        fault: Fault = msgspec.convert(call.body, type=Fault)
        cloud.inject(fault)
    except (msgspec.ValidationError, UserError) as error:
        raise api_errors.bad_json(str(error)) from error
    return list_faults(cloud, call)


def clear_faults(cloud: "Cloud", _: ServiceCall) -> None:
    """`DELETE /_local/faults`."""
    cloud.faults.clear()


def list_calls(cloud: "Cloud", _: ServiceCall) -> JsonBody:
    """`GET /_local/calls`."""
    return {"calls": msgspec.to_builtins(cloud.journal.entries), "counts": cloud.journal.counts()}


def clear_calls(cloud: "Cloud", _: ServiceCall) -> None:
    """`DELETE /_local/calls`."""
    cloud.journal.clear()


def get_clock(cloud: "Cloud", _: ServiceCall) -> JsonBody:
    """`GET /_local/clock`."""
    return _clock(cloud)


def set_clock(cloud: "Cloud", call: ServiceCall) -> JsonBody:
    """`POST /_local/clock`."""
    change = _convert_body(call, ClockChange)
    if change.held is not None:
        cloud.clock.hold() if change.held else cloud.clock.release()
    cloud.advance(change.advance)
    return _clock(cloud)


def edit(cloud: "Cloud", call: ServiceCall) -> None:
    """`POST /_local/edit`."""
    live_edit = _convert_body(call, LiveEdit)
    cloud.edit(live_edit.path, live_edit.patch)


def check_password(cloud: "Cloud", call: ServiceCall) -> JsonBody:
    """`POST /_local/password`."""
    check = _convert_body(call, PasswordCheck)
    matches = cloud.password_matches(check.project, check.instance, check.name, check.password, check.host)
    return {"matches": matches}


def reset(cloud: "Cloud", _: ServiceCall) -> None:
    """`DELETE /_local/state`: empty, as after a first start."""
    cloud.reset()


ROUTES: Final[tuple[Route["Cloud"], ...]] = (
    Route("GET", "/_local", get_overview),
    Route("GET", "/_local/faults", list_faults),
    Route("POST", "/_local/faults", add_fault),
    Route("DELETE", "/_local/faults", clear_faults),
    Route("GET", "/_local/calls", list_calls),
    Route("DELETE", "/_local/calls", clear_calls),
    Route("GET", "/_local/clock", get_clock),
    Route("POST", "/_local/clock", set_clock),
    Route("POST", "/_local/edit", edit),
    Route("POST", "/_local/password", check_password),
    Route("DELETE", "/_local/state", reset),
)


def _clock(cloud: "Cloud") -> JsonBody:
    return {"held": cloud.clock.is_held, "now": timestamp(cloud.clock.now())}


def _convert_body(call: ServiceCall, type_: type[_Body]) -> _Body:
    try:
        return msgspec.convert(call.body, type=type_)
    except msgspec.ValidationError as error:
        raise api_errors.bad_json(str(error)) from error

"""What a command and the process that owns the store say to each other, as JSON."""

from typing import Any, Final

import msgspec

from setpoint import errors
from setpoint.errors import RemoteRefused, SetpointError

HELLO: Final = "/v1/hello"
ALIVE: Final = "/v1/alive"
APPLY: Final = "/v1/apply"
DELETE: Final = "/v1/delete"
LOOK: Final = "/v1/look"
TROUBLES: Final = "/v1/troubles"


class Hello(msgspec.Struct, frozen=True):
    """Who answers."""

    version: str
    pid: int
    phase: str


class Name(msgspec.Struct, frozen=True, order=True):
    """Which resource."""

    group: str
    kind: str
    namespace: str
    name: str


class Manifests(msgspec.Struct, frozen=True):
    """What is to be applied, all or nothing. Canonical bytes: no digit of a number is lost on the way."""

    manifests: tuple[msgspec.Raw, ...]


class Names(msgspec.Struct, frozen=True):
    """Resources: to be deleted, to be looked at; or those that it was done for."""

    names: tuple[Name, ...]


class Failure(msgspec.Struct, frozen=True):
    """An error of ours."""

    error: str
    message: str


class Trouble(msgspec.Struct, frozen=True):
    """Why a step stopped that is to be taken again, where no status says so."""

    name: Name
    why: Failure


class Troubles(msgspec.Struct, frozen=True):
    """Those of the resources that somebody asked about."""

    troubles: tuple[Trouble, ...]


def told(error: SetpointError) -> Failure:
    """What is sent for `error`."""
    return Failure(type(error).__name__, str(error))


def raised(failure: Failure) -> SetpointError:
    """The error that was sent; a clear no when its class is not known here."""
    found: Any = getattr(errors, failure.error, None)
    is_ours = isinstance(found, type) and issubclass(found, SetpointError)
    error: SetpointError = found(failure.message) if is_ours else RemoteRefused(failure.message)
    return error

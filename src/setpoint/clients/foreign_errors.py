"""Failures of another end as our errors: what went wrong, in text that is safe to show."""

import os
import socket
import ssl
from typing import Final

from setpoint.clients.sockets import AddressRefused
from setpoint.errors import RemoteError, RemoteRefused, RemoteUnavailable

# --- Failures of the transport ----------------------------------------------------------------------------------------


class TransportError(Exception):
    """No response, or only a part of one."""


class InvalidAddress(TransportError):
    """A URL that names no server, or cannot be a part of a request."""


class UnsendableRequest(TransportError):
    """A method or a header that would be read as something else. Nothing was sent."""


class NotHttp(TransportError):
    """What arrived is no HTTP/1.1, or more of it than is read."""


class ConnectionEnded(TransportError):
    """The connection ended before the response did."""


class ProxyRefused(TransportError):
    """The proxy does not lead to the server: `status` is its response."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class CannotConnect(TransportError):
    """No connection to `host` could be opened, or TLS could not be established: `why`."""

    def __init__(self, host: str, port: int, why: OSError) -> None:
        super().__init__(host, port)
        self.host = host
        self.port = port
        self.why = why


# --- Failures in words ------------------------------------------------------------------------------------------------

# The most that is shown of a reason that another end or a library gives.
LONGEST_REASON: Final = 200


def foreign_text(text: str, *, longest: int) -> str:
    """Text of another end as one line for messages: without control and format characters, and cut."""
    shown = " ".join(text[: 4 * longest].split())[:longest]
    return shown if shown.isprintable() else "".join(one if one.isprintable() else "\ufffd" for one in shown)


def error_summary(status: int, reason: str, message: str, *, longest: int) -> str:
    """An error response on one line: status, reason and message, without what is empty; the message is cut."""
    parts = (str(status), foreign_text(reason, longest=LONGEST_REASON), foreign_text(message, longest=longest))
    return ": ".join(part for part in parts if part)


def transport_error(request: object, error: Exception, seconds: float) -> RemoteError:
    """The error for a request that got no response within `seconds`, or none at all."""
    if isinstance(error, TimeoutError):
        return RemoteUnavailable(f"{request}: no answer within {seconds:g} s")
    if isinstance(error, UnsendableRequest):
        shown = foreign_text(str(request), longest=LONGEST_REASON)
        return RemoteRefused(f"{shown}: not sent: its method or a header holds characters that HTTP does not allow")
    if isinstance(error, CannotConnect) and isinstance(error.why, ssl.SSLCertVerificationError):
        why = getattr(error.why, "verify_message", "") or error.why
        return RemoteRefused(
            f"{request}: {error.host}:{error.port} shows a certificate that is not to be trusted: {why}. "
            "Check the address, and which certificate authority is named for it"
        )
    if isinstance(error, CannotConnect) and isinstance(error.why, AddressRefused):
        return RemoteRefused(
            f"{request}: {error.host} leads to an address that no kubeconfig in a Secret may name: name the API server "
            "of another cluster, or have an administrator allow it with --allow-cluster-address"
        )
    return RemoteUnavailable(f"{request}: {_reason(error)}")


def _reason(error: Exception) -> str:
    """What went wrong, without the URL, whose query may hold a secret, and without what the other end sent."""
    match error:
        case InvalidAddress():
            return "that is not an address"
        case NotHttp():
            return "that is not HTTP"
        case ProxyRefused():
            return f"the proxy does not lead there: it answers {error.status}"
        case CannotConnect():
            why = f"{_system_reason(error.why)}: see whether it runs, and whether the address is right"
            return f"cannot connect to {error.host}:{error.port}: {why}"
        case ConnectionEnded():
            return "the connection ended before the answer did"
        case OSError():
            return _system_reason(error)
        case _:
            return foreign_text(str(error), longest=LONGEST_REASON) or type(error).__name__


def _system_reason(error: OSError) -> str:
    """What the system says; without the address, which would tell what a name resolves to."""
    said = error.strerror or ""
    # OpenSSL and the resolver have numbers of their own.
    if isinstance(error, socket.gaierror) or said.startswith("["):
        return foreign_text(said, longest=LONGEST_REASON)
    # Without a number it is a list of several errors, with the address of each.
    return "none of its addresses can be reached" if error.errno is None else os.strerror(error.errno)

"""Application Default Credentials by google-auth: a credentials file, gcloud's own, or the metadata server.

Nothing secret is sent in the clear or logged; what google-auth raises stays in this module.
"""

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from math import inf
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import requests
from google import auth
from google.auth import _cloud_sdk, exceptions, transport
from google.auth.credentials import Credentials, with_scopes_if_required

from setpoint.clients.google.errors import error_message, retry_after
from setpoint.clients.google.tokens import AccessToken
from setpoint.clients.http import USER_AGENT, HttpResponse
from setpoint.errors import RemoteError, RemoteRefused, RemoteUnavailable

TOKEN_TIMEOUT: Final = 30.0
# google-auth has types in part.
_exceptions: Final[Any] = exceptions


class _TransportResponse(transport.Response):
    """An answer in google-auth's terms."""

    def __init__(self, response: requests.Response) -> None:
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    @property
    def data(self) -> bytes:
        return self._response.content


class TokenTransport:
    """The calls of one fetch, in the form of a google.auth.transport.Request.

    `trouble` is what the last of them met when no usable answer came.
    """

    def __init__(self) -> None:
        self.trouble: RemoteUnavailable | None = None
        # google-auth looks for it under this name when the metadata server wants a certificate.
        self.session = requests.Session()
        self.session.headers["User-Agent"] = USER_AGENT
        # Nobody's password from ~/.netrc instead of the token that google-auth sends.
        self.session.auth = lambda request: request

    def __enter__(self) -> "TokenTransport":
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,  # noqa: ANN401 - a timeout, a certificate: google-auth passes on what it likes
    ) -> _TransportResponse:
        """The answer, or a TransportError when there is none that could be used."""
        what = f"{method} {_url_without_query(url)}"
        self.trouble = None
        if _is_secret(body, headers or {}) and not _is_confidential(url):
            raise _exceptions.RefreshError(f"{what} is not sent: it would go in the clear; write https in the file")
        within = min(more.pop("timeout", None) or TOKEN_TIMEOUT, TOKEN_TIMEOUT)
        try:
            # Whoever we are sent to may not be meant to see our credentials.
            sending = {"data": body, "headers": headers, "timeout": within, "allow_redirects": False, **more}
            answer = _TransportResponse(self.session.request(method, url, **sending))
        except requests.exceptions.Timeout as error:
            raise self._met(f"{what}: no answer within {within:g} s") from error
        except requests.exceptions.RequestException as error:
            raise self._met(f"{what}: {_reason(error)}") from error
        if answer.status in (408, 429) or answer.status >= 500:
            after = retry_after(HttpResponse(answer.status, answer.headers, b""), datetime.now(UTC))
            raise self._met(f"{what}: {answer.status}", after)
        return answer

    def _met(self, trouble: str, after: float | None = None) -> Exception:
        self.trouble = RemoteUnavailable(f"no Google token: {trouble}; look at the network", after)
        failure: Exception = _exceptions.TransportError(trouble)
        return failure


def _url_without_query(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _is_secret(body: bytes | None, headers: Mapping[str, str]) -> bool:
    """Whether a request holds what nobody may see. Metadata servers, of whichever cloud, are told nothing like that."""
    names = {name.lower() for name in headers}
    return "metadata-flavor" not in names and (body is not None or "authorization" in names)


def _is_confidential(url: str) -> bool:
    """Whether nobody on the way can read what is sent."""
    parts = urlsplit(url)
    return parts.scheme == "https" or _is_this_machine(parts.hostname or "")


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reason(error: Exception) -> str:
    """What went wrong, without the address: that has the query in it."""
    match error:
        case requests.exceptions.SSLError():
            return "its certificate is not one that this machine trusts"
        case requests.exceptions.ConnectionError():
            return "cannot connect"
        case _:
            return type(error).__name__


SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
CREDENTIALS_FILE_VARIABLE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
WHAT_TO_DO: Final = (
    "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a credentials file, "
    "or set SETPOINT_GCP_AUTH=anonymous for a local server"
)
_MAX_MESSAGE: Final = 200
# Keys and tokens: all that follows the first words of a key, and long runs of small and capital letters with digits.
_SECRET: Final = re.compile(
    r"-----BEGIN.*|(?=[\w.~+=-]*[a-z])(?=[\w.~+=-]*[A-Z])(?=[\w.~+=-]*\d)[\w.~+=-]{24,}", re.DOTALL
)
# google-auth has types in part.
_google: Final[Any] = auth
# What google-auth stumbles over when a file or an answer has not the form that it takes for granted. The last is how it
# says that credentials of a sort cannot do what is asked of them: be narrowed to scopes, be signed with.
_GOOGLE_AUTH_BUGS: Final = (ValueError, TypeError, LookupError, AttributeError, OSError, NotImplementedError)


@dataclass(frozen=True, slots=True)
class FoundCredentials:
    """Credentials, and where they were found: as people are told."""

    credentials: Credentials = field(repr=False)
    where: str


class ApplicationDefaultSource:
    """Application Default Credentials. Those that Google refuses are looked for anew: somebody may replace the file."""

    def __init__(self) -> None:
        self._identity: FoundCredentials | None = None

    def fetch(self) -> AccessToken:
        """A new token. RemoteRefused when there will be none until somebody acts, RemoteUnavailable when there may."""
        with TokenTransport() as calls:
            try:
                identity = self._identity = self._identity or find_credentials(calls)
                return _refresh(identity, calls)
            except RemoteRefused:
                self._identity = None
                raise


# What google-auth raises goes no further than this module: it may hold whole answers, with a token in them.


def find_credentials(calls: TokenTransport) -> FoundCredentials:
    """What google-auth finds; RemoteRefused names the file that cannot be used, or says that there is nothing."""
    named = os.environ.get(CREDENTIALS_FILE_VARIABLE, "")
    if named:
        return _credentials_in_file(Path(named), f"{CREDENTIALS_FILE_VARIABLE} ({named})")
    own = Path(_cloud_sdk.get_application_default_credentials_path())  # type: ignore[no-untyped-call]  # types in part
    if own.is_file():
        return _credentials_in_file(own, str(own))
    try:
        credentials, _project = _google.default(SCOPES, calls)
    except (_exceptions.GoogleAuthError, *_GOOGLE_AUTH_BUGS):
        raise RemoteRefused(f"no Google credentials: no file, and no metadata server; {WHAT_TO_DO}") from None
    return FoundCredentials(credentials, "the metadata server")


def _credentials_in_file(path: Path, where: str) -> FoundCredentials:
    why = _unreadable_reason(path)
    if why is None:
        try:
            return FoundCredentials(_load_file(path), where)
        except _exceptions.GoogleAuthError as error:
            why = _safe_message(error)
        except _GOOGLE_AUTH_BUGS:
            why = "it lacks what its type has to have"
    raise RemoteRefused(f"the Google credentials in {where} cannot be used: {why}; {WHAT_TO_DO}")


def _unreadable_reason(path: Path) -> str | None:
    """What keeps anybody from reading the file; None when it holds an object."""
    try:
        found = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        return "there is no such file"
    except OSError as error:
        return error.strerror
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    return None if isinstance(found, dict) else "that is no JSON object"


def _load_file(path: Path) -> Credentials:
    with warnings.catch_warnings():
        # Of files that strangers may have written, and of people without a project for their quota. The author of the
        # environment is no stranger, and the services say what they lack.
        warnings.simplefilter("ignore")
        found, _project = _google.load_credentials_from_file(str(path))
    credentials: Credentials = with_scopes_if_required(found, SCOPES)  # type: ignore[no-untyped-call]  # types in part
    return credentials


def _refresh(identity: FoundCredentials, calls: TokenTransport) -> AccessToken:
    credentials = identity.credentials
    try:
        credentials.refresh(calls)  # type: ignore[no-untyped-call]  # google-auth has types in part
    except (_exceptions.GoogleAuthError, *_GOOGLE_AUTH_BUGS) as error:
        raise _refresh_error(error, identity, calls) from None
    if not credentials.token:
        raise _no_token()
    headers: dict[str, str] = {}
    credentials.apply(headers)  # type: ignore[no-untyped-call]  # google-auth has types in part
    return AccessToken(headers, _seconds_left(credentials))


def _refresh_error(error: Exception, identity: FoundCredentials, calls: TokenTransport) -> RemoteError:
    if calls.trouble is not None:
        return calls.trouble
    if not isinstance(error, _exceptions.GoogleAuthError):
        return _no_token()
    if getattr(error, "retryable", False):
        return RemoteUnavailable(f"no Google token: {_safe_message(error)}; look at the network")
    return RemoteRefused(
        f"Google gives the credentials of {identity.where} no token: {_safe_message(error)}; {WHAT_TO_DO}"
    )


def _no_token() -> RemoteUnavailable:
    return RemoteUnavailable("no Google token: the answer is not what it should be; look at the network")


def _seconds_left(credentials: Credentials) -> float:
    """google-auth keeps the end as a time in UTC that does not say so."""
    expiry = credentials.expiry
    return inf if expiry is None else (expiry.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()


def _safe_message(error: Exception) -> str:
    """What google-auth says, in a line without anything secret: whole answers may stand in it."""
    told = str(error.args[0]) if error.args else type(error).__name__
    # What is wrong in particular comes second.
    match error.args[1:2]:
        case (Exception() as cause,):
            told = str(cause)
        case (str(body),) if message := error_message(body.encode()):
            told = f"{told}: {message}"
        case _:
            pass
    return _SECRET.sub("…", " ".join(told.split()))[:_MAX_MESSAGE].rstrip(". ")

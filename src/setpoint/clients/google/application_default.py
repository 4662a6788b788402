"""Application Default Credentials by google-auth: a credentials file, gcloud's own, or the metadata server.

They can also impersonate another service account. Nothing secret is sent in the clear or logged; what google-auth
raises stays in this module.
"""

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from ipaddress import ip_address
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import requests
import urllib3
from google import auth
from google.auth import _cloud_sdk, exceptions, impersonated_credentials, transport
from google.auth.credentials import Credentials, with_scopes_if_required

from setpoint.clients.google.errors import error_message, retry_after
from setpoint.clients.google.tokens import AccessToken
from setpoint.clients.http import USER_AGENT, HttpResponse
from setpoint.clients.url_path import quote_segment
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import RemoteError, RemoteRefused, RemoteUnavailable, TenantInvalid

TOKEN_TIMEOUT: Final = 30.0
# Of a response with a token, and of what is read of it at once, in bytes.
_MAX_BODY: Final = 2**20
_PIECE: Final = 2**16
# google-auth has types in part.
_exceptions: Final[Any] = exceptions


class _TransportResponse(transport.Response):
    """A response in google-auth's terms."""

    def __init__(self, response: requests.Response, body: bytes) -> None:
        self._response = response
        self._body = body

    @property
    def status(self) -> int:
        return self._response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    @property
    def data(self) -> bytes:
        return self._body


class TokenTransport:
    """The HTTP transport of one fetch, in the form of a google.auth.transport.Request.

    `error` is that of the last call, if it got no usable response.
    """

    def __init__(self) -> None:
        self.error: RemoteUnavailable | None = None
        # google-auth uses this attribute when the metadata server wants a certificate.
        self.session = requests.Session()
        self.session.headers["User-Agent"] = USER_AGENT
        # So small a body need not be compressed, and is not decompressed.
        self.session.headers["Accept-Encoding"] = "identity"
        # Otherwise requests would replace the token by a password from ~/.netrc.
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
        **more: Any,  # noqa: ANN401 - a timeout, a certificate: whatever google-auth passes
    ) -> _TransportResponse:
        """The response; TransportError when no usable one came."""
        what = f"{method} {_url_without_query(url)}"
        self.error = None
        if _is_secret(body, headers or {}) and not _is_confidential(url):
            raise _exceptions.RefreshError(f"{what} is not sent: it would go in the clear; write https in the file")
        within = min(more.pop("timeout", None) or TOKEN_TIMEOUT, TOKEN_TIMEOUT)
        try:
            # The target of a redirect may not be meant to see our credentials.
            options = {"data": body, "headers": headers, "timeout": within, "allow_redirects": False, **more}
            deadline = monotonic() + within
            received = self.session.request(method, url, **{**options, "stream": True})
            response = _TransportResponse(received, _body_of(received, deadline))
        except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError, TimeoutError) as error:
            raise self._failed(f"{what}: no answer within {within:g} s") from error
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as error:
            raise self._failed(f"{what}: {_reason(error)}") from error
        if response.status in (408, 429) or response.status >= 500:
            after = retry_after(HttpResponse(response.status, response.headers, b""), datetime.now(UTC))
            raise self._failed(f"{what}: {response.status}", after)
        return response

    def _failed(self, what: str, after: float | None = None) -> Exception:
        self.error = RemoteUnavailable(f"no Google token: {what}; check the network", after)
        failure: Exception = _exceptions.TransportError(what)
        return failure


def _body_of(response: requests.Response, deadline: float) -> bytes:
    """The body, which has to be small, and to arrive in time."""
    with response:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise _UnusableBody
        body = bytearray()
        while piece := response.raw.read1(_PIECE, decode_content=False):
            body += piece
            if len(body) > _MAX_BODY:
                raise _UnusableBody
            if monotonic() > deadline:
                raise TimeoutError
        return bytes(body)


class _UnusableBody(requests.exceptions.RequestException):
    """A body that no token server sends."""


def _url_without_query(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _is_secret(body: bytes | None, headers: Mapping[str, str]) -> bool:
    """Whether a request holds a secret. Requests to metadata servers, of whichever cloud, do not."""
    names = {name.lower() for name in headers}
    return "metadata-flavor" not in names and (body is not None or "authorization" in names)


def _is_confidential(url: str) -> bool:
    """Whether the request is encrypted, or does not leave this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or _is_this_machine(parts.hostname or "")


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reason(error: Exception) -> str:
    """What went wrong, without the URL: its query may hold a secret."""
    match error:
        case requests.exceptions.SSLError():
            return "its certificate is not one that this machine trusts"
        case requests.exceptions.ConnectionError() | urllib3.exceptions.ProtocolError():
            return "cannot connect"
        case _UnusableBody():
            return f"the answer is compressed, or larger than {_MAX_BODY // 2**20} MiB"
        case _:
            return type(error).__name__


# --- Credentials ------------------------------------------------------------------------------------------------------

SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
CREDENTIALS_FILE_VARIABLE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
ADVICE: Final = (
    "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a credentials file, "
    "or set SETPOINT_GCP_AUTH=anonymous for a local server"
)
_MAX_MESSAGE: Final = 200
# Keys and tokens: everything after the header of a key, and long runs of lower and upper case letters with digits.
_SECRET: Final = re.compile(
    r"-----BEGIN.*|(?=[\w.~+=-]*[a-z])(?=[\w.~+=-]*[A-Z])(?=[\w.~+=-]*\d)[\w.~+=-]{24,}", re.DOTALL
)
# google-auth has types in part.
_google: Final[Any] = auth
_impersonated: Final[Any] = impersonated_credentials
# What google-auth raises by accident for a file or a response of an unexpected form. The last is raised by credentials
# that do not support an operation: to be narrowed to scopes, to sign.
_UNEXPECTED_ERRORS: Final = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OSError,
    NotImplementedError,
    RecursionError,
)


@dataclass(frozen=True, slots=True)
class FoundCredentials:
    """Credentials, and where they were found, for messages; and the service account that they impersonate, if any."""

    credentials: Credentials = field(repr=False)
    where: str
    account: str = ""


class ApplicationDefaultSource:
    """Application Default Credentials. After a refusal they are searched again: the file may have been replaced."""

    def __init__(self) -> None:
        self._credentials: FoundCredentials | None = None

    def fetch(self) -> AccessToken:
        """A new token. RemoteRefused when the operator has to act, RemoteUnavailable when a retry may help."""
        with TokenTransport() as http:
            try:
                found = self._credentials = self._credentials or find_credentials(http)
                return _refresh(found, http)
            except RemoteRefused:
                self._credentials = None
                raise


class ImpersonatedSource:
    """Tokens of another service account, which Application Default Credentials may impersonate.

    After a refusal the credentials are searched again, as for `ApplicationDefaultSource`.
    """

    def __init__(self, account: str, endpoint: str) -> None:
        self._account = account
        self._url = f"{endpoint}/v1/projects/-/serviceAccounts/{quote_segment(account)}:generateAccessToken"
        self._credentials: FoundCredentials | None = None

    def fetch(self) -> AccessToken:
        """A new token. TenantInvalid when the account may not be impersonated; else as for the credentials alone."""
        with TokenTransport() as http:
            try:
                found = self._credentials = self._credentials or self._impersonating(find_credentials(http))
                return _refresh(found, http)
            except RemoteRefused:
                self._credentials = None
                raise

    def _impersonating(self, source: FoundCredentials) -> FoundCredentials:
        credentials = _impersonated.Credentials(
            source.credentials, self._account, list(SCOPES), iam_endpoint_override=self._url
        )
        return FoundCredentials(credentials, source.where, self._account)


def find_credentials(http: TokenTransport) -> FoundCredentials:
    """What google-auth finds; RemoteRefused names the file that cannot be used, or says that there is none."""
    named = os.environ.get(CREDENTIALS_FILE_VARIABLE, "")
    if named:
        return _credentials_in_file(Path(named), f"{CREDENTIALS_FILE_VARIABLE} ({named})")
    own = Path(_cloud_sdk.get_application_default_credentials_path())  # type: ignore[no-untyped-call]  # types in part
    if own.is_file():
        return _credentials_in_file(own, str(own))
    try:
        credentials, _project = _google.default(SCOPES, http)
    except (_exceptions.GoogleAuthError, *_UNEXPECTED_ERRORS):
        raise RemoteRefused(f"no Google credentials: no file, and no metadata server; {ADVICE}") from None
    return FoundCredentials(credentials, "the metadata server")


def _credentials_in_file(path: Path, where: str) -> FoundCredentials:
    why = _unreadable_reason(path)
    if why is None:
        try:
            return FoundCredentials(_load_file(path), where)
        except _exceptions.GoogleAuthError as error:
            why = _safe_message(error)
        except _UNEXPECTED_ERRORS:
            why = "it lacks what its type has to have"
    raise RemoteRefused(f"the Google credentials in {where} cannot be used: {why}; {ADVICE}")


def _unreadable_reason(path: Path) -> str | None:
    """Why the file cannot be used; None when it holds a JSON object."""
    try:
        found = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        return "there is no such file"
    except OSError as error:
        return error.strerror
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    return None if isinstance(found, dict) else "that is no JSON object"


def _load_file(path: Path) -> Credentials:
    with warnings.catch_warnings():
        # google-auth warns of files from untrusted sources, and of user credentials without a quota project. The
        # operator chose the file, and the services report a missing quota project.
        warnings.simplefilter("ignore")
        found, _project = _google.load_credentials_from_file(str(path))
    credentials: Credentials = with_scopes_if_required(found, SCOPES)  # type: ignore[no-untyped-call]  # types in part
    return credentials


def _refresh(found: FoundCredentials, http: TokenTransport) -> AccessToken:
    credentials = found.credentials
    try:
        credentials.refresh(http)  # type: ignore[no-untyped-call]  # google-auth has types in part
    except (_exceptions.GoogleAuthError, *_UNEXPECTED_ERRORS) as error:
        raise _refresh_error(error, found, http) from None
    if not credentials.token:
        raise _no_token()
    headers: dict[str, str] = {}
    credentials.apply(headers)  # type: ignore[no-untyped-call]  # google-auth has types in part
    return AccessToken(headers, _seconds_left(credentials))


def _refresh_error(error: Exception, found: FoundCredentials, http: TokenTransport) -> RemoteError:
    if http.error is not None:
        return http.error
    if not isinstance(error, _exceptions.GoogleAuthError):
        return _no_token()
    if getattr(error, "retryable", False):
        return RemoteUnavailable(f"no Google token: {_safe_message(error)}; check the network")
    if found.account:
        return TenantInvalid(
            f"Google gives the credentials of {found.where} no token of the service account {found.account}: "
            f"{_safe_message(error)}; an administrator gives them roles/iam.serviceAccountTokenCreator on it, or "
            "corrects the annotation setpoint.dev/google-service-account of the Namespace"
        )
    return RemoteRefused(f"Google gives the credentials of {found.where} no token: {_safe_message(error)}; {ADVICE}")


def _no_token() -> RemoteUnavailable:
    return RemoteUnavailable("no Google token: the answer is not what it should be; check the network")


def _seconds_left(credentials: Credentials) -> float:
    """google-auth keeps the expiry as a naive datetime in UTC."""
    expiry = credentials.expiry
    return inf if expiry is None else (expiry.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()


def _safe_message(error: Exception) -> str:
    """The message of google-auth on one line and without secrets: it may contain a whole response."""
    message = str(error.args[0]) if error.args else type(error).__name__
    # The second argument says more.
    match error.args[1:2]:
        case (Exception() as cause,):
            message = str(cause)
        case (str(body),) if detail := error_message(body.encode()):
            message = f"{message}: {detail}"
        case _:
            pass
    return _SECRET.sub("…", " ".join(message.split()))[:_MAX_MESSAGE].rstrip(". ")


# --- For the doctor ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CredentialReport:
    """Credentials that gave a token: where they are, of which account, and the seconds that the token is valid for."""

    where: str
    account: str
    seconds: float


def check_credentials() -> CredentialReport:
    """Fetches a token and forgets it. Blocks; the errors are those of `ApplicationDefaultSource.fetch`."""
    with TokenTransport() as http:
        found = find_credentials(http)
        token = _refresh(found, http)
    account = getattr(found.credentials, "service_account_email", "") or getattr(found.credentials, "account", "")
    return CredentialReport(found.where, str(account or "a user"), token.seconds)

"""How google-auth reaches token servers: our name on every call, nothing secret in the clear or in a log."""

from collections.abc import Mapping
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from google.auth import exceptions, transport

from setpoint.clients.google_errors import seconds_to_wait
from setpoint.clients.http import USER_AGENT, Answer
from setpoint.errors import RemoteUnavailable

SECONDS: Final = 30.0
# google-auth has types in part.
_failures: Final[Any] = exceptions


class _Answer(transport.Response):
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


class TokenCalls:
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

    def __enter__(self) -> "TokenCalls":
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
    ) -> _Answer:
        """The answer, or a TransportError when there is none that could be used."""
        what = f"{method} {_place(url)}"
        self.trouble = None
        if _is_secret(body, headers or {}) and not _is_private(url):
            raise _failures.RefreshError(f"{what} is not sent: it would go in the clear; write https in the file")
        within = min(more.pop("timeout", None) or SECONDS, SECONDS)
        try:
            # Whoever we are sent to may not be meant to see our credentials.
            sending = {"data": body, "headers": headers, "timeout": within, "allow_redirects": False, **more}
            answer = _Answer(self.session.request(method, url, **sending))
        except requests.exceptions.Timeout as error:
            raise self._met(f"{what}: no answer within {within:g} s") from error
        except requests.exceptions.RequestException as error:
            raise self._met(f"{what}: {_reason(error)}") from error
        if answer.status in (408, 429) or answer.status >= 500:
            after = seconds_to_wait(Answer(answer.status, answer.headers, b""), datetime.now(UTC))
            raise self._met(f"{what}: {answer.status}", after)
        return answer

    def _met(self, trouble: str, after: float | None = None) -> Exception:
        self.trouble = RemoteUnavailable(f"no Google token: {trouble}; look at the network", after)
        failure: Exception = _failures.TransportError(trouble)
        return failure


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _is_secret(body: bytes | None, headers: Mapping[str, str]) -> bool:
    """Whether a request holds what nobody may see. Metadata servers, of whichever cloud, are told nothing like that."""
    names = {name.lower() for name in headers}
    return "metadata-flavor" not in names and (body is not None or "authorization" in names)


def _is_private(url: str) -> bool:
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

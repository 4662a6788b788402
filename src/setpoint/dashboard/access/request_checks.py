"""Checks of requests before anything is looked up: host, origin, method; and the headers of every answer."""

from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from setpoint.core.values.deferred_dataclass import dataclass

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
# A page of another origin cannot send it without a question that is never answered.
WRITE_HEADER: Final = "X-Setpoint"
_READ_METHODS: Final = ("GET", "HEAD")
_LOOPBACK_NAMES: Final = frozenset({"localhost"})


class RequestRefused(Exception):
    """The request is not answered: its status, a code for programs and a text for people."""

    def __init__(self, status: int, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.hint = status, code, message, hint


def is_loopback(host: str) -> bool:
    """Whether a host, a name or an address, can only be this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() in _LOOPBACK_NAMES


@dataclass(frozen=True, slots=True)
class RequestChecks:
    """Refuses requests for other hosts, and writes that a page of another origin may have made.

    `hosts` are the names that this server answers to; None for any, where users authenticate themselves.
    """

    hosts: Collection[str] | None = None

    def check(self, request: web.Request) -> None:
        """RequestRefused for a request that is not answered."""
        self._check_host(request)
        self._check_site(request)
        if request.method not in _READ_METHODS:
            self._check_write(request)

    def _check_host(self, request: web.Request) -> None:
        # A name that leads here though it is not ours (DNS rebinding) is in the header.
        if len(request.headers.getall("Host", [])) != 1:
            raise RequestRefused(400, "badHost", "the request has no Host header, or several")
        host = _host_name(request.headers["Host"])
        if self.hosts is not None and not (host in self.hosts or is_loopback(host)):
            raise RequestRefused(
                421, "wrongHost", "this server does not answer to that name", "open the URL that it printed"
            )

    def _check_site(self, request: web.Request) -> None:
        """Browsers say where a request comes from. One that was typed, or no browser's, says nothing or `none`."""
        site = request.headers.get("Sec-Fetch-Site", "none")
        is_page = request.headers.get("Sec-Fetch-Mode") == "navigate" and request.method in _READ_METHODS
        if site not in ("none", "same-origin") and not is_page:
            raise RequestRefused(403, "otherOrigin", "a page of another origin made this request")

    def _check_write(self, request: web.Request) -> None:
        if request.headers.get(WRITE_HEADER) != "1":
            raise RequestRefused(403, "headerMissing", f"a POST needs the header {WRITE_HEADER}: 1")
        if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
            raise RequestRefused(415, "notJson", "a POST needs a body of type application/json")
        origin = request.headers.get("Origin")
        if origin is not None and _origin_host(origin) != request.headers["Host"].lower():
            raise RequestRefused(403, "otherOrigin", "a page of another origin made this request")


def _origin_host(origin: str) -> str:
    """The host and port of an Origin header; empty for any other text."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _host_name(header: str) -> str:
    """The host of a Host header, without its port."""
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""

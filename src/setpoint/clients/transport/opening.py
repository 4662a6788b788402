"""How connections are opened: names are resolved off the event loop, addresses are tried in turn, then proxy and TLS.

A socket is made for an address that is resolved and checked, and nothing is resolved after that.
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache
from ipaddress import ip_address
from itertools import chain, zip_longest
from typing import Final, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from setpoint.clients.foreign_errors import (
    CannotConnect,
    ConnectionEnded,
    InvalidAddress,
    NotHttp,
    ProxyRefused,
    TransportError,
)
from setpoint.clients.sockets import AddressInfo, SocketFactory
from setpoint.clients.transport.connection import MAX_FIELD, Connection
from setpoint.clients.transport.messages import Headers, ServerAddress, encode_head
from setpoint.core.values.deferred_dataclass import dataclass

# How long an address is tried alone before the next one is tried beside it (RFC 8305).
_ATTEMPT_DELAY: Final = 0.25
# How long what a name leads to is remembered, and of how many names.
_DNS_SECONDS: Final = 10.0
_MAX_NAMES: Final = 1000
_MAX_PROXY_HEAD: Final = 8 * MAX_FIELD


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """What to trust and the client certificate; `server_name` is the name to verify, if it is not the host's."""

    context: ssl.SSLContext
    server_name: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ServerRoute:
    """The way to a server. Compared by identity: connections belong to one route."""

    server: ServerAddress
    proxy: ServerAddress | None = None
    # Headers that authenticate requests, if there are any: what the URLs of the server and of a proxy that forwards
    # requests hold.
    credentials: Headers | None = field(init=False)

    def __post_init__(self) -> None:
        forwarding = None if self.proxy is None or self.server.is_tls else self.proxy
        found = {
            "authorization": self.server.authorization,
            "proxy-authorization": None if forwarding is None else forwarding.authorization,
        }
        fields = [(name, value) for name, value in found.items() if value is not None]
        object.__setattr__(self, "credentials", Headers(fields) if fields else None)

    def target_of(self, path: str) -> str:
        """The request target for a path: a proxy that forwards requests is told the server, too."""
        return path if self.proxy is None or self.server.is_tls else f"http://{self.server.authority}{path}"


class Opener(Protocol):
    """Opens connections."""

    async def open(
        self, route: ServerRoute, tls: TlsOptions | None, on_end: Callable[[Connection], None]
    ) -> Connection:
        """A new connection; TransportError when there is none."""
        ...


@cache
def default_tls() -> TlsOptions:
    """The certificates that this machine trusts. Made once: to read them takes tens of milliseconds."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(("http/1.1",))
    return TlsOptions(context)


class TcpOpener:
    """Opens connections to servers and proxies, with sockets of `sockets`."""

    def __init__(self, sockets: SocketFactory, defaults: Mapping[str, str]) -> None:
        self._sockets = sockets
        self._defaults = defaults
        self._names = _NameCache()

    async def open(
        self, route: ServerRoute, tls: TlsOptions | None, on_end: Callable[[Connection], None]
    ) -> Connection:
        """See Opener."""
        server, proxy, connection = route.server, route.proxy, Connection(on_end)
        first = proxy or server
        options = (tls or default_tls()) if server.is_tls or first.is_tls else None
        raw = await self._connect(first)
        if proxy is None:
            await _start(connection, raw, server, options)
        elif options is None or not server.is_tls:
            await _start(connection, raw, proxy, _for_proxy(proxy, options))
        else:
            await self._tunnel(connection, raw, route, options)
        return connection

    async def _connect(self, server: ServerAddress) -> socket.socket:
        try:
            return await _connect_any(await self._names.resolve(server.host, server.port), self._sockets)
        except OSError as error:
            raise CannotConnect(server.host, server.port, error) from error

    async def _tunnel(
        self, connection: Connection, raw: socket.socket, route: ServerRoute, options: TlsOptions
    ) -> None:
        """TLS to the server, inside of a connection that the proxy opened to it."""
        server, proxy = route.server, cast("ServerAddress", route.proxy)
        tunnel = _ProxyTunnel()
        await _start(tunnel, raw, proxy, _for_proxy(proxy, options))
        transport = cast("asyncio.Transport", tunnel.transport)
        authority = f"[{server.host}]:{server.port}" if ":" in server.host else f"{server.host}:{server.port}"
        headers = {} if proxy.authorization is None else {"proxy-authorization": proxy.authorization}
        agent = {name: value for name, value in self._defaults.items() if name == "user-agent"}
        try:
            transport.write(encode_head("CONNECT", authority, authority, headers, defaults=agent))
            await tunnel.opened
            encrypted = await asyncio.get_running_loop().start_tls(
                transport, connection, options.context, server_hostname=options.server_name or server.host
            )
            if encrypted is None:
                raise ConnectionEnded
            connection.connection_made(encrypted)
        except (OSError, ValueError) as error:
            transport.abort()
            raise _opening_error(error, server) from error
        except BaseException:
            transport.abort()
            raise


def _for_proxy(proxy: ServerAddress, options: TlsOptions | None) -> TlsOptions | None:
    """What is trusted for the server is trusted for its proxy; the name to verify is the proxy's own."""
    return TlsOptions(options.context) if proxy.is_tls and options is not None else None


async def _start(
    protocol: "Connection | _ProxyTunnel", raw: socket.socket, server: ServerAddress, tls: TlsOptions | None
) -> None:
    """Hands a connected socket over to `protocol`, with TLS if there are `tls`. On an error it is closed."""
    loop = asyncio.get_running_loop()
    try:
        if tls is None:
            await loop.create_connection(lambda: protocol, sock=raw)
        else:
            name = tls.server_name or server.host
            await loop.create_connection(lambda: protocol, sock=raw, ssl=tls.context, server_hostname=name)
    except (OSError, ValueError) as error:
        _close(protocol, raw)
        raise _opening_error(error, server) from error
    except BaseException:
        _close(protocol, raw)
        raise


def _close(protocol: "Connection | _ProxyTunnel", raw: socket.socket) -> None:
    """Closes the socket at once: asyncio would wait for the server to shut TLS down, or not have taken it over."""
    protocol.abort()
    raw.close()


def _opening_error(error: OSError | ValueError, server: ServerAddress) -> TransportError:
    # asyncio raises ValueError for a name to verify that no certificate can have, such as one with a leading dot.
    return CannotConnect(server.host, server.port, error) if isinstance(error, OSError) else InvalidAddress()


class _ProxyTunnel(asyncio.Protocol):
    """The response of a proxy to CONNECT. `opened` is done when the proxy has opened the connection."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._head = bytearray()

    def abort(self) -> None:
        """Closes the connection at once."""
        if self.transport is not None:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._head += data
        end = self._head.find(b"\r\n\r\n") + 4
        if end >= 4:
            self._end(self._error_of(bytes(self._head[:end]), bytes(self._head[end:])))
        elif len(self._head) > _MAX_PROXY_HEAD:
            self._end(NotHttp())

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._end(ConnectionEnded())

    def _error_of(self, head: bytes, rest: bytes) -> TransportError | None:
        parser = HttpResponseParser(object())
        try:
            parser.feed_data(head)
        except (HttpParserError, HttpParserUpgrade):
            return NotHttp()
        status = parser.get_status_code()
        if not 200 <= status < 300:
            return ProxyRefused(status)
        # In TLS, the client speaks first.
        return NotHttp() if rest else None

    def _end(self, error: TransportError | None) -> None:
        if self.opened.done():
            return
        if error is None:
            self.opened.set_result(None)
        else:
            self.opened.set_exception(error)


@dataclass(frozen=True, slots=True)
class UnixOpener:
    """Opens connections to the Unix socket at `path`, whatever the route says."""

    path: str

    async def open(
        self, route: ServerRoute, tls: TlsOptions | None, on_end: Callable[[Connection], None]
    ) -> Connection:
        """See Opener."""
        connection = Connection(on_end)
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: connection, self.path)
        except OSError as error:
            raise CannotConnect(self.path, 0, error) from error
        return connection


# --- Addresses --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _NameCache:
    """What names lead to. Lookups of one name at the same time are one lookup."""

    _lookups: dict[tuple[str, int], tuple[float, asyncio.Task[Sequence[AddressInfo]]]] = field(default_factory=dict)

    async def resolve(self, host: str, port: int) -> Sequence[AddressInfo]:
        loop = asyncio.get_running_loop()
        now, key = loop.time(), (host, port)
        if (address := _literal(host, port)) is not None:
            return (address,)
        until, lookup = self._lookups.get(key, (0.0, None))
        if lookup is None or until <= now or _has_failed(lookup):
            if len(self._lookups) >= _MAX_NAMES:
                self._lookups.clear()
            lookup = loop.create_task(_lookup(host, port))
            # Retrieved, so that asyncio does not warn when all who wait for it were cancelled.
            lookup.add_done_callback(_has_failed)
            self._lookups[key] = now + _DNS_SECONDS, lookup
        # Shielded: others may wait for the same lookup.
        return await asyncio.shield(lookup)


def _has_failed(lookup: asyncio.Task[Sequence[AddressInfo]]) -> bool:
    return lookup.done() and (lookup.cancelled() or lookup.exception() is not None)


async def _lookup(host: str, port: int) -> Sequence[AddressInfo]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except UnicodeError as error:
        # A label of more than 63 characters.
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from error
    return _interleaved(found)


def _literal(host: str, port: int) -> AddressInfo | None:
    """The address that `host` is already; None for a name, and for one with a zone."""
    try:
        is_ipv4 = ip_address(host).version == 4
    except ValueError:
        return None
    if is_ipv4:
        return socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port)
    return None if "%" in host else (socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port, 0, 0))


def _interleaved(addresses: Iterable[AddressInfo]) -> Sequence[AddressInfo]:
    """IPv6 and IPv4 in turn: where the network has only one of them, the other one is not tried to the end first."""
    families: dict[int, list[AddressInfo]] = {}
    for one in addresses:
        families.setdefault(one[0], []).append(one)
    return [one for one in chain.from_iterable(zip_longest(*families.values())) if one is not None]


async def _connect_any(addresses: Sequence[AddressInfo], sockets: SocketFactory) -> socket.socket:
    """A socket that is connected to the first address that accepts; an OSError when none does."""
    if len(addresses) == 1:
        return await _connect(addresses[0], sockets)
    waiting, attempts, errors = deque(addresses), set[asyncio.Task[socket.socket]](), list[OSError]()
    try:
        while waiting or attempts:
            if waiting:
                attempts.add(asyncio.create_task(_connect(waiting.popleft(), sockets)))
            delay = _ATTEMPT_DELAY if waiting else None
            done, _ = await asyncio.wait(attempts, timeout=delay, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                attempts.discard(one)
                error = one.exception()
                if error is None:
                    return one.result()
                if not isinstance(error, OSError):
                    raise error
                errors.append(error)
    finally:
        for one in attempts:
            one.cancel()
            one.add_done_callback(_close_result)
    raise _joint_error(errors)


async def _connect(address: AddressInfo, sockets: SocketFactory) -> socket.socket:
    made = sockets(address)
    try:
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, address[4])
    except BaseException:
        made.close()
        raise
    return made


def _close_result(attempt: asyncio.Task[socket.socket]) -> None:
    """Closes the socket of an attempt that connected as well."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()


def _joint_error(errors: Sequence[OSError]) -> OSError:
    """One error for all attempts: without a number when they differ."""
    if len({(type(one), one.errno) for one in errors}) == 1:
        return errors[0]
    return OSError("none of the addresses can be reached")

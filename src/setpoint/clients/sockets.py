"""Sockets of clients: which addresses they may connect to, and that all of them are closed in the end."""

import asyncio
import errno
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final, TypeAlias
from weakref import WeakSet

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import UserError

IpAddress: TypeAlias = IPv4Address | IPv6Address
IpNetwork: TypeAlias = IPv4Network | IPv6Network
# As getaddrinfo returns it: family, type, protocol, canonical name, address.
AddressInfo: TypeAlias = tuple[int, int, int, str, tuple[Any, ...]]

# --- Which addresses a tenant may name --------------------------------------------------------------------------------

# Where no API server of another cluster is.
_DENIED: Final[tuple[IpNetwork, ...]] = tuple(
    ip_network(text)
    for text in (
        # Unspecified: the system connects to itself. Loopback. Link-local, with the metadata servers of most clouds.
        "0.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "::/128",
        "::1/128",
        "fe80::/10",
        "fec0::/10",
        # Multicast, broadcast, and reserved ranges: some clouds have a metadata server there, some clusters their pods.
        "192.0.0.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "ff00::/8",
        # Metadata servers elsewhere: Alibaba, Azure, Amazon, Google.
        "100.100.100.200/32",
        "168.63.129.16/32",
        "fd00:ec2::/32",
        "fd20:ce::254/128",
        # IPv4 addresses of a local translator, in a form that only its configuration tells.
        "64:ff9b:1::/48",
    )
)
_DENIED_NAMES: Final = re.compile(
    r"(?:.+\.)?localhost|(?:metadata|instance-data)(?:\..+)?|kubernetes(?:\.default)?|.+\..+\.svc(?:\..+)?"
    r"|(?:.+\.)?cluster\.local"
)
# IPv6 addresses that stand for an IPv4 address, their last 32 bits: mapped, translated, compatible, NAT64.
_HOLDING_IPV4: Final = tuple(map(IPv6Network, ("::ffff:0:0/96", "::ffff:0:0:0/96", "::/96", "64:ff9b::/96")))
_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_][a-z0-9_-]{0,62}(?:\.[a-z0-9_][a-z0-9_-]{0,62})*")
# What the system may take for an IPv4 address in another notation: 2130706433, 127.1, 0x7f.1.
_LIKE_A_NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")


class AddressRefused(OSError):
    """A connection that was not opened: its address is none that a tenant may name.

    Its text is always the same: it does not tell a tenant what a name resolves to.
    """

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "an address that tenants may not name")


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Which addresses a server may have that a tenant named: any that is not denied. What is allowed is not denied."""

    allowed: tuple[IpNetwork, ...] = ()
    allowed_hosts: frozenset[str] = frozenset()
    denied: tuple[IpNetwork, ...] = ()
    denied_hosts: frozenset[str] = frozenset()

    def for_host(self, host: str) -> "AddressPolicy | None":
        """The policy for connections to `host`; None when it is allowed by its name, wherever that leads."""
        return None if _normalized(host) in self.allowed_hosts else self

    def refuses_host(self, host: str) -> bool:
        """Whether the host of a URL is refused as it is written. Where a name leads is known once it is resolved."""
        name = _normalized(host)
        if name in self.allowed_hosts:
            return False
        if _address(name) is not None:
            return self.refuses_address(name)
        return name in self.denied_hosts or not _is_name(name) or _DENIED_NAMES.fullmatch(name) is not None

    def refuses_address(self, text: str) -> bool:
        """Whether no connection is opened to this address; a text that is none is refused as well."""
        address = _address(text)
        return address is None or any(map(self._refuses, _meanings(address)))

    def _refuses(self, address: IpAddress) -> bool:
        if any(address in network for network in self.allowed):
            return False
        return any(address in network for network in (*_DENIED, *self.denied))


def _normalized(host: str) -> str:
    return host.lower().removesuffix(".")


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and _LIKE_A_NUMBER.fullmatch(text) is None


def _address(text: str) -> IpAddress | None:
    try:
        # Without the zone of a link-local address.
        return ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _meanings(address: IpAddress) -> Iterator[IpAddress]:
    """The addresses that a connection to it may reach: itself, or an IPv4 address that it holds."""
    if isinstance(address, IPv4Address):
        yield address
    elif int(address) > 1 and any(address in network for network in _HOLDING_IPV4):
        yield IPv4Address(int(address) & 0xFFFFFFFF)
    else:
        yield address
        # Relays of 6to4 and Teredo.
        yield from (one for one in (address.sixtofour, *(address.teredo or ())) if one is not None)


# --- What the administrator says --------------------------------------------------------------------------------------

# Lists with commas.
ALLOW_VARIABLE: Final = "SETPOINT_ALLOW_CLUSTER_ADDRESSES"
DENY_VARIABLE: Final = "SETPOINT_DENY_CLUSTER_ADDRESSES"
# Set in every pod: the API server, at an address of the range that services have.
SERVICE_HOST: Final = "KUBERNETES_SERVICE_HOST"
# The widest ranges that an API server accepts for services.
_WIDEST_SERVICE_RANGE: Final = {4: 12, 6: 108}
# Google lends its clusters a range of public addresses, of this size; around it are addresses of others.
_LENT_SERVICE_RANGE: Final = 20


def address_policy(
    environment: Mapping[str, str], allowed: Iterable[str] = (), denied: Iterable[str] = (), *, own_host: str = ""
) -> AddressPolicy:
    """The policy of a process, by options and environment; UserError for what is neither an address nor a name.

    `own_host` is the API server of the store: it is denied, and so is the range of the services around this pod.
    """
    allow = _AddressList.of("--allow-cluster-address", (*allowed, *_words(environment, ALLOW_VARIABLE)))
    deny = _AddressList.of("--deny-cluster-address", (*denied, *_words(environment, DENY_VARIABLE)))
    service_host = environment.get(SERVICE_HOST, "")
    own = _AddressList.of("the API server", filter(None, (own_host, service_host)))
    services = tuple(_service_range(service_host, deny.networks))
    return AddressPolicy(
        allow.networks, allow.hosts, (*deny.networks, *own.networks, *services), deny.hosts | own.hosts
    )


def _words(environment: Mapping[str, str], variable: str) -> Iterable[str]:
    return filter(None, (word.strip() for word in environment.get(variable, "").split(",")))


def _service_range(host: str, denied: Iterable[IpNetwork]) -> Iterator[IpNetwork]:
    """A range that holds those of all services, whatever it is; none if the administrator denies one around `host`."""
    address = _address(host)
    if address is None or any(address in network for network in denied):
        return
    is_lent = address.version == 4 and address.is_global
    length = _LENT_SERVICE_RANGE if is_lent else _WIDEST_SERVICE_RANGE[address.version]
    yield ip_network(f"{address}/{length}", strict=False)


@dataclass(frozen=True, slots=True)
class _AddressList:
    networks: tuple[IpNetwork, ...]
    hosts: frozenset[str]

    @staticmethod
    def of(option: str, words: Iterable[str]) -> "_AddressList":
        networks: list[IpNetwork] = []
        hosts: set[str] = set()
        for word in words:
            try:
                networks.append(ip_network(word, strict=False))
            except ValueError as error:
                if not _is_name(_normalized(word)):
                    advice = "write 10.0.0.0/8, fd00::1 or api.example.com"
                    raise UserError(f"{option}: {word!r} is neither an address nor a name: {advice}") from error
                hosts.add(_normalized(word))
        return _AddressList(tuple(networks), frozenset(hosts))


# --- Sockets ----------------------------------------------------------------------------------------------------------

# How often `close` checks whether all sockets are closed, and the seconds in between; mostly the first check suffices.
_CLOSE_CHECKS: Final = 200
_CLOSE_INTERVAL: Final = 0.005


class ClientSocket(socket.socket):
    """A socket of an HttpClient: its requests have passed the interceptors."""

    __slots__ = ()


class SocketFactory:
    """Makes the sockets of a client, so that `close` can wait until all are closed.

    With `addresses`, none for an address that is refused: AddressRefused. This is the last step before a connection,
    when every name is resolved.

    The event loop closes a socket after its connection is aborted: an event loop that ends before leaves it open.
    """

    def __init__(self, addresses: AddressPolicy | None = None) -> None:
        self._addresses = addresses
        self._made: WeakSet[socket.socket] = WeakSet()

    def __call__(self, address: AddressInfo) -> socket.socket:
        """A new socket."""
        family, kind, protocol, _, (host, *_) = address
        if self._addresses is not None and self._addresses.refuses_address(str(host)):
            raise AddressRefused
        made = ClientSocket(family, kind, protocol)
        self._made.add(made)
        return made

    async def close_all(self) -> None:
        """Shuts down all sockets, and returns once the event loop has closed them."""
        for check in range(_CLOSE_CHECKS):
            left = [one for one in self._made if one.fileno() != -1]
            if not left:
                return
            for one in left:
                # A socket that is not connected yet is closed by the task that connects it.
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(_CLOSE_INTERVAL if check else 0)

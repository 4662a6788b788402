"""Which addresses a kubeconfig of a tenant may name, as text and once names are resolved."""

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from setpoint.cli.main import main as setpoint
from setpoint.clients.http import HttpRequest
from setpoint.clients.kubernetes.client import KubernetesClient, http_client_for
from setpoint.clients.kubernetes.handed_over import connection_from_untrusted_text
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.clients.sockets import AddressPolicy, AddressRefused, SocketFactory, address_policy
from setpoint.errors import RemoteError, RemoteRefused, UserError
from tests.security.tenant_servers import TlsServers, connect_proxy, kubeconfig_of

IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}
POLICY = address_policy(IN_A_POD, own_host="api.own.test")
LOOPBACK = address_policy({}, ["127.0.0.1"])

DENIED = [
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "::", "::1"),
    *("169.254.169.254", "169.254.170.2", "fe80::1", "fe80::1%eth0", "fec0::1"),
    *("224.0.0.1", "239.255.255.255", "255.255.255.255", "240.0.0.1", "ff02::1"),
    *("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
    # IPv4 in IPv6: mapped, translated, compatible, NAT64, 6to4, Teredo.
    *("::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:169.254.169.254", "::ffff:0.0.0.0", "::ffff:0:127.0.0.1"),
    *(
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
    ),
    "2001:0:102:304:0:0:80ff:fffe",
    # The API server and the services of the own cluster.
    *("10.96.0.1", "10.96.0.10", "10.111.255.255", "::ffff:10.96.0.1", "64:ff9b::a60:1"),
    *("no address", "", "127.1", "0x7f000001", "1.2.3.4.5"),
]
PERMITTED = ["8.8.8.8", "10.0.0.5", "10.112.0.1", "172.16.0.2", "192.168.1.1", "2600::1", "fd00::1", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("address", DENIED)
def test_no_connection_is_opened_to_a_denied_address(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with pytest.raises(AddressRefused):
        SocketFactory(POLICY)((family, socket.SOCK_STREAM, 6, "", (address, 443)))


@pytest.mark.parametrize("address", PERMITTED)
def test_clusters_in_private_and_public_networks_are_reached(address: str) -> None:
    assert not POLICY.refuses_address(address)


HOSTS = [
    *("localhost", "LOCALHOST", "localhost.", "a.localhost", "metadata.google.internal", "metadata.google.internal."),
    *("metadata", "instance-data", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "db.shop.svc"),
    *("kubernetes.default.svc.cluster.local", "db.shop.svc.corp.test", "10-0-0-1.shop.pod.cluster.local"),
    *("api.own.test", "API.OWN.TEST", "api.own.test."),
    *("2130706433", "0x7f000001", "0X7F.1", "127.1", "0177.0.0.1", "017700000001", "10.96.1", "127.0.0.1."),
    *("①②⑦.⓪.⓪.①", "localhost\u3002test", "a b", "a%2eb", "", "a..b", "a" * 300),
]


@pytest.mark.parametrize("host", [*HOSTS, *(one for one in DENIED if one)])
def test_a_denied_host_is_refused_as_it_is_written(host: str) -> None:
    assert POLICY.refuses_host(host)


@pytest.mark.parametrize("host", ["api.example.com", "prod", "xn--bcher-kva.example", "a_b.example", *PERMITTED])
def test_other_hosts_are_not_refused(host: str) -> None:
    assert not POLICY.refuses_host(host)


def test_the_administrator_allows_and_denies_addresses_and_names() -> None:
    environment = {
        **IN_A_POD,
        "SETPOINT_ALLOW_CLUSTER_ADDRESSES": "10.96.7.0/24, 127.0.0.1,",
        "SETPOINT_DENY_CLUSTER_ADDRESSES": "10.244.0.0/16",
    }
    policy = address_policy(environment, ["db.shop.svc", "fd00:ec2::9"], ["intern.test"], own_host="10.1.1.1")

    refused = ["10.96.7.1", "::ffff:127.0.0.1", "fd00:ec2::9", "10.96.8.1", "127.0.0.2", "10.244.3.3", "10.1.1.1"]
    assert [policy.refuses_address(one) for one in refused] == [False] * 3 + [True] * 4
    assert [policy.refuses_host(one) for one in ("DB.shop.svc.", "intern.test", "x.shop.svc")] == [False, True, True]
    # Wherever an allowed name leads; any other is checked once it is resolved.
    assert policy.for_host("db.shop.svc") is None
    assert policy.for_host("10.96.7.1") is policy


@pytest.mark.parametrize(
    ("host", "denied", "inside", "outside"),
    [
        ("10.96.0.1", (), ["10.96.0.1", "10.111.0.0"], ["10.95.0.0", "10.112.0.0"]),
        ("172.20.0.1", (), ["172.31.0.1"], ["172.32.0.1"]),
        # The administrator says which range it is.
        ("172.20.0.1", ("172.20.0.0/16",), ["172.20.9.9"], ["172.31.0.1"]),
        # A range that Google lends.
        ("34.118.224.1", (), ["34.118.239.255"], ["34.118.223.0", "34.116.0.1"]),
        ("fd00:1::1", (), ["fd00:1::f:ffff"], ["fd00:1::10:0"]),
        ("mycluster.hcp.test", (), [], ["10.0.0.1"]),
    ],
)
def test_the_range_of_services_is_denied(host: str, denied: list[str], inside: list[str], outside: list[str]) -> None:
    policy = address_policy({"KUBERNETES_SERVICE_HOST": host}, (), denied)

    assert [one for one in inside if not policy.refuses_address(one)] == []
    assert [one for one in outside if policy.refuses_address(one)] == []
    assert policy.refuses_host(host)


@pytest.mark.parametrize("word", ["10.0.0.0/33", "a b", "https://a.test", "127.1", "*.test", "a,b"])
def test_what_is_neither_an_address_nor_a_name_is_an_error(word: str) -> None:
    with pytest.raises(UserError, match="is neither an address nor a name"):
        address_policy({}, [word])


@pytest.mark.laws
@given(st.integers(0, 2**32 - 1).map(IPv4Address), st.sampled_from(["::ffff:0:0", "::ffff:0:0:0", "64:ff9b::"]))
def test_an_address_is_refused_in_every_form_or_in_none(address: IPv4Address, prefix: str) -> None:
    other = IPv6Address(int(ip_address(prefix)) | int(address))

    assert POLICY.refuses_address(str(other)) == POLICY.refuses_address(str(address))


@pytest.mark.laws
@given(st.ip_addresses())
def test_a_host_that_is_an_address_is_refused_as_the_address_is(address: IPv4Address | IPv6Address) -> None:
    assert POLICY.refuses_host(str(address)) == POLICY.refuses_address(str(address))


@pytest.mark.laws
@given(st.ip_addresses())
def test_an_allowed_address_is_not_refused(address: IPv4Address | IPv6Address) -> None:
    policy = AddressPolicy((ip_network("0.0.0.0/0"), ip_network("::/0")), denied=(ip_network(f"{address}"),))

    assert not policy.refuses_address(str(address))


def test_the_options_of_run_are_those_of_the_policy(tmp_path: Path) -> None:
    """A mistake in one ends the command: what was meant to be denied is not left open."""
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig_of({"server": "https://api.example.com"}), encoding="utf-8")
    for option in ("--allow-cluster-address", "--deny-cluster-address"):
        words = ["--store", "kubernetes", "run", option, "10.0.0.0/8", option, "10.0.0.0/33"]

        done = CliRunner().invoke(setpoint, words, env={"KUBECONFIG": str(file), "SETPOINT_GCP_AUTH": "anonymous"})

        assert done.exit_code == 1
        assert f"error: {option}: '10.0.0.0/33' is neither an address nor a name" in done.output


# --- Kubeconfigs ------------------------------------------------------------------------------------------------------

SERVER: dict[str, object] = {"server": "https://api.example.com:6443/k8s/clusters/c-1"}


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({"server": "http://api.example.com"}, "is not reached by https"),
        # Without a scheme and an authority, kubectl takes http.
        ({"server": "api.example.com:6443"}, "is not reached by https"),
        ({"server": "https://user:hunter2@api.example.com"}, "a host, a port and a plain path"),
        ({"server": "https://@127.0.0.1"}, "a host, a port and a plain path"),
        ({"server": "https://api.example.com/../x"}, "a host, a port and a plain path"),
        ({"server": "https://api.example.com/a/.."}, "a host, a port and a plain path"),
        ({"server": "https://api.example.com/%2e%2e/x"}, "a host, a port and a plain path"),
        ({"server": "https://api.example.com/a\\b"}, "a host, a port and a plain path"),
        ({"server": "https://api.example.com/a b"}, "a host, a port and a plain path"),
        ({**SERVER, "proxy-url": "https://proxy.example.com"}, "it has a proxy-url"),
        ({**SERVER, "proxy-url": "http://127.0.0.1:3128"}, "it has a proxy-url"),
        ({**SERVER, "insecure-skip-tls-verify": True}, "it has insecure-skip-tls-verify"),
        ({"server": "https://127.0.0.1:6443"}, "no kubeconfig in a Secret may name"),
        ({"server": "https://[::1]:6443"}, "no kubeconfig in a Secret may name"),
        ({"server": "https://[fe80::1]:6443"}, "no kubeconfig in a Secret may name"),
        ({"server": "https://[fe80::1%25eth0]:6443"}, "a host, a port and a plain path"),
        ({"server": "https://①②⑦.⓪.⓪.①"}, "a host, a port and a plain path"),
        ({"server": "https://127.0.0.1\n.example.com/../"}, "a host, a port and a plain path"),
        ({"server": "https://10.96.0.1"}, "no kubeconfig in a Secret may name"),
        ({"server": "https://LocalHost.:6443"}, "no kubeconfig in a Secret may name"),
        ({**SERVER, "tls-server-name": "internal.example.com"}, "tls-server-name"),
        ({**SERVER, "tls-server-name": "kubernetes.default.svc"}, "tls-server-name"),
    ],
)
def test_a_kubeconfig_of_a_tenant_names_an_api_server_and_nothing_else(
    cluster: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        connection_from_untrusted_text(kubeconfig_of(cluster), "kubeconfig of Secret shop/access", addresses=POLICY)

    assert message in str(caught.value)
    assert str(caught.value).startswith("context c of kubeconfig of Secret shop/access: ")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "server",
    ["https://[", "https://a.test:99999", "https://a.test:x", "https://[::1", "https://", "https://127.0.0.1\\@a.test"],
)
@pytest.mark.parametrize("member", ["server", "proxy-url"])
def test_an_address_that_cannot_be_read_is_an_error_of_the_author(server: str, member: str) -> None:
    with pytest.raises(UserError, match=r"its server is|its proxy-url is"):
        connection_from_untrusted_text(kubeconfig_of({**SERVER, member: server}), "the Secret", addresses=POLICY)


@pytest.mark.parametrize(
    "user",
    [
        {"as": "a\r\nX-Forwarded-For: b"},
        {"as": "a", "as-uid": "1\n"},
        {"as": "a", "as-groups": ["b\0"]},
        {"as": "a", "as-user-extra": {"scope": ["\x1b[2J"]}},
    ],
)
def test_a_user_cannot_write_headers(user: dict[str, object]) -> None:
    with pytest.raises(UserError, match="that no header can hold"):
        connection_from_untrusted_text(kubeconfig_of(SERVER, user), "the Secret", addresses=POLICY)


def test_a_server_name_is_permitted_that_the_administrator_allows() -> None:
    policy = address_policy({}, ["kubernetes.tenants.test"])
    text = kubeconfig_of({**SERVER, "tls-server-name": "kubernetes.tenants.test"})

    connection = connection_from_untrusted_text(text, "the Secret", addresses=policy)

    assert (connection.server, connection.server_name) == (SERVER["server"], "kubernetes.tenants.test")
    assert connection.addresses is policy


def test_a_store_of_one_person_reaches_its_own_machine() -> None:
    text = kubeconfig_of({"server": "http://127.0.0.1:8080", "proxy-url": "http://localhost:3128"})

    connection = connection_from_untrusted_text(text, "the Secret")

    assert (connection.server, connection.proxy) == ("http://127.0.0.1:8080", "http://localhost:3128")
    assert connection.addresses is None


# --- Connections ------------------------------------------------------------------------------------------------------

RESOLVE = socket.getaddrinfo


def names_lead_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Every name leads to these addresses."""
    monkeypatch.setattr(
        "socket.getaddrinfo",
        lambda _host, *rest, **more: [found for one in addresses for found in RESOLVE(one, *rest, **more)],
    )


def get(connection: ClusterConnection) -> int:
    """The status that the server of the connection answers."""

    async def main() -> int:
        client = KubernetesClient(connection)
        try:
            identity = await client._credentials.identity()
            return (await client.http.send(HttpRequest("GET", connection.server, tls=identity.tls))).status
        finally:
            await client.close()

    return asyncio.run(main())


@pytest.mark.parametrize("addresses", [("127.0.0.1",), ("127.0.0.1", "169.254.169.254"), ("::1", "127.0.0.1")])
def test_a_name_that_leads_to_denied_addresses_is_refused_when_it_is_resolved(
    addresses: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    names_lead_to(monkeypatch, *addresses)
    connection = ClusterConnection("c", "https://api.example.com:6443", addresses=POLICY)

    with pytest.raises(RemoteRefused) as caught:
        get(connection)

    assert "api.example.com leads to an address that no kubeconfig in a Secret may name" in str(caught.value)
    # What a name resolves to is not told.
    assert not any(one in str(caught.value) for one in addresses)


def test_a_name_that_leads_elsewhere_later_is_refused_then(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """DNS rebinding: the address is checked for each connection, not once."""
    servers = TlsServers(tmp_path)

    async def main() -> list[object]:
        async with servers.answering("api.example.com", status=418) as url:
            server = url.replace("127.0.0.1", "api.example.com")
            text = servers.kubeconfig(server)
            # 127.0.0.1 is permitted here, and what the name leads to later is not.
            connection = connection_from_untrusted_text(text, "the Secret", addresses=LOOPBACK)
            client = KubernetesClient(connection)
            identity = await client._credentials.identity()
            seen: list[object] = []
            for address in ("127.0.0.1", "127.0.0.2"):
                names_lead_to(monkeypatch, address)
                try:
                    seen.append((await client.http.send(HttpRequest("GET", server, tls=identity.tls))).status)
                except RemoteError as error:
                    seen.append(type(error))
                # The next request opens a connection of its own.
                await client.close()
            return seen

    assert asyncio.run(main()) == [418, RemoteRefused]


def test_the_proxy_of_the_environment_is_not_used_for_a_tenant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It would resolve the name, and connect to where it leads."""
    servers = TlsServers(tmp_path)

    async def status(policy: AddressPolicy, proxy: str, url: str) -> object:
        monkeypatch.setenv("https_proxy", proxy)
        monkeypatch.delenv("no_proxy", raising=False)
        names_lead_to(monkeypatch, "127.0.0.1")
        server = url.replace("127.0.0.1", "api.example.com")
        connection = connection_from_untrusted_text(servers.kubeconfig(server), "the Secret", addresses=policy)
        client = KubernetesClient(connection)
        try:
            identity = await client._credentials.identity()
            return (await client.http.send(HttpRequest("GET", server, tls=identity.tls))).status
        except RemoteError as error:
            return type(error)
        finally:
            await client.close()

    async def main() -> list[object]:
        async with servers.answering("api.example.com", status=418) as url, connect_proxy(url) as proxy:
            by_name = address_policy({}, ["api.example.com"])
            return [await status(policy, proxy, url) for policy in (POLICY, by_name)]

    assert asyncio.run(main()) == [RemoteRefused, 418]


def test_no_redirect_is_followed(tmp_path: Path) -> None:
    servers = TlsServers(tmp_path)

    async def main() -> int:
        async with servers.answering(status=307, headers={"Location": "https://127.0.0.1/elsewhere"}) as url:
            connection = connection_from_untrusted_text(servers.kubeconfig(url), "the Secret", addresses=LOOPBACK)
            client = http_client_for(connection)
            identity = await KubernetesClient(connection)._credentials.identity()
            try:
                return (await client.send(HttpRequest("GET", f"{url}/here", tls=identity.tls))).status
            finally:
                await client.close()

    assert asyncio.run(main()) == 307
    assert servers.asked == ["/here"]

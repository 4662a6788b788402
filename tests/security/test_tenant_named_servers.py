"""A tenant has setpoint call servers by kubeconfigs in Secrets, on a real API server."""

import asyncio
import json
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import UserError
from tests.cluster.access import Access
from tests.security.tenant_servers import TenantsOfCluster, TlsServers, connect_proxy

HOUR = {"Retry-After": "3600"}
ALLOW_LOOPBACK = {"SETPOINT_ALLOW_CLUSTER_ADDRESSES": "127.0.0.1"}


@pytest.fixture
def tenants(api_server: Access, namespace: str) -> TenantsOfCluster:
    return TenantsOfCluster.of(api_server, namespace)


@pytest.fixture
def servers(tmp_path: Path) -> TlsServers:
    return TlsServers(tmp_path)


def test_a_tenant_does_not_stop_the_calls_of_the_operator(tenants: TenantsOfCluster, servers: TlsServers) -> None:
    """The kubeconfig names the API server of the store, and a proxy that answers in its place: 429, for an hour."""

    async def main() -> None:
        async with servers.answering(status=429, headers=HOUR) as url, connect_proxy(url) as proxy:
            ref = tenants.declare("slow", servers.kubeconfig(tenants.access.url, **{"proxy-url": proxy}))
            async with tenants.operator(**ALLOW_LOOPBACK) as operator:
                assert isinstance(await operator.outcome(ref), Stopped)
                # A read and a write of the operator's own.
                found = await operator.store.get(ref)
                assert found is not None
                await operator.store.set_finalizers(found, ("setpoint.dev/test",))

    asyncio.run(main())

    assert servers.asked == []


def test_a_server_that_throttles_one_kubeconfig_stops_the_calls_of_that_one_alone(
    tenants: TenantsOfCluster, servers: TlsServers
) -> None:
    async def main() -> None:
        async with servers.answering(status=429, headers=HOUR) as url:
            refs = [tenants.declare(name, servers.kubeconfig(f"{url}/{name}")) for name in ("one", "two")]
            other = tenants.declare("own", tenants.access.kubeconfig.read_text(encoding="utf-8"))
            async with tenants.operator(**ALLOW_LOOPBACK) as operator:
                for ref in (*refs, *refs):
                    assert isinstance(await operator.outcome(ref), Stopped)
                assert isinstance(await operator.outcome(other), Settled)

    asyncio.run(main())

    # The second call of each was not sent: its budget is paused.
    assert [path.split("/")[1] for path in servers.asked] == ["one", "two"]


PAGE = "internal-page-of-another"
PAGES: dict[str, dict[str, Any]] = {
    "text": {"status": 500, "text": PAGE},
    "missing": {"status": 404, "text": PAGE},
    "json": {"status": 401, "body": json.dumps({"message": PAGE, "reason": PAGE}), "content_type": "application/json"},
    "redirect": {"status": 302, "headers": {"Location": f"https://{PAGE}.test"}},
    "success": {"status": 200, "text": PAGE},
    "success-json": {"status": 200, "body": json.dumps({"resources": PAGE}), "content_type": "application/json"},
}


def test_the_page_of_an_internal_server_is_not_shown_to_a_tenant(
    tenants: TenantsOfCluster, servers: TlsServers
) -> None:
    async def main() -> dict[str, str]:
        shown = {}
        async with tenants.operator(**ALLOW_LOOPBACK) as operator, AsyncExitStack() as running:
            for name, answer in PAGES.items():
                url = await running.enter_async_context(servers.answering(**answer))
                ref = tenants.declare(name, servers.kubeconfig(f"{url}/{name}"))
                outcome = await operator.outcome(ref)
                assert isinstance(outcome, Stopped)
                shown[name] = f"{outcome.error} {tenants.shown(ref)}"
        return shown

    shown = asyncio.run(main())

    assert {path.split("/")[1] for path in servers.asked} == set(PAGES)
    assert [name for name, text in shown.items() if PAGE in text] == []


def test_a_tenant_cannot_name_this_machine(
    tenants: TenantsOfCluster, servers: TlsServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By address, by name, by a name that leads here, or by way of a proxy."""
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        "socket.getaddrinfo",
        lambda host, *rest, **more: resolve("127.0.0.1" if host == "api.attacker.test" else host, *rest, **more),
    )

    async def main() -> list[str]:
        async with servers.answering("localhost", "api.attacker.test", status=500) as url, connect_proxy(url) as proxy:
            port = url.rpartition(":")[2]
            hosts = ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "api.attacker.test"]
            configs = [servers.kubeconfig(f"https://{host}:{port}") for host in hosts]
            configs.append(servers.kubeconfig("https://api.attacker.test", **{"proxy-url": proxy}))
            refs = [tenants.declare(f"look-{number}", config) for number, config in enumerate(configs)]
            async with tenants.operator() as operator:
                outcomes = [await operator.outcome(ref) for ref in refs]
            return [str(one.error) if isinstance(one, Stopped) else "no error" for one in outcomes]

    messages = asyncio.run(main())

    assert servers.asked == []
    assert ["may not have" in one or "no kubeconfig in a Secret may name" in one for one in messages] == [True] * 6


def test_a_tenant_cannot_name_the_api_server_of_the_store(tenants: TenantsOfCluster) -> None:
    async def main() -> Stopped:
        ref = tenants.declare("own", tenants.access.kubeconfig.read_text(encoding="utf-8"))
        async with tenants.operator() as operator:
            outcome = await operator.outcome(ref)
            assert isinstance(outcome, Stopped)
            return outcome

    error = asyncio.run(main()).error

    assert isinstance(error, UserError)
    assert "have an administrator allow it with --allow-cluster-address" in str(error)

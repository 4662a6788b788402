"""Clusters that tenants name: how many are connected at once, what is kept of them, and whose go first."""

import asyncio
import base64
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.http import HttpRequest
from setpoint.clients.http_transport import MIB, TenantQuota
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import ClientRetired, SetpointError, UserError
from setpoint.kinds.kubernetes_object.clusters import ClusterAccess, Clusters
from setpoint.kinds.kubernetes_object.managed_fields import _decoded, _decoded_short

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://%s.example.com:6443"}}]
users: [{name: a, user: {token: swordfish}}]
"""
USES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=60)


@given(USES)
def test_no_tenant_has_more_clients_than_the_limit_and_none_evicts_those_of_smaller_ones(
    uses: list[tuple[str, int]],
) -> None:
    quota, kept = TenantQuota(most=8, most_of_one=5), dict[str, str]()
    for tenant, number in uses:
        client = f"{tenant}/{number}"
        before = Counter(kept.values())
        kept[client] = tenant
        evicted = quota.use(client, tenant)

        for one in evicted:
            owner = kept.pop(one)
            assert owner == tenant or before[owner] >= before[tenant]
        assert client in kept
        assert len(kept) <= 8
        assert max(Counter(kept.values()).values()) <= 5


@given(USES)
def test_the_least_recently_used_client_goes_first(uses: list[tuple[str, int]]) -> None:
    quota, kept = TenantQuota(most=8, most_of_one=5), list[str]()
    for tenant, number in uses:
        client = f"{tenant}/{number}"
        kept = [one for one in kept if one != client] + [client]
        for one in quota.use(client, tenant):
            assert one == next(other for other in kept if other[0] == one[0])
            kept.remove(one)


async def read_secret(ref: ResourceRef) -> Resource:
    """A Secret with a kubeconfig, whatever its name."""
    metadata = {"name": ref.name, "namespace": ref.namespace}
    text = "x" * 300_000 if ref.name == "large" else KUBECONFIG % ref.name
    data = {"kubeconfig": base64.b64encode(text.encode()).decode()}
    return Resource({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})


def new_clusters() -> Clusters:
    """Those of a store in a cluster, which has tenants."""
    own = KubernetesClient(ClusterConnection("own", "https://own.example.com"))
    return Clusters(own=own, secret=read_secret)


def cluster_ids(namespace: str, count: int) -> list[str]:
    return [f"secret:{namespace}/c{number}/kubeconfig" for number in range(count)]


async def is_retired(access: ClusterAccess) -> bool:
    try:
        await access.client.http.send(HttpRequest("GET", "http://127.0.0.1:1/", seconds=5))
    except ClientRetired:
        return True
    except SetpointError:
        # It was sent; there is no server.
        return False
    return False


def test_the_oldest_clusters_of_a_namespace_are_retired_and_others_stay() -> None:
    async def main() -> tuple[list[bool], bool, int, int]:
        clusters = new_clusters()
        (other,) = [await clusters.connect(one) for one in cluster_ids("victim", 1)]
        opened = [await clusters.connect(one) for one in cluster_ids("attacker", 30)]
        retired = [await is_retired(one) for one in opened]
        kept = len(clusters._kubeconfigs)
        # They are closed as soon as the next cluster is used.
        await clusters.connect(cluster_ids("attacker", 1)[0])
        unused = len(clusters._unused)
        result = retired, await is_retired(other), kept, unused
        await clusters.close()
        return result

    retired, is_other_retired, kept, unused = asyncio.run(main())

    assert retired == [True] * 10 + [False] * 20
    assert not is_other_retired
    assert kept == 21
    assert unused <= 1


def test_many_namespaces_together_have_a_limit() -> None:
    async def main() -> int:
        clusters = new_clusters()
        for namespace in range(12):
            for one in cluster_ids(f"tenant-{namespace}", 10):
                await clusters.connect(one)
        kept = len(clusters._accesses)
        await clusters.close()
        return kept

    assert asyncio.run(main()) == 100


def test_the_client_of_a_tenants_cluster_has_smaller_limits_and_shares_what_is_held() -> None:
    async def main() -> tuple[int, int, int, bool, bool]:
        clusters = new_clusters()
        first, second = [(await clusters.connect(one)).client.http for one in cluster_ids("a", 2)]
        other = (await clusters.connect(cluster_ids("b", 1)[0])).client.http
        limits = first.limits
        await clusters.close()
        return limits.body, limits.connections, limits.streams, first.held is second.held, first.held is other.held

    assert asyncio.run(main()) == (4 * MIB, 4, 32, True, False)


def test_a_store_of_one_person_has_no_such_limits() -> None:
    async def main() -> tuple[int, int, int]:
        clusters = Clusters({"SETPOINT_MAX_RESPONSE_MIB": "8"}, secret=read_secret)
        opened = [await clusters.connect(one) for one in cluster_ids("default", 30)]
        retired = sum([await is_retired(one) for one in opened])
        limits = opened[0].client.http.limits
        await clusters.close()
        return retired, limits.body, limits.connections

    assert asyncio.run(main()) == (0, 8 * MIB, 0)


def test_a_large_kubeconfig_is_refused() -> None:
    async def main() -> None:
        clusters = new_clusters()
        await clusters.connect("secret:a/large/kubeconfig")

    with pytest.raises(UserError, match=r"^kubeconfig of Secret a/large: larger than 256 KiB"):
        asyncio.run(main())


def test_requests_of_clusters_that_come_and_go_are_counted_in_one_place() -> None:
    counted: list[object] = []

    async def main() -> None:
        clusters = new_clusters()
        clusters.counted = counted.append
        for one in cluster_ids("a", 30):
            await clusters.connect(one)
        await clusters.close()

    asyncio.run(main())

    assert len(counted) == 1


def test_long_steps_of_field_sets_are_not_kept() -> None:
    before = _decoded_short.cache_info().currsize

    assert _decoded('{"name":"' + "x" * 10_000 + '"}') == {"name": "x" * 10_000}
    assert _decoded("[" * 100_000) == "[" * 100_000
    assert _decoded_short.cache_info().currsize == before
